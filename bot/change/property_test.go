package change

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/compat"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/gates"
)

// pick takes any one of a few things.
func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// anyJob is mostly a job that the state knows, at times one long gone.
func anyJob(r *rand.Rand, s *State, ever []string) string {
	known := slices.Concat(s.Runs, s.ExtraRuns, s.Past)
	switch {
	case len(known) > 0 && r.IntN(4) > 0:
		return pick(r, known...).Job
	case len(ever) > 0 && r.IntN(2) > 0:
		return pick(r, ever...)
	}
	return "pr-7-12-ffffffffffff-1"
}

func anyEffect(r *rand.Rand, s *State) Effect {
	kernel := func() string { return pick(r, "a", "b", "c", "z") }
	sha := pick(r, s.Facts.Head, headOne, headTwo)
	switch r.IntN(7) {
	case 0:
		return Effect{Approve: &ForkApproved{For: given(sha), By: "ann"}}
	case 1:
		return Effect{Override: &Override{For: given(sha), By: "ann", Reason: "because"}}
	case 2:
		return Effect{Cancel: sha}
	case 3:
		return Effect{Rebench: []Rerun{{Folder: "kernels/" + kernel(), Bundle: "r1"}, {Folder: "kernels/" + kernel(), Bundle: "r2"}}}
	case 4:
		return Effect{ExtraRuns: []ExtraRun{{Folder: "kernels/" + kernel(), Bundle: "s1", Rebench: grammar.Rebench{Versus: "self"}}, {Folder: "kernels/" + kernel(), Bundle: "s2"}}}
	case 5:
		return Effect{Search: &Search{Folder: "kernels/" + kernel(), Bundle: "s3", Request: grammar.Read("/bisect")}}
	}
	return Effect{}
}

// anyEvent is an event that may or may not fit the state.
func anyEvent(r *rand.Rand, s *State, ever []string) Event {
	id := fmt.Sprint("comment-", r.IntN(8))
	switch r.IntN(14) {
	case 0, 1:
		f := facts(pick(r, headOne, headTwo, s.Facts.Head))
		f.Labels = pick(r, nil, []string{}, []string{"perf"})
		f.Open, f.Fork, f.Draft = r.IntN(5) > 0, s.Facts.Fork || r.IntN(10) == 0, r.IntN(5) == 0
		return Seen{Facts: f}
	case 2, 3:
		plan := Plan{Key: pick(r, s.Facts.PlanKey(), s.Facts.PlanKey(), "old"), Head: s.Facts.Head}
		for range r.IntN(4) {
			k := kernel(pick(r, "a", "b", "c"))
			k.Reused = r.IntN(2) == 0
			if r.IntN(4) == 0 {
				k.Result = &Result{Outcome: gates.Defer}
			}
			plan.Kernels = append(plan.Kernels, k)
		}
		return Planned{plan}
	case 4:
		return Asked{ID: id, By: "ann", Request: grammar.Read(pick(r, "/rebench rounds=3", "/rebench speed=3", "hello")), Head: s.Facts.Head}
	case 5:
		return Answered{ID: id, OK: true, Effect: anyEffect(r, s)}
	case 6:
		return Started{Job: anyJob(r, s, ever), Token: uint64(r.IntN(3)), Runner: "runner", Builds: r.IntN(4) == 0}
	case 7:
		return Finished{Job: anyJob(r, s, ever), Token: uint64(r.IntN(3)), Result: Result{Outcome: pick(r, gates.Pass, gates.Defer, gates.Error), P50: map[string]float64{"s": 1.5}}}
	case 12:
		return Built{Job: anyJob(r, s, ever), Token: uint64(r.IntN(3)), Compiled: Compiled{By: "builder", Fault: pick(r, "", BuildLost)}}
	case 8:
		return Dropped{Jobs: slices.Clone(s.Dropping)}
	case 11:
		return RepublishAsked{}
	case 9:
		return HeadShared{Other: fmt.Sprintf("pr-7-%d", 1+r.IntN(3))}
	case 10:
		return Reviewed{pick(r, nil, &RulesApproved{For: given(pick(r, s.Facts.Head, headOne)), By: "ann", Digest: "d", Reviews: []int64{1}})}
	}
	return Published{Complete: true, Checks: map[string]Posted{"c": {ID: 1}}, Replies: map[string]int64{id: 3}}
}

// roundTrip is a thing after it was stored.
func roundTrip[T any](t *testing.T, v T) T {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back T
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

func stored(t *testing.T, e Event) Event {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(KindOf(e), data)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestAnySequence applies what may come in any order, and looks after each event
// whether what must always hold does.
func TestAnySequence(t *testing.T) {
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := New(testID)
		var ever []string
		for i := range 60 {
			e, seq, at := anyEvent(r, s, ever), uint64(2*i+2), time.Unix(int64(i), 7).UTC()
			before, snapshot := s.Clone(), asJSON(t, s)
			reread := roundTrip(t, s)
			s.Apply(seq, at, e)
			reread.Apply(seq, at, stored(t, e))
			if diff := cmp.Diff(asJSON(t, s), asJSON(t, reread)); diff != "" {
				t.Fatalf("seed %d, event %d (%s): a state and event that were stored lead elsewhere:\n%s", seed, i, KindOf(e), diff)
			}
			if s.NeedsPlan() != reread.NeedsPlan() || s.Settled() != reread.Settled() {
				t.Fatalf("seed %d, event %d (%s): a stored state asks for something else", seed, i, KindOf(e))
			}
			if asJSON(t, before) != snapshot {
				t.Fatalf("seed %d, event %d (%s): a clone was changed", seed, i, KindOf(e))
			}
			ever = checkJobs(t, s, before, ever)
			if s.Settled() && (len(s.Wanted()) > 0 || len(s.Dropping) > 0 || len(s.Unanswered()) > 0 || s.NeedsPlan() || s.NeedsPublish) {
				t.Fatalf("seed %d, event %d (%s): settled, and there is something to do", seed, i, KindOf(e))
			}
			if t.Failed() {
				t.Fatalf("seed %d, event %d: %s %s", seed, i, KindOf(e), asJSON(t, e))
			}
		}
	}
}

// checkJobs looks at the jobs after an event: new ones have new names, an ended
// one stays as it is, none that was wanted is forgotten without being dropped.
func checkJobs(t *testing.T, s, before *State, ever []string) []string {
	t.Helper()
	earlier := slices.Concat(before.Runs, before.ExtraRuns, before.Past)
	seen := map[string]bool{}
	for _, now := range slices.Concat(s.Runs, s.ExtraRuns, s.Past) {
		if seen[now.Job] {
			t.Errorf("job %s is there twice", now.Job)
		}
		seen[now.Job] = true
		i := slices.IndexFunc(earlier, func(r Run) bool { return r.Job == now.Job })
		switch {
		case i < 0 && slices.Contains(ever, now.Job):
			t.Errorf("job %s has the name of an earlier one", now.Job)
		case i < 0:
			ever = append(ever, now.Job)
		case !earlier[i].Unfinished() && (earlier[i].Phase != now.Phase || earlier[i].Result != now.Result):
			t.Errorf("job %s was %s and is %s", now.Job, earlier[i].Phase, now.Phase)
		}
	}
	for _, was := range earlier {
		now, ok := s.Run(was.Job)
		if was.Unfinished() && (!ok || now.Phase == Abandoned) && !slices.Contains(s.Dropping, was.Job) {
			t.Errorf("job %s was given up, and nobody takes it out of the queue", was.Job)
		}
	}
	return ever
}

func TestDecodeRefuses(t *testing.T) {
	for name, e := range map[string]struct{ kind, data string }{
		"unknown kind": {"exploded", "{}"},
		"no JSON":      {"seen", "{"},
		"wrong type":   {"started", `{"token": "x"}`},
	} {
		if got, err := Decode(e.kind, []byte(e.data)); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// An older program refuses kinds and fields that a newer one has added.
func TestDecodeFromNewer(t *testing.T) {
	from := compat.Writer{Version: "v0.2.0", Reader: "v0.1.0"}
	for data, known := range map[string]bool{`{"other": "pr-7-3"}`: true, `{"other": "pr-7-3", "added": true}`: false} {
		event, err := DecodeFrom(from, "head_shared", []byte(data))
		if known != (err == nil) || known != (event == HeadShared{Other: "pr-7-3"}) || !known && !compat.IsUnknown(err) {
			t.Errorf("%s: %v, %v", data, event, err)
		}
	}
	if _, err := DecodeFrom(from, "tuned", []byte("{}")); !compat.IsUnknown(err) {
		t.Errorf("an unknown kind: %v", err)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("seen", []byte(`{"repo":"o/r","head":"1","open":true}`), "planned", []byte(`{"key":"x","kernels":[{"name":"a"}]}`))
	f.Add("asked", []byte(`{"id":"c"}`), "answered", []byte(`{"id":"c","effect":{"cancel":"1","rebench":[{"kernel":"a"}]}}`))
	f.Fuzz(func(t *testing.T, kindA string, a []byte, kindB string, b []byte) {
		s := New(testID)
		s.Apply(1, time.Unix(1, 0).UTC(), Seen{Facts: facts(headOne)})
		s.Apply(2, time.Unix(2, 0).UTC(), Planned{Plan{Key: s.Facts.PlanKey(), Head: headOne, Kernels: []Kernel{kernel("a")}}})
		for i, e := range []struct {
			kind string
			data []byte
		}{{kindA, a}, {kindB, b}} {
			event, err := Decode(e.kind, e.data)
			if err != nil {
				continue
			}
			s.Apply(uint64(i+3), time.Unix(int64(i+3), 0).UTC(), event)
			if text, again := asJSON(t, s), asJSON(t, roundTrip(t, s)); text != again {
				t.Fatalf("%s became %s", text, again)
			}
		}
	})
}
