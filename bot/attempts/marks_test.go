package attempts

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/runners"
)

// TestCount checks that a merge group counts as an attempt but adds no machine code: it has the
// number that the code has in a pull request, and a code of no pull request is the first.
func TestCount(t *testing.T) {
	at := func(pull int, list, hash string) Mark {
		return Mark{Pull: pull, Code: "code " + hash + list, Sources: "sources " + hash, Author: list, Listed: hash}
	}
	for _, c := range []struct {
		name  string
		marks []Mark
		want  runners.Attempt
	}{
		{"the first", []Mark{at(1, "a", "x")}, runners.Attempt{Number: 1, CodeNumber: 1}},
		{"again", []Mark{at(1, "a", "x"), at(1, "a", "x")}, runners.Attempt{Number: 2, CodeNumber: 1}},
		{"the second variant", []Mark{at(1, "a", "x"), at(1, "a", "x"), at(1, "a", "y")}, runners.Attempt{Number: 1, CodeNumber: 2}},
		{"in another pull request", []Mark{at(1, "a", "x"), at(2, "a", "y")}, runners.Attempt{Number: 1, CodeNumber: 2}},
		{"there on a new baseline", []Mark{at(1, "a", "x"), at(2, "b", "y")}, runners.Attempt{Number: 1, CodeNumber: 1}},
		{"the same pull request on a new baseline", []Mark{at(1, "a", "x"), at(1, "b", "y")}, runners.Attempt{Number: 1, CodeNumber: 2}},
		{"a merge group of a known code", []Mark{at(1, "a", "x"), at(1, "a", "y"), at(0, "a", "y")}, runners.Attempt{Number: 2, CodeNumber: 2}},
		{"a merge group of a new code", []Mark{at(1, "a", "x"), at(0, "a", "y")}, runners.Attempt{Number: 1, CodeNumber: 1}},
		{"after a merge group", []Mark{at(1, "a", "x"), at(0, "a", "y"), at(1, "a", "z")}, runners.Attempt{Number: 1, CodeNumber: 2}},
	} {
		if got := Count(c.marks); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A memory is a journal for one test.
type memory map[string][]journal.Event

func (m memory) ReplayRun(_ context.Context, name string, do func(journal.Event) error) (uint64, error) {
	for _, e := range m[name] {
		if err := do(e); err != nil {
			return 0, err
		}
	}
	return uint64(len(m[name])), nil
}

func (m memory) Append(_ context.Context, name string, after uint64, kind string, event any) (uint64, error) {
	data, err := json.Marshal(event)
	m[name] = append(m[name], journal.Event{Seq: after + 1, Kind: kind, Data: data})
	return after + 1, err
}

// TestCountAsTheJournalDoes plays random attempts of pull requests and merge groups: the marks give
// each of them the number that the journal of a bot gives it.
func TestCountAsTheJournalDoes(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		st := &Store{Journal: memory{}}
		var marks []Mark
		for i := range 30 {
			s := change.New(change.ID{Kind: change.Pull, Repo: 7, Number: 1 + r.IntN(3)})
			if r.IntN(4) == 0 {
				s.ID = change.ID{Kind: change.Group, Repo: 7, SHA: "f"}
			}
			s.Facts.Author, s.Plan = "walt", &change.Plan{Policy: "version: 1"}
			run := change.Run{Job: fmt.Sprint("job", i)}
			run.Folder, run.Sources = "kernels/scale", fmt.Sprint("sources", r.IntN(4))
			code := runners.Code{Baseline: fmt.Sprint("b", r.IntN(2)), Candidate: fmt.Sprint("c", r.IntN(4)), Device: "cpu"}
			want, err := st.Start(t.Context(), s, run, 1, code)
			if err != nil {
				t.Fatal(err)
			}
			marks = append(marks, MarkOf(s, run, code))
			if got := Count(marks); got != want {
				t.Fatalf("seed %d, attempt %d: the marks give %+v, the journal gives %+v", seed, i, got, want)
			}
		}
	}
}
