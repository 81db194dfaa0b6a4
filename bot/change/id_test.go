package change

import (
	"strings"
	"testing"
	"time"
)

func TestIDs(t *testing.T) {
	for _, id := range []ID{
		{Kind: Pull, Repo: 1, Number: 2},
		{Kind: Pull, Repo: 123456789012345678, Number: 999999999},
		{Kind: Group, Repo: 3, SHA: strings.Repeat("a", 40)},
		{Kind: Push, Repo: 3, SHA: strings.Repeat("0", 64)},
		WatchID(3, strings.Repeat("a", 40), time.Date(2026, 5, 4, 2, 0, 0, 0, time.UTC)),
	} {
		if back, err := ParseID(id.String()); err != nil || back != id {
			t.Errorf("%s came back as %v, %v", id, back, err)
		}
		s := New(id)
		s.Seq = 5
		if of, err := OfJob(s.jobID("gemm", 0, 3)); err != nil || of != id {
			t.Errorf("a job of %s is said to be of %v, %v", id, of, err)
		}
	}
	sha, night := strings.Repeat("a", 40), time.Date(2026, 5, 4, 2, 0, 0, 0, time.UTC)
	if WatchID(3, sha, night) == WatchID(3, sha, night.Add(24*time.Hour)) || WatchID(3, sha, night) != WatchID(3, sha, night.In(time.FixedZone("", 3600))) {
		t.Error("a watch is not named by its commit and its time")
	}
	for name, text := range map[string]string{
		"empty": "", "kind": "issue-1-2", "no number": "pr-1-", "sign": "pr--1-2", "long": "pr-1-1234567890", "zeros": "pr-01-2", "zeros in number": "pr-1-02",
		"short SHA": "push-1-abc", "capitals": "push-1-" + strings.ToUpper(sha), "pull with SHA": "pr-1-" + sha, "more": "pr-1-2-3", "newline": "pr-1-2\n",
	} {
		if id, err := ParseID(text); err == nil {
			t.Errorf("%s: %q is %v", name, text, id)
		}
	}
	for name, text := range map[string]string{"change": "pr-1-2", "four words": "pr-1-2-abc", "six words": "pr-1-2-abc-1-1", "kind": "x-1-2-abc-1"} {
		if id, err := OfJob(text); err == nil {
			t.Errorf("%s: %q is a job of %v", name, text, id)
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, seed := range []string{"pr-1-2", "pr-0-0", "push-3-" + strings.Repeat("a", 40), "sweep-3-" + strings.Repeat("a", 40), "group-18-" + strings.Repeat("9", 64), "pr-1-2-abcdef-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := ParseID(text); err == nil && id.String() != text {
			t.Errorf("%q is %s", text, id)
		}
		if id, err := OfJob(text); err == nil && !strings.HasPrefix(text, id.String()+"-") {
			t.Errorf("%q is a job of %s", text, id)
		}
	})
}
