package attempts

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners"
)

// A store is logs as a journal keeps them.
type store struct {
	t      *testing.T
	events map[string][][2]string
}

func (s *store) read(name string) *Log {
	s.t.Helper()
	a := NewLog()
	for i, e := range s.events[name] {
		if err := a.Apply(uint64(i+1), e[0], []byte(e[1])); err != nil {
			s.t.Fatal(err)
		}
	}
	return a
}

func (s *store) write(name, kind string, event any) {
	s.t.Helper()
	data, err := json.Marshal(event)
	if err != nil {
		s.t.Fatal(err)
	}
	s.events[name] = append(s.events[name], [2]string{kind, string(data)})
}

// begin is what a bot does, in as many steps; it may crash before any of them.
func (s *store) begin(r *rand.Rand, c LeaseRef, names ...string) (number int, ok bool) {
	for _, name := range names {
		if r.IntN(10) == 0 {
			return 0, false
		}
		if b, ok := s.read(name).Next(c, number, 1, "head"); ok {
			s.write(name, BegunKind, b)
		}
		number, _ = s.read(name).Number(c)
	}
	return number, true
}

// However an author mixes pushes, pull requests, cancels, rebenches, errors and
// code that is other with every build, and wherever the bot crashes: what the
// attempts at one machine code spend, and what those at one set of sources spend, is
// never more than the policy allows.
func TestAttemptsNeverOverspend(t *testing.T) {
	most := 0.0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		s := &store{t, map[string][][2]string{}}
		m := Key{Repo: 1, Folder: "k", Requirements: "a", Policy: "p"}
		spent, asked := map[string]float64{}, map[string][]string{}
		for i := range 40 {
			job := i
			if i > 0 && r.IntN(5) == 0 {
				job = r.IntN(i) // once more, perhaps by another runner
			}
			claim := LeaseRef{Job: fmt.Sprint("job-", job), Token: uint64(1 + r.IntN(2))}
			sources := fmt.Sprint(r.IntN(3))
			code := runners.Code{Baseline: "b", Candidate: sources, Device: "d"}
			if r.IntN(4) == 0 {
				code.Candidate = fmt.Sprint(r.Uint64()) // __TIME__
			}
			if r.IntN(3) == 0 {
				code.Picks = fmt.Sprint(r.IntN(2)) // the tuner decides between equals
			}
			names := asked[fmt.Sprint(claim)]
			if names == nil {
				names = []string{m.OfSources(sources, code), m.OfCode(code)}
				asked[fmt.Sprint(claim)] = names
			}
			number, ok := s.begin(r, claim, names...)
			if !ok {
				continue
			}
			if again, ok := s.begin(rand.New(rand.NewPCG(1, 1)), claim, names...); ok && again != number {
				t.Fatalf("seed %d: the attempt %d was counted again as %d", seed, number, again)
			}
			for _, name := range names {
				spent[fmt.Sprint(name, " ", claim)] = math.Exp2(-float64(number))
			}
		}
		sums := map[string]float64{}
		for key, share := range spent {
			name, _, _ := strings.Cut(key, " ")
			sums[name] += share
		}
		for name, sum := range sums {
			if sum > 1 {
				t.Fatalf("seed %d: the attempts of %s spend %v of the error rate", seed, name, sum)
			}
			most = max(most, sum)
		}
	}
	if most < 0.9 {
		t.Errorf("no mixture came near the error rate (%v): the test shows nothing", most)
	}
}

func TestEvidence(t *testing.T) {
	s := &store{t, map[string][][2]string{}}
	if _, ok := s.read("a").Best(""); ok {
		t.Error("an account without events has evidence")
	}
	found := func(job string, attempt int) Found {
		return Found{LeaseRef: LeaseRef{job, 1}, Attempt: attempt, Head: "h" + job, Evidence: "e" + job}
	}
	for i, step := range []struct {
		add  Found
		best string
	}{
		{found("1", 0), "e1"}, // wrong code: nothing was timed
		{found("2", 2), "e2"}, // the first attempt left nothing
		{found("3", 1), "e2"}, // or came late
		{found("4", 2), "e4"},
		{found("5", 7), "e5"},
	} {
		s.write("a", FoundKind, step.add)
		a := s.read("a")
		if best, ok := a.Best(""); !ok || best.Evidence != step.best {
			t.Errorf("step %d: the best is %+v, want %s", i, best, step.best)
		}
		if of, ok := a.Of(step.add.Attempt, ""); !ok || of != step.add {
			t.Errorf("step %d: of attempt %d there is %+v", i, step.add.Attempt, of)
		}
		if a.Seq != uint64(i+1) || a.Attempts != 0 {
			t.Errorf("step %d: sequence %d, %d attempts", i, a.Seq, a.Attempts)
		}
	}
	if _, ok := s.read("a").Of(5, ""); ok {
		t.Error("an attempt that left nothing has evidence")
	}
}

// Evidence about code that is started in one way is no evidence about the same code started
// in another. The attempts at both count together.
func TestEvidenceByDispatch(t *testing.T) {
	s := &store{t, map[string][][2]string{}}
	for i, dispatch := range []string{"N % 8 == 0", "N % 8 == 0 || N > 9", "N % 8 == 0"} {
		claim := LeaseRef{fmt.Sprint(i), 1}
		begun, _ := s.read("a").Next(claim, 0, 1, "head")
		if begun.Attempt != i+1 {
			t.Errorf("run %d is attempt %d", i, begun.Attempt)
		}
		s.write("a", BegunKind, begun)
		if best, ok := s.read("a").Best(dispatch); ok != (i == 2) || ok && best.Evidence != "e0" {
			t.Errorf("run %d goes on with %+v", i, best)
		}
		s.write("a", FoundKind, Found{LeaseRef: claim, Attempt: begun.Attempt, Evidence: fmt.Sprintf("e%d", i), Dispatch: dispatch})
	}
	a := s.read("a")
	if best, _ := a.Best("N % 8 == 0"); best.Evidence != "e2" {
		t.Errorf("the newest evidence of the first dispatch is %+v", best)
	}
	if _, ok := a.Of(2, "N % 8 == 0"); ok {
		t.Error("an attempt at another dispatch has left evidence for this one")
	}
	if m := (Key{Repo: 7, Folder: "k", Requirements: "a", Policy: "p"}); m.Listed(runners.Code{Candidate: "c"}) == (Key{Repo: 7, Folder: "k", Requirements: "a2", Policy: "p"}).Listed(runners.Code{Candidate: "c"}) {
		t.Error("code that is launched in another way has the place of the first in a list")
	}
}

// Whatever evidence depends on makes another account; nothing else does.
func TestNames(t *testing.T) {
	m, c := Key{Repo: 7, Folder: "k", Requirements: "a", Policy: "p"}, runners.Code{Baseline: "b", Candidate: "c", Compiler: "cc", Device: "d", Arch: "x"}
	seen := map[string]bool{m.OfCode(c): true, m.OfSources("s", c): true}
	for i, other := range []struct {
		Key
		runners.Code
	}{
		{Key{Repo: 8, Folder: "k", Requirements: "a", Policy: "p"}, c}, {Key{Repo: 7, Folder: "l", Requirements: "a", Policy: "p"}, c}, {Key{Repo: 7, Folder: "k", Requirements: "b", Policy: "p"}, c}, {Key{Repo: 7, Folder: "k", Requirements: "a", Policy: "q"}, c},
		{m, runners.Code{Baseline: "B", Candidate: "c", Compiler: "cc", Device: "d", Arch: "x"}},
		{m, runners.Code{Baseline: "b", Candidate: "C", Compiler: "cc", Device: "d", Arch: "x"}},
		{m, runners.Code{Baseline: "b", Candidate: "c", Compiler: "CC", Device: "d", Arch: "x"}},
		{m, runners.Code{Baseline: "b", Candidate: "c", Compiler: "cc", Device: "D", Arch: "x"}},
		{m, runners.Code{Baseline: "b", Candidate: "c", Compiler: "cc", Device: "d", Arch: "X"}},
		{m, runners.Code{Baseline: "b", Candidate: "c", Compiler: "cc", Device: "d", Arch: "x", Picks: "p"}},
	} {
		name := other.OfCode(other.Code)
		if seen[name] {
			t.Errorf("%d: %s names two things", i, name)
		}
		seen[name] = true
	}
	if m.OfSources("s", c) != m.OfSources("s", runners.Code{Candidate: "other", Compiler: "cc", Device: "d", Arch: "x"}) || m.OfSources("s", c) == m.OfSources("t", c) {
		t.Error("the account of sources goes by something else than the sources")
	}
	picked := c
	picked.Picks = "p"
	if m.OfSources("s", c) != m.OfSources("s", picked) || m.Listed(c) == m.Listed(picked) {
		t.Error("a new pick of the tuner is a first attempt at the sources, or no new machine code of the change")
	}
	if c.Hash("w") != "9f16e95b9c91702a5645d1197d489e61" {
		t.Errorf("stored logs of kernels without picks have lost their names: %s", c.Hash("w"))
	}
}

func TestApplyRefuses(t *testing.T) {
	for _, e := range [][2]string{{"exploded", "{}"}, {BegunKind, "{"}, {FoundKind, `{"attempt":"x"}`}, {ListedKind, `{"code":7}`}} {
		if err := NewLog().Apply(1, e[0], []byte(e[1])); err == nil {
			t.Errorf("%s %s was taken", e[0], e[1])
		}
	}
}

func FuzzApply(f *testing.F) {
	f.Add(BegunKind, []byte(`{"job":"j","token":1,"attempt":3}`))
	f.Add(FoundKind, []byte(`{"job":"j","token":1,"attempt":-3,"evidence":"e"}`))
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		s := NewLog()
		if s.Apply(1, kind, data) != nil {
			return
		}
		if b, ok := s.Next(LeaseRef{"next", 1}, 0, 1, ""); !ok || b.Attempt <= s.Attempts && s.Attempts < math.MaxInt {
			t.Errorf("after %s the next attempt is %d of %d", data, b.Attempt, s.Attempts)
		}
	})
}

// Two bots list the machine codes of a pull request at once, and either may crash at any
// step. A write succeeds only where the list is as it was read, as in the journal. Every
// code has one place, no two have the same, and the parts of the error rate that the
// numbers stand for never sum to more than all of it.
func TestListedByTwoBots(t *testing.T) {
	m := Key{Repo: 1, Folder: "k", Requirements: "a", Policy: "p"}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := &store{t, map[string][][2]string{}}
		name := m.OfPull(7)
		type bot struct {
			read *Log // nil before it has read the list
			code string
		}
		bots := []*bot{{}, {}}
		numbers := map[string]int{}
		for range 400 {
			b := bots[r.IntN(2)]
			switch {
			case b.read == nil || r.IntN(8) == 0: // or it crashes, and another job comes
				b.code = fmt.Sprint(r.IntN(60))
				b.read = s.read(name)
				continue
			case b.read.IndexOf(b.code) == 0 && int(b.read.Seq) != len(s.events[name]):
				b.read = s.read(name) // the journal refuses the write
				continue
			case b.read.IndexOf(b.code) == 0:
				s.write(name, ListedKind, Listed{Code: b.code})
			}
			place := s.read(name).IndexOf(b.code)
			if was, ok := numbers[b.code]; ok && was != place {
				t.Fatalf("seed %d: machine code %s was number %d and is %d", seed, b.code, was, place)
			}
			numbers[b.code], b.read = place, nil
		}
		sum, seen := 0.0, map[int]bool{}
		for code, n := range numbers {
			if n < 1 || seen[n] {
				t.Fatalf("seed %d: machine code %s is number %d, which is none or another's", seed, code, n)
			}
			seen[n] = true
			sum += 1 / float64(n) / float64(n+1)
		}
		if sum > 1 {
			t.Fatalf("seed %d: the codes spend %v of the error rate", seed, sum)
		}
	}
}

// A machine code keeps the number of its first attempt.
func TestCodeNumberStays(t *testing.T) {
	s := &store{t, map[string][][2]string{}}
	for i, c := range []struct{ asked, want int }{{5, 5}, {2, 5}, {9, 5}} {
		b, _ := s.read("a").Next(LeaseRef{fmt.Sprint(i), 1}, 0, c.asked, "head")
		if b.CodeNumber != c.want {
			t.Errorf("attempt %d is of machine code %d, want %d", i+1, b.CodeNumber, c.want)
		}
		s.write("a", BegunKind, b)
	}
}

// A list is of one pull request and kernel, or of one author, kernel, baseline and device.
func TestListNames(t *testing.T) {
	m, c := Key{Repo: 7, Folder: "k", Requirements: "a", Policy: "p"}, runners.Code{Baseline: "b", Candidate: "c", Compiler: "cc", Device: "d", Arch: "x"}
	author := m.OfAuthor("Walt", c)
	for what, same := range map[string]bool{
		"another policy":       Key{Repo: 7, Folder: "k", Requirements: "a2", Policy: "p2"}.OfPull(3) == m.OfPull(3) && Key{Repo: 7, Folder: "k", Requirements: "a2", Policy: "p2"}.OfAuthor("walt", c) == author,
		"another candidate":    m.OfAuthor("walt", runners.Code{Baseline: "b", Candidate: "c2", Compiler: "cc2", Device: "d", Arch: "x"}) == author,
		"another pick":         m.OfAuthor("walt", runners.Code{Baseline: "b", Candidate: "c", Compiler: "cc", Device: "d", Arch: "x", Picks: "p"}) == author,
		"another pull request": m.OfPull(3) != m.OfPull(4),
		"another kernel":       Key{Repo: 7, Folder: "k2", Requirements: "a", Policy: "p"}.OfPull(3) != m.OfPull(3) && Key{Repo: 7, Folder: "k2", Requirements: "a", Policy: "p"}.OfAuthor("walt", c) != author,
		"another repository":   Key{Repo: 8, Folder: "k", Requirements: "a", Policy: "p"}.OfPull(3) != m.OfPull(3) && Key{Repo: 8, Folder: "k", Requirements: "a", Policy: "p"}.OfAuthor("walt", c) != author,
		"another author":       m.OfAuthor("mona", c) != author,
		"another baseline":     m.OfAuthor("walt", runners.Code{Baseline: "b2", Candidate: "c", Compiler: "cc", Device: "d", Arch: "x"}) != author,
		"another device":       m.OfAuthor("walt", runners.Code{Baseline: "b", Candidate: "c", Compiler: "cc", Device: "d2", Arch: "x"}) != author,
	} {
		if !same {
			t.Errorf("%s: the name of a list is not as expected", what)
		}
	}
}

// A log numbers the attempts of leases, each once.
func TestLogNumbers(t *testing.T) {
	a := NewLog()
	one, two := LeaseRef{Job: "j", Token: 1}, LeaseRef{Job: "j", Token: 2}
	if _, ok := a.Number(one); ok {
		t.Error("a lease has a number before it began")
	}
	if _, ok := a.Best(""); ok {
		t.Error("a log has evidence before there is any")
	}
	b, ok := a.Next(one, 0, 1, "head")
	if !ok || b.Attempt != 1 || b.Head != "head" {
		t.Errorf("the first: %+v, %v", b, ok)
	}
	if b, ok := a.Next(one, 5, 1, "head"); !ok || b.Attempt != 5 {
		t.Errorf("at least the fifth: %+v, %v", b, ok)
	}
	apply := func(seq uint64, kind, data string, fine bool) {
		t.Helper()
		if err := a.Apply(seq, kind, []byte(data)); (err == nil) != fine {
			t.Errorf("%s %s: %v", kind, data, err)
		}
	}
	apply(1, BegunKind, `{"job":"j","token":1,"attempt":3}`, true)
	if n, ok := a.Number(one); !ok || n != 3 || a.Attempts != 3 || a.Seq != 1 {
		t.Errorf("begun: %d, %v, of %d", n, ok, a.Attempts)
	}
	if _, ok := a.Next(one, 0, 1, "head"); ok {
		t.Error("a lease begins twice")
	}
	if b, ok := a.Next(two, 2, 1, "head"); !ok || b.Attempt != 4 {
		t.Errorf("the next: %+v, %v", b, ok)
	}
	apply(2, FoundKind, `{"attempt":0,"evidence":"e0"}`, true)
	if f, ok := a.Best(""); !ok || f.Evidence != "e0" {
		t.Errorf("evidence of nothing timed: %+v, %v", f, ok)
	}
	apply(3, FoundKind, `{"attempt":3,"evidence":"e3"}`, true)
	apply(4, FoundKind, `{"attempt":2,"evidence":"e2"}`, true)
	if f, ok := a.Best(""); !ok || f.Evidence != "e3" {
		t.Errorf("the best: %+v, %v", f, ok)
	}
	if f, ok := a.Of(2, ""); !ok || f.Evidence != "e2" {
		t.Errorf("of the second: %+v, %v", f, ok)
	}
	if _, ok := a.Of(1, ""); ok {
		t.Error("an attempt that left nothing has evidence")
	}
	apply(5, BegunKind, `{`, false)
	apply(5, FoundKind, `{`, false)
	apply(5, "other", `{}`, false)
	if a.Seq != 4 {
		t.Errorf("the sequence is %d", a.Seq)
	}
}
