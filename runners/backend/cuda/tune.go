package cuda

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// A tuning is the set of all configurations of a kernel whose manifest says autotune: all, and the
// choice among them.
type tuning struct {
	configurations []configuration
	exact          bool
	refused        []string // configurations that do not compile, with the reason
	first          string   // of these reasons
}

// A configuration is one that was compiled.
type configuration struct {
	words  string
	values map[string]manifest.Literal
	shapes []manifest.Shape // the shapes that its own pruning leaves it
	codes  *codes
	code   string
}

// A wrongConfiguration is a configuration whose output differs from the reference's.
type wrongConfiguration struct{ text string }

func (w *wrongConfiguration) Error() string { return w.text }

// compileAll compiles every configuration that the kernel offers.
func (b *Backend) compileAll(ctx context.Context, role runners.Role, k *codes, m *manifest.Manifest) (*tuning, error) {
	by, ok := k.by.(triton)
	if !ok {
		return nil, fmt.Errorf("%s tries all configurations of %s", m.Name, k.by)
	}
	by.TritonBuild.Scratch = filepath.Join(b.config.Scratch, b.compilationOf(role, k.side.Variant)+"-all")
	if err := os.MkdirAll(by.TritonBuild.Scratch, 0o755); err != nil {
		return nil, fmt.Errorf("making room for the configurations: %w", err)
	}
	shapes := m.ShapesFor(k.side.Variant)
	var asked []manifest.Special
	for _, s := range shapes {
		list, err := m.Specials(k.side.Variant, s.Dims, nil, true)
		if err != nil {
			return nil, err
		}
		for i := range list {
			list[i].Configuration = nil
		}
		asked = append(asked, list...)
	}
	by.TritonBuild.Kinds = asked
	described, err := by.Describe(ctx, by.TritonBuild)
	if err != nil {
		return nil, err
	}
	entry, err := tunedEntry(described, by.Source)
	if err != nil {
		return nil, err
	}
	t := &tuning{}
	if err := b.compileEach(ctx, by, k, m, t, described[entry], shapes); err != nil {
		return nil, err
	}
	if len(t.configurations) == 0 {
		return nil, &output.CompileError{Summary: fmt.Sprintf("%s (no configuration of @triton.autotune compiles)", t.first)}
	}
	return t, nil
}

// tunedEntry returns the kernel whose configurations are tried: a launch has one.
func tunedEntry(described map[string]toolchain.TritonTuning, source string) (string, error) {
	var tuned []string
	for _, entry := range slices.Sorted(maps.Keys(described)) {
		if len(described[entry].Configurations) > 0 {
			tuned = append(tuned, entry)
		}
	}
	switch len(tuned) {
	case 0:
		return "", &output.CompileError{Summary: source + ": no kernel of the launch has @triton.autotune, and the manifest says autotune: all (delete it there)"}
	case 1:
		return tuned[0], nil
	}
	return "", &output.CompileError{Summary: fmt.Sprintf("%s: %s have @triton.autotune, and autotune: all tries the configurations of one kernel (choose a configuration under autotune)", source, strings.Join(tuned, " and "))}
}

// compileEach compiles the configurations for the known sizes next to the shapes that pruning
// leaves them.
func (b *Backend) compileEach(ctx context.Context, by triton, k *codes, m *manifest.Manifest, t *tuning, offered toolchain.TritonTuning, shapes []manifest.Shape) error {
	type wanted struct {
		configuration
		kinds []manifest.Special
	}
	for {
		var all []wanted
		var kinds []manifest.Special
		for i, values := range offered.Configurations {
			w := wanted{configuration: configuration{words: inWords(values), values: values}}
			for n, s := range shapes {
				if n < len(offered.Kept) && slices.Contains(offered.Kept[n], i) {
					w.shapes = append(w.shapes, s)
				}
			}
			if len(w.shapes) == 0 {
				continue
			}
			picked := m.Picked([]manifest.Pick{{Values: values}})
			_, err := picked.Steps(k.side.Variant, w.shapes[0].Dims, nil)
			if err == nil {
				w.kinds, err = specials(picked, k.side.Variant, sizesNear(m, k.side.Variant, shapes, w.shapes), t.exact)
			}
			if err != nil {
				return &output.CompileError{Summary: fmt.Sprintf("the configuration %s cannot be launched: %v", w.words, err)}
			}
			all, kinds = append(all, w), append(kinds, w.kinds...)
		}
		by.TritonBuild.Kinds = kinds
		cubins, refused, err := by.BuildEach(ctx, by.TritonBuild)
		if errors.Is(err, toolchain.ErrNeedsExact) && !t.exact {
			t.exact = true
			continue
		}
		if err != nil {
			return err
		}
		at := 0
		for _, w := range all {
			made, why := cubins[at:at+len(w.kinds)], cmp.Or(refused[at:at+len(w.kinds)]...)
			if at += len(w.kinds); why != nil {
				t.refused, t.first = append(t.refused, fmt.Sprintf("%s: %v", w.words, why)), cmp.Or(t.first, why.Error())
				continue
			}
			w.codes = &codes{side: k.side, by: k.by, exact: t.exact, picks: []manifest.Pick{{Values: w.values}}, cubins: map[string]*toolchain.Cubin{}, entries: map[string]string{}}
			w.codes.add(w.kinds, made)
			fmt.Fprintf(&b.log, "# %s with %s\n", by, w.words)
			for _, c := range made {
				b.log.WriteString(c.Log)
			}
			h := sha256.New()
			fmt.Fprintln(h, w.words)
			for _, c := range made {
				fmt.Fprintf(h, "%s %+v\n", c.Code, *c.Start)
			}
			w.code = hex.EncodeToString(h.Sum(nil))
			t.configurations = append(t.configurations, w.configuration)
		}
		return nil
	}
}

// sizesNear returns the sizes that are known before anything runs and whose nearest shape is one of
// the given shapes.
func sizesNear(m *manifest.Manifest, variant string, all, some []manifest.Shape) []manifest.Dims {
	var picks []manifest.Pick
	for _, s := range all {
		picks = append(picks, manifest.Pick{Dims: s.Dims, Values: map[string]manifest.Literal{s.Name: {}}})
	}
	return slices.DeleteFunc(m.Sizes(variant), func(d manifest.Dims) bool {
		near := manifest.Nearest(picks, d).Values
		return !slices.ContainsFunc(some, func(s manifest.Shape) bool { _, ok := near[s.Name]; return ok })
	})
}

func inWords(values map[string]manifest.Literal) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		words = append(words, name+"="+values[name].String())
	}
	return strings.Join(words, ", ")
}

// code identifies the machine code of all configurations: a GPU is needed to pick one of them.
func (t *tuning) code() string {
	h := sha256.New()
	for _, c := range t.configurations {
		fmt.Fprintln(h, c.code)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// whole returns the code of all configurations together, if there is no GPU to pick one.
func (t *tuning) whole(k *codes) {
	k.exact = t.exact
	for _, c := range t.configurations {
		maps.Copy(k.cubins, c.codes.cubins)
		maps.Copy(k.entries, c.codes.entries)
	}
}

// tune picks the configurations to gate, if there is a GPU. Without a GPU, the build is all of
// them.
func (b *Backend) tune(ctx context.Context, role runners.Role, t *tuning, k *codes, m *manifest.Manifest, build *gates.Build) error {
	if b.config.Arch != "" {
		t.whole(k)
		build.Tuning = &gates.Tuning{Refused: t.refused}
		return nil
	}
	var err error
	build.Tuning, err = b.pick(ctx, role, t, k, m)
	if wrong, ok := errors.AsType[*wrongConfiguration](err); ok {
		build.Error = wrong.text
		return nil
	}
	return err
}

// pick runs every configuration at every shape that pruning leaves it, compares its outputs with
// the reference, and takes the fastest one for each shape. A wrong configuration of the candidate
// is an error, because a user's tuner may pick it. A wrong one of the baseline is skipped.
func (b *Backend) pick(ctx context.Context, role runners.Role, t *tuning, k *codes, m *manifest.Manifest) (*gates.Tuning, error) {
	shapes := m.ShapesFor(k.side.Variant)
	times := make([]map[string]float64, len(t.configurations))
	for i, c := range t.configurations {
		micros, wrong, err := b.try(ctx, role, c, m)
		switch {
		case err != nil:
			return nil, fmt.Errorf("timing the configuration %s: %w", c.words, err)
		case wrong != "" && role == runners.Candidate:
			return nil, &wrongConfiguration{fmt.Sprintf("autotune: all: the configuration %s of @triton.autotune is wrong at %s (fix the kernel, or take the configuration out)", c.words, wrong)}
		case wrong == "":
			times[i] = micros
		}
	}
	evidence := &gates.Tuning{Refused: t.refused}
	for _, s := range shapes {
		best := -1
		pick := gates.TuningPick{Shape: s.Name}
		for i, c := range t.configurations {
			took, ok := times[i][s.Name]
			if !ok {
				continue
			}
			pick.Times = append(pick.Times, gates.TuningTime{Configuration: c.words, Micros: took})
			if best < 0 || took < times[best][s.Name] {
				best = i
			}
		}
		if best < 0 {
			return nil, fmt.Errorf("no configuration of @triton.autotune runs at %s", s)
		}
		c := t.configurations[best]
		pick.Configuration, pick.Micros = c.words, times[best][s.Name]
		evidence.Picks = append(evidence.Picks, pick)
		k.picks = append(k.picks, manifest.Pick{Dims: s.Dims, Values: c.values})
		for key, cubin := range c.codes.cubins {
			k.cubins[key], k.entries[key] = cubin, c.codes.entries[key]
		}
	}
	k.exact = t.exact
	return evidence, nil
}

// try runs one configuration.
func (b *Backend) try(ctx context.Context, role runners.Role, c configuration, m *manifest.Manifest) (micros map[string]float64, wrong string, err error) {
	built, err := b.built(role, c.codes, m.Picked(c.codes.picks))
	if err != nil {
		return nil, "", err
	}
	request, err := b.request(ctx, worker.TaskCases)
	if err != nil {
		return nil, "", err
	}
	request.Baseline, request.Candidate, request.Tune = nil, built, true
	for _, s := range c.shapes {
		request.Cases = append(request.Cases, worker.Case{Case: runners.Case{Shape: s, Seed: b.rng.Uint64() >> 16, Distribution: distribution.Normal}})
		request.Plans = append(request.Plans, worker.Plan{Shape: s})
	}
	err = b.start(ctx, request, func(r worker.Reply) {
		if r.Case != nil && wrong == "" {
			wrong = b.mistaken(*r.Case)
		}
		if r.Micros != nil {
			micros = r.Micros
		}
	})
	return micros, wrong, err
}

// mistaken returns what is wrong with a case, by the bounds of the correctness gate.
func (b *Backend) mistaken(c gates.Case) string {
	gate := b.job.Rule().Gates.Correctness
	switch e := c.Errors; {
	case c.Failure != nil:
		return c.Shape + ": " + c.Failure.Detail
	case c.OutOfBounds:
		return c.Shape + ": it writes outside of its arrays"
	case len(c.InputsChanged) > 0:
		return c.Shape + ": it writes to the input " + c.InputsChanged[0]
	case e == nil:
		return ""
	default:
		share := float64(e.Bad) / float64(max(e.Elements, 1))
		if e.Unwritten > 0 || gate != nil && gate.Bad != nil && !gate.Bad.Holds(share) || (gate == nil || gate.Bad == nil) && e.Bad > 0 {
			return fmt.Sprintf("%s: %d of %d elements are beyond the tolerance", c.Shape, e.Bad, e.Elements)
		}
	}
	return ""
}

// addTuning records the configurations that the kernels of a launch offer, each once, and those
// that were built.
func addTuning(build *gates.Build, cubins []*toolchain.Cubin, chosen bool) {
	t := build.Tuning
	if t == nil {
		t = &gates.Tuning{}
	}
	add := func(into *[]string, words string) {
		if words != "" && !slices.Contains(*into, words) {
			*into = append(*into, words)
		}
	}
	for _, c := range cubins {
		for _, words := range c.Autotune {
			add(&t.Offered, words)
		}
		if chosen {
			add(&t.Chosen, c.Chosen)
		}
	}
	if len(t.Offered) > 0 {
		build.Tuning = t
	}
}
