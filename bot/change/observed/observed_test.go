package observed_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/change/observed"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

var (
	at     = time.Unix(1_700_000_000, 0)
	ours   = webhook.Repository{ID: 7, FullName: "olga/kernels", DefaultBranch: "main"}
	origin = webhook.Origin{Repository: ours}
	want   = change.Facts{
		Repo: "olga/kernels", DefaultBranch: "main", Title: "Faster", Author: "ann", Labels: []string{"perf"}, Draft: true, Open: true, Merged: true,
		Head: "aa", Base: "next", Updated: at,
	}
)

// An answer and a webhook about the same pull request say the same.
func TestPull(t *testing.T) {
	for name, test := range map[string]struct {
		asked string             // the head's repository in an answer
		told  webhook.Repository // and in a webhook
		fork  bool
	}{
		"own":       {"olga/kernels", ours, false},
		"own, case": {"Olga/Kernels", ours, false},
		"fork":      {"ann/kernels", webhook.Repository{ID: 8, FullName: "ann/kernels"}, true},
		"fork gone": {"", webhook.Repository{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			want := want
			want.Fork = test.fork
			asked := observed.OfPull("olga/kernels", "main", client.Pull{
				Number: 5, Title: "Faster", Author: "ann", Draft: true, Open: true, Merged: true, Labels: []string{"perf"},
				HeadSHA: "aa", HeadRepo: test.asked, BaseRef: "next", UpdatedAt: at,
			})
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("the answer (-want +got):\n%s", diff)
			}
			told := observed.OfEvent(webhook.PullRequest{
				Origin: origin, Number: 5, Title: "Faster", Author: webhook.User{Login: "ann"}, Draft: true, Open: true, Merged: true,
				Labels: []string{"perf"}, HeadSHA: "aa", HeadRepo: test.told, BaseRef: "next", UpdatedAt: at,
			})
			if diff := cmp.Diff(want, told); diff != "" {
				t.Errorf("the webhook (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGroup(t *testing.T) {
	for name, test := range map[string]struct {
		action, branch string
		open           bool
		pulls          []int
	}{
		"asked for":      {"checks_requested", "refs/heads/gh-readonly-queue/main/pr-104-cc", true, []int{104}},
		"gone":           {"destroyed", "refs/heads/gh-readonly-queue/main/pr-104-cc", false, []int{104}},
		"base like it":   {"checks_requested", "refs/heads/gh-readonly-queue/release/pr-5-x/pr-104-cc", true, []int{104}},
		"another branch": {"checks_requested", "refs/heads/pr-104", true, nil},
		"no such number": {"checks_requested", "refs/heads/gh-readonly-queue/main/pr-1234567890-cc", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := observed.OfGroup(webhook.MergeGroup{
				Origin: origin, Action: test.action, HeadSHA: "aa", HeadRef: test.branch, BaseSHA: "bb", BaseRef: "refs/heads/main",
			})
			want := change.Facts{Repo: "olga/kernels", DefaultBranch: "main", Open: test.open, Head: "aa", Base: "main", BaseSHA: "bb", Pulls: test.pulls}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What was written is read where it stands; a review that is taken back says nothing anew.
func TestRemark(t *testing.T) {
	said := webhook.Remark{ID: 3, Body: "/help"}
	for name, test := range map[string]struct {
		event webhook.Event
		id    string
		ok    bool
	}{
		"a comment":          {webhook.IssueComment{Remark: said}, "comment-3", true},
		"on a line":          {webhook.ReviewComment{Remark: said}, "line-3", true},
		"a review":           {webhook.Review{Remark: said, State: "approved"}, "review-3", true},
		"a dismissed review": {webhook.Review{Remark: said, State: "dismissed"}, "", false},
		"a push":             {webhook.Push{}, "", false},
	} {
		said, at, ok := observed.OfRemark(test.event)
		if ok != test.ok || at.ID != test.id || ok && said.Body != "/help" || !ok && said.Body != "" {
			t.Errorf("%s: %v, %v, %v", name, said, at, ok)
		}
	}
}
