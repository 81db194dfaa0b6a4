package answer_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/answer"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
)

// said is the reviews of a pull request that was sent to another branch at a time, whose
// files have owners. People have the role that they are called.
type said struct {
	reviews []client.Review
	moved   time.Time
	owners  [][]string
}

func (s said) Reviews(context.Context, string, int) ([]client.Review, error) { return s.reviews, nil }
func (s said) Retargeted(context.Context, string, int) (time.Time, error)    { return s.moved, nil }
func (s said) Owners(context.Context, string, string, []string) ([][]string, error) {
	return s.owners, nil
}

func TestRulesByReview(t *testing.T) {
	minute := func(n int) time.Time { return time.Date(2026, 1, 2, 3, n, 0, 0, time.UTC) }
	by := func(who string, state client.ReviewState, sha string) client.Review {
		return client.Review{Author: who, State: state, SHA: sha}
	}
	yes := by("write", client.Approved, head)
	approved := func(who string, reviews ...int64) *change.RulesApproved {
		return &change.RulesApproved{For: scope, By: who, At: minute(int(slices.Max(reviews))).Format(time.RFC3339), Digest: "d", Reviews: reviews}
	}
	both := [][]string{{"write", "admin"}}
	for _, test := range []struct {
		name    string
		reviews []client.Review // numbered from 1, a minute apart
		owners  [][]string
		bend    func(*change.State)
		moved   int
		want    *change.RulesApproved
	}{
		{"an owner", []client.Review{yes}, both, nil, 0, approved("write", 1)},
		{"in other letters", []client.Review{yes}, [][]string{{"wRITE"}}, nil, 0, approved("write", 1)},
		{"nobody", nil, both, nil, 0, nil},
		{"no owners", []client.Review{yes}, nil, nil, 0, nil},
		{"no owner", []client.Review{by("maintain", client.Approved, head)}, both, nil, 0, nil},
		{"an owner who may only read", []client.Review{by("read", client.Approved, head)}, [][]string{{"read"}}, nil, 0, nil},
		{"of another head", []client.Review{by("write", client.Approved, other)}, both, nil, 0, nil},
		{"a comment", []client.Review{by("write", "COMMENTED", head)}, both, nil, 0, nil},
		{"a comment after it", []client.Review{yes, by("write", "COMMENTED", head)}, both, nil, 0, approved("write", 1)},
		{"superseded", []client.Review{yes, by("write", client.ChangesRequested, head)}, both, nil, 0, nil},
		{"superseded in other letters", []client.Review{yes, by("WRITE", client.ChangesRequested, head)}, both, nil, 0, nil},
		{"superseded and said again", []client.Review{yes, by("write", client.ChangesRequested, head), yes}, both, nil, 0, approved("write", 3)},
		{"superseded for an earlier head", []client.Review{yes, by("write", client.Approved, other)}, both, nil, 0, nil},
		{"dismissed", []client.Review{by("write", client.Dismissed, head)}, both, nil, 0, nil},
		{"dismissed after an approval", []client.Review{yes, by("write", client.Dismissed, head)}, both, nil, 0, nil},
		{"another's objection", []client.Review{yes, by("admin", client.ChangesRequested, head)}, both, nil, 0, approved("write", 1)},
		{"the author's", []client.Review{yes}, both, func(s *change.State) { s.Facts.Author = "Write" }, 0, nil},
		{"the pusher's", []client.Review{yes}, both, func(s *change.State) { s.Facts.Repo = "o/pushed-by-Write" }, 0, nil},
		{"of a head that nobody knows the pusher of", []client.Review{yes}, both, func(s *change.State) { s.Facts.Repo = "o/pushed-by-nobody" }, 0, nil},
		{"another owner's than the pusher's", []client.Review{yes, by("admin", client.Approved, head)}, both, func(s *change.State) { s.Facts.Repo = "o/pushed-by-write" }, 0, approved("admin", 2)},
		{"an administrator's own", []client.Review{by("admin", client.Approved, head)}, both, func(s *change.State) { s.Facts.Author = "admin" }, 0, nil},
		{"a program's", []client.Review{{Author: "write", State: client.Approved, SHA: head, Bot: true}}, both, nil, 0, nil},
		{"one of two sets", []client.Review{yes}, [][]string{{"write"}, {"admin"}}, nil, 0, nil},
		{"each of two sets", []client.Review{yes, by("admin", client.Approved, head)}, [][]string{{"admin"}, {"write"}}, nil, 0, approved("admin, @write", 2, 1)},
		{"one in two sets", []client.Review{yes}, [][]string{{"write"}, {"admin", "write"}}, nil, 0, approved("write", 1)},
		{"before it went to another branch", []client.Review{yes}, both, nil, 1, nil},
		{"after it went to another branch", []client.Review{by("admin", client.Approved, head), yes}, both, nil, 1, approved("write", 2)},
		{"before the rules were others", []client.Review{yes}, both, func(s *change.State) { s.RulesSince = minute(1) }, 0, nil},
		{"after the rules were others", []client.Review{yes}, both, func(s *change.State) { s.RulesSince = minute(1).Add(-time.Second) }, 0, approved("write", 1)},
		{"that has counted for these differences", []client.Review{yes}, both, func(s *change.State) {
			s.RulesSince, s.RulesApproved = minute(9), &change.RulesApproved{For: scope, Digest: "d", Reviews: []int64{1}}
		}, 0, approved("write", 1)},
		{"that has counted for other differences", []client.Review{yes}, both, func(s *change.State) {
			s.RulesSince, s.RulesApproved = minute(9), &change.RulesApproved{For: scope, Digest: "e", Reviews: []int64{1}}
		}, 0, nil},
		{"what only tightens", []client.Review{yes}, both, func(s *change.State) { s.Plan.RuleChange.Loosens = false }, 0, nil},
		{"too many files", []client.Review{yes}, both, func(s *change.State) { s.Plan.RuleChange.Files = nil }, 0, nil},
		{"facts that were not planned yet", []client.Review{yes}, both, func(s *change.State) { s.Facts.Base = "next" }, 0, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := stateOf(loosens)
			if s.Plan.RuleChange.Files = []string{"a"}; test.bend != nil {
				test.bend(s)
			}
			all := said{owners: test.owners, moved: minute(test.moved)}
			for i, r := range test.reviews {
				r.ID, r.At = int64(i+1), minute(i+1)
				all.reviews = append(all.reviews, r)
			}
			got, err := answer.Decider{People: people{}, Now: time.Now}.RulesByReview(t.Context(), s, all, all)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	all := said{reviews: []client.Review{{Author: "outage", State: client.Approved, SHA: head, At: minute(1)}}, owners: [][]string{{"outage"}}}
	s := stateOf(loosens)
	s.Plan.RuleChange.Files = []string{"a"}
	if got, err := (answer.Decider{People: people{}, Now: time.Now}).RulesByReview(t.Context(), s, all, all); err == nil || got != nil {
		t.Error("a role that nobody knows is enough")
	} else if errors.Unwrap(err) != nil {
		t.Error(err)
	}
}
