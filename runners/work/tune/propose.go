package tune

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// A Proposer suggests what to try next. It decides nothing: every candidate is built, checked and
// raced. No candidates mean that the proposer is done.
//
// The proposers of this package are functions of the state, so that a search that is resumed
// proposes what the search would have proposed without the interruption.
type Proposer interface {
	Propose(ctx context.Context, s State) ([]Candidate, error)
}

// A State is everything that a proposer may know. It has no seed, no secret case and no input.
type State struct {
	Space   Space    `json:"space"`
	Left    int      `json:"candidates_left"`
	Seconds float64  `json:"seconds"` // of measuring so far
	Budget  float64  `json:"budget_seconds"`
	Tried   []Tried  `json:"tried"`
	Elite   []string `json:"elite"` // ids of the best three, best first
	// Sources are the files that a candidate may replace. They are in the first message only.
	Sources map[string]string `json:"sources,omitempty"`
}

// Tried is one candidate and what became of it.
type Tried struct {
	ID string `json:"id"`
	Candidate
	Status    Status             `json:"status"`
	Gate      gates.Gate         `json:"gate,omitempty"`    // that refused it
	Why       string             `json:"why,omitempty"`     // one sentence
	Details   []string           `json:"details,omitempty"` // the compiler's messages
	Resources *gates.Resources   `json:"resources,omitempty"`
	Speedup   *float64           `json:"speedup,omitempty"` // over the incumbent: 0.1 is 10 % faster
	Micros    map[string]float64 `json:"micros,omitempty"`  // of a launch, by shape
	Rounds    int                `json:"rounds,omitempty"`

	screen   *Screened
	measured float64 // seconds of measuring when it was last timed
}

// A Status is what became of a candidate.
type Status string

const (
	Waiting   Status = "waiting"   // proposed, not built yet
	Behind    Status = "screened"  // timed by the screen, and not raced: others were faster
	Racing    Status = "racing"    // still in the race
	Slower    Status = "slower"    // proven slower than another
	Duplicate Status = "duplicate" // the same machine code and launch as an earlier one
	Failed    Status = "failed"    // refused by a gate
	Unknown   Status = "unknown"   // a replayed log does not have it
)

// elite is how many of the best a search goes on with.
const elite = 3

// tried are the ids that were proposed before.
func (s *State) tried() map[string]bool {
	seen := map[string]bool{}
	for _, t := range s.Tried {
		seen[t.ID] = true
	}
	return seen
}

// begins reports whether nothing but the incumbent was tried.
func (s *State) begins() bool { return len(s.Tried) <= 1 }

// fresh are the candidates that were not proposed before, each once, as many as may be proposed.
func (s *State) fresh(all []Candidate, most int) []Candidate {
	seen := s.tried()
	var out []Candidate
	for _, c := range all {
		if id := s.Space.ID(c); !seen[id] && len(out) < min(most, s.Left) {
			seen[id] = true
			out = append(out, c)
		}
	}
	return out
}

// best are the elite's candidates; before anything was raced, the variants themselves.
func (s *State) best() []Candidate {
	var all []Candidate
	for _, id := range s.Elite {
		i := slices.IndexFunc(s.Tried, func(t Tried) bool { return t.ID == id })
		if i >= 0 && slices.Contains(s.Space.Variants, s.Tried[i].Variant) { // the incumbent need not be in the space
			all = append(all, s.Tried[i].Candidate)
		}
	}
	if len(all) > 0 {
		return all
	}
	for _, v := range s.Space.Variants {
		all = append(all, Candidate{Variant: v})
	}
	return all
}

// structures are all variants with all values of the structure, and the micro parameters as each
// variant has them.
func (s *State) structures() []Candidate {
	var all []Candidate
	for _, v := range s.Space.Variants {
		all = append(all, combine(Candidate{Variant: v}, s.Space.layer(structure), s.Space.most())...)
	}
	return all
}

// maxStructures is how many structures are raced before the micro parameters.
const maxStructures = 32

// first is the first layer: the structures, or a sample of them if there are many. It is empty if the
// layer is done, or if the incumbent is the only structure.
func (s *State) first(rng *rand.Rand) []Candidate {
	if !s.begins() {
		return nil
	}
	all := s.structures()
	if len(all) > maxStructures {
		own := all[:0:0]
		for _, v := range s.Space.Variants { // as the manifest has them, whatever is sampled
			own = append(own, Candidate{Variant: v})
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = append(own, all...)
	}
	return s.fresh(all, maxStructures)
}

// Proposers lists the names of the built-in proposers.
func Proposers() []string { return []string{"genetic", "grid", "local", "random"} }

// NewProposer returns a built-in proposer.
func NewProposer(name string, seed uint64) (Proposer, error) {
	switch name {
	case "grid":
		return grid{}, nil
	case "random":
		return random{seed}, nil
	case "local":
		return local{seed}, nil
	case "genetic":
		return genetic{seed}, nil
	}
	return nil, usage.Errorf("--proposer: %q is not one of %s, and no program (a program is a path with a '/', such as ./propose.py)", name, strict.JoinWords(Proposers()))
}

// rngOf is a generator for one call: it depends on how much was proposed before.
func rngOf(seed uint64, s State) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(len(s.Tried))))
}

// grid proposes every point of the space: first the structures, then all the rest.
type grid struct{ atOnce bool }

// Exhaustive proposes every point of the space at once.
func Exhaustive() Proposer { return grid{atOnce: true} }

func (p grid) Propose(_ context.Context, s State) ([]Candidate, error) {
	if first := s.fresh(s.structures(), s.Left); len(first) > 0 && !p.atOnce {
		return first, nil
	}
	var all []Candidate
	for _, v := range s.Space.Variants {
		all = append(all, combine(Candidate{Variant: v}, s.Space.Toggles, s.Space.most())...)
	}
	return s.fresh(all, s.Left), nil
}

// batch is how many candidates a proposer suggests at a time.
const batch = 12

// random proposes the structures, then random micro parameters of the best three.
type random struct{ seed uint64 }

func (p random) Propose(_ context.Context, s State) ([]Candidate, error) {
	rng := rngOf(p.seed, s)
	if first := s.first(rng); len(first) > 0 {
		return first, nil
	}
	return s.fresh(scatter(s, rng), batch), nil
}

// around returns the best three candidates, each with all values of the micro parameters.
func around(s State) (all []Candidate) {
	for _, from := range s.best() {
		all = append(all, combine(from, s.Space.layer(micro), 4096)...)
	}
	return all
}

// scatter returns the points around the best three in random order.
func scatter(s State, rng *rand.Rand) []Candidate {
	all := around(s)
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// local proposes the structures first, and then the neighbours of the best three. A neighbour differs in one
// toggle; micro parameters come first. If only few points around the best three are left, local proposes all
// of them at once, because every step costs a race that must prove its winner.
type local struct{ seed uint64 }

func (p local) Propose(_ context.Context, s State) ([]Candidate, error) {
	if first := s.first(rngOf(p.seed, s)); len(first) > 0 {
		return first, nil
	}
	if left := s.fresh(around(s), batch+1); 0 < len(left) && len(left) <= batch {
		return left, nil
	}
	for _, layer := range []string{micro, structure} {
		var all []Candidate
		for _, from := range s.best() {
			all = append(all, neighbours(s.Space, from, layer)...)
		}
		if found := s.fresh(all, 2*batch); len(found) > 0 {
			return found, nil
		}
	}
	return nil, nil
}

// neighbours differ from a candidate in one toggle of a layer.
func neighbours(s Space, from Candidate, layer string) []Candidate {
	var all []Candidate
	for _, t := range s.layer(layer) {
		for _, v := range t.Values {
			all = append(all, from.with(t.Name, v))
		}
	}
	return all
}

// genetic proposes the structures, then crosses the best three with each other and with those that
// raced well, and mutates what comes out.
type genetic struct{ seed uint64 }

func (p genetic) Propose(_ context.Context, s State) ([]Candidate, error) {
	rng := rngOf(p.seed, s)
	if first := s.first(rng); len(first) > 0 {
		return first, nil
	}
	parents := s.population()
	var children []Candidate
	for range 20 * batch { // most children of a small space were born before
		a, b := parents[rng.IntN(min(elite, len(parents)))], parents[rng.IntN(len(parents))]
		children = append(children, mutate(cross(a, b, s.Space, rng), s.Space, rng))
	}
	if found := s.fresh(children, batch); len(found) > 0 {
		return found, nil
	}
	// Nothing new by chance: what is left around the best three.
	return s.fresh(scatter(s, rng), batch), nil
}

// population is the best three, and then the raced candidates by their speed.
func (s *State) population() []Candidate {
	raced := slices.DeleteFunc(slices.Clone(s.Tried), func(t Tried) bool { return t.Speedup == nil || slices.Contains(s.Elite, t.ID) })
	slices.SortStableFunc(raced, func(a, b Tried) int {
		switch {
		case *a.Speedup > *b.Speedup:
			return -1
		case *a.Speedup < *b.Speedup:
			return 1
		}
		return 0
	})
	all := s.best()
	for _, t := range raced[:min(len(raced), 2*batch)] {
		all = append(all, t.Candidate)
	}
	return all
}

// cross takes each toggle from one of two parents, and the variant from the first.
func cross(a, b Candidate, s Space, rng *rand.Rand) Candidate {
	child := Candidate{Variant: a.Variant, Toggles: maps.Clone(a.Toggles), Files: a.Files}
	from := s.settings(b)
	for _, t := range s.Toggles {
		if v, ok := from[t.Name]; ok && rng.IntN(2) == 0 && slices.Contains(t.Values, v) {
			child = child.with(t.Name, v)
		}
	}
	return child
}

// mutate gives each toggle a random value, one of them on average.
func mutate(c Candidate, s Space, rng *rand.Rand) Candidate {
	for _, t := range s.Toggles {
		if rng.IntN(len(s.Toggles)) == 0 {
			c = c.with(t.Name, t.Values[rng.IntN(len(t.Values))])
		}
	}
	return c
}
