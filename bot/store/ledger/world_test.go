package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	asked "github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/gates"
)

// A memory is a journal without a disk.
type memory struct {
	mu     sync.Mutex
	events []journal.Event // the sequence is the index + 1
	more   chan struct{}
}

func newMemory(events ...journal.Event) *memory {
	return &memory{events: events, more: make(chan struct{})}
}

func (m *memory) add(events ...journal.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, events...)
	close(m.more)
	m.more = make(chan struct{})
}

func (m *memory) Replay(ctx context.Context, after uint64, apply func(journal.Event) error) (uint64, error) {
	m.mu.Lock()
	events := m.events
	m.mu.Unlock()
	for after < uint64(len(events)) {
		if err := ctx.Err(); err != nil {
			return after, err
		}
		if err := apply(events[after]); err != nil {
			return after, err
		}
		after++
	}
	return after, nil
}

func (m *memory) Follow(ctx context.Context, after uint64, apply func(journal.Event) error) error {
	for {
		m.mu.Lock()
		more := m.more
		m.mu.Unlock()
		var err error
		if after, err = m.Replay(ctx, after, apply); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
}

// A world makes events as a busy bot would write them.
type world struct {
	r       *rand.Rand
	changes []*change.State
	events  []journal.Event
}

func newWorld(seed uint64) *world { return &world{r: rand.New(rand.NewPCG(seed, 2))} }

var epoch = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)

// write appends an event to the journal and applies it.
func (w *world) write(s *change.State, e change.Event) {
	seq := uint64(len(w.events) + 1)
	at := epoch.Add(time.Duration(seq) * 1500 * time.Millisecond)
	data, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	w.events = append(w.events, journal.Event{Seq: seq, Run: s.ID.String(), Kind: change.KindOf(e), At: at, Data: data})
	s.Apply(seq, at, e)
}

func (w *world) sha() string {
	return fmt.Sprintf("%016x%016x%08x", w.r.Uint64(), w.r.Uint64(), w.r.Uint32())
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// open begins a change.
func (w *world) open() *change.State {
	repo := int64(1 + w.r.IntN(3))
	id := change.ID{Kind: change.Pull, Repo: repo, Number: len(w.changes) + 1}
	head := w.sha()
	switch w.r.IntN(6) {
	case 0:
		id = change.ID{Kind: change.Push, Repo: repo, SHA: head}
	case 1:
		id = change.ID{Kind: change.Group, Repo: repo, SHA: head}
	}
	s := change.New(id)
	w.changes = append(w.changes, s)
	w.write(s, change.Seen{Facts: change.Facts{
		Repo: fmt.Sprint("org/repo", repo), Title: fmt.Sprint("Faster, take ", len(w.changes)), Author: pick(w.r, "ann", "bob"), Open: true,
		Head: head, Base: "main", Fork: w.r.IntN(8) == 0,
	}})
	return s
}

func (w *world) result() change.Result {
	n := w.r.IntN(1000)
	return change.Result{
		Outcome: pick(w.r, gates.Pass, gates.Defer, gates.Defer, gates.Error), Reason: gates.ReasonTooSlow, Line: "measured, and found so", Rule: "default",
		Verdict: fmt.Sprint("verdict-", n), Evidence: fmt.Sprint("evidence-", n), Device: "NVIDIA L4",
		Speedups: map[string]float64{"small": w.r.Float64(), "large": w.r.Float64()},
		P50:      map[string]float64{"small": 10 + w.r.Float64(), "large": 1000 + w.r.Float64(), "odd": 55},
		Against:  w.sha(), Arch: "sm_89", Unbuildable: n%7 == 0, Ratios: map[string]change.Ratio{"small": {Value: 0.5 + w.r.Float64(), Dims: "N=1"}, "wide": {Value: 1, Dims: "N=2"}},
	}
}

// next adds an event to a change: most often the one that is due.
func (w *world) next(s *change.State) {
	unfinished := slices.DeleteFunc(slices.Concat(s.Runs, s.ExtraRuns), func(r change.Run) bool { return !r.Unfinished() })
	kernels := []string{"gemm", "softmax", "attention"}
	switch n := w.r.IntN(20); {
	case n == 0:
		f := s.Facts
		f.Head, f.Title = w.sha(), f.Title+"!"
		w.write(s, change.Seen{Facts: f})
	case n == 1:
		f := s.Facts
		f.Open = !f.Open
		f.Merged = !f.Open && w.r.IntN(2) == 0
		w.write(s, change.Seen{Facts: f})
	case n == 2:
		w.write(s, change.Asked{ID: fmt.Sprint("comment-", len(s.Commands)), By: "carol", Request: asked.Read("/rebench"), Head: s.Facts.Head})
	case len(s.Unanswered()) > 0:
		a := change.Answered{ID: s.Unanswered()[0].ID, OK: w.r.IntN(5) > 0, Answer: change.Answer{Kind: change.AnswerCancelled}}
		switch w.r.IntN(5) {
		case 0:
			now, _ := s.Scope()
			a.Effect.Approve = &change.ForkApproved{For: now, By: "carol"}
		case 1:
			now, _ := s.Scope()
			a.Effect.Override = &change.Override{For: now, By: "carol", Reason: "it must", At: "2025-03-01T00:00:00Z"}
		case 2:
			a.Effect.Cancel = s.Facts.Head
		case 3:
			a.Effect.Rebench = []change.Rerun{{Folder: "kernels/" + pick(w.r, kernels...), Bundle: "b2"}}
		default:
			a.Effect.ExtraRuns = []change.ExtraRun{{Folder: "kernels/" + pick(w.r, kernels...), Bundle: "b3", Rebench: asked.Rebench{Versus: asked.Self}}}
		}
		w.write(s, a)
	case len(s.Dropping) > 0:
		w.write(s, change.Dropped{Jobs: slices.Clone(s.Dropping)})
	case s.NeedsPlan():
		p := change.Plan{Key: s.Facts.PlanKey(), Head: s.Facts.Head, Check: "kernelgate", PolicyFile: ".github/kernelgate.yaml", Policy: policy}
		for _, k := range kernels[:1+w.r.IntN(3)] {
			_, had := s.ByFolder("kernels/" + k)
			p.Kernels = append(p.Kernels, change.Kernel{KernelSpec: change.KernelSpec{Name: k, Folder: "kernels/" + k, Rule: "default", Labels: []string{"l4"}, Bundle: "b1"}, Reused: had && w.r.IntN(2) == 0})
		}
		w.write(s, change.Planned{Plan: p})
	case len(unfinished) > 0:
		r := pick(w.r, unfinished...)
		if r.Phase == change.Queued {
			w.write(s, change.Started{Job: r.Job, Token: 1, Runner: "runner-1"})
		} else {
			w.write(s, change.Finished{Job: r.Job, Token: 1, Runner: "runner-1", Result: w.result()})
		}
	default:
		w.write(s, change.Published{Complete: true, Checks: map[string]change.Posted{change.CheckKey("kernelgate", s.Facts.Head): {ID: int64(len(w.events)), Done: true}}})
	}
}

const policy = "version: 1\nrules:\n  - name: default\n    gates:\n      correctness: {}\n      performance: {min_speedup: 10%}\n"

// run makes n events about changes that come and go.
func (w *world) run(n int) *world {
	for len(w.events) < n {
		if len(w.changes) == 0 || w.r.IntN(20) == 0 {
			w.open()
			continue
		}
		recent := w.changes[max(0, len(w.changes)-20):]
		w.next(pick(w.r, recent...))
	}
	return w
}
