package mirror

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// gated counts fetches, and blocks the first until the test opens it.
type gated struct {
	base, token string
	fetches     atomic.Int64
	begun, open chan struct{}
}

func (o *gated) CloneURL(repo string) string { return o.base + "/" + repo + ".git" }

func (o *gated) GitCredential(ctx context.Context, _ string) (string, string, error) {
	if o.fetches.Add(1) == 1 {
		close(o.begun)
		<-o.open
	}
	return "x-access-token", o.token, ctx.Err()
}

func newHub(t *testing.T) (*embedded.Server, *embedded.Repo) {
	t.Helper()
	hub, err := embedded.New(embedded.Options{Dir: t.TempDir(), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hub.Close() })
	repo, err := hub.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "kernels"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Push("main", map[string]string{"a.cu": "one\n"}, "one"); err != nil {
		t.Fatal(err)
	}
	return hub, repo
}

// TestFetchesAreShared checks that callers that arrive during a fetch share the next one. A caller
// with a missing ref does not make the others fail, and neither does a caller that leaves.
func TestFetchesAreShared(t *testing.T) {
	const most = 12
	hub, _ := newHub(t)
	for name, spoilt := range map[string]bool{"all is there": false, "one ref is gone": true} {
		t.Run(name, func(t *testing.T) {
			o := &gated{base: hub.URL(), token: hub.CreateToken("olga"), begun: make(chan struct{}), open: make(chan struct{})}
			s := &Store{Dir: t.TempDir(), Origin: o}
			var all sync.WaitGroup
			var failed atomic.Int64
			come := func(i int) {
				all.Go(func() {
					refs := []string{}
					if spoilt && i == most-1 {
						refs = append(refs, "refs/pull/99/head")
					}
					got, err := s.Fetch(t.Context(), "olga/kernels", refs...)
					if err == nil {
						_, err = got.Resolve(t.Context(), "refs/heads/main")
					}
					if err != nil {
						failed.Add(1)
						if len(refs) == 0 || !strings.Contains(err.Error(), "refs/pull/99/head") {
							t.Error(err)
						}
					}
				})
			}
			come(0)
			<-o.begun // the fetch for one caller has begun: callers that arrive now wait
			for i := 1; i < most; i++ {
				come(i)
			}
			waiting := func() int {
				m := s.mirrored("olga/kernels")
				s.mu.Lock()
				defer s.mu.Unlock()
				return m.next.users
			}
			for waiting() < most-1 {
				runtime.Gosched()
			}
			gone, cancel := context.WithCancelCause(t.Context())
			cancel(fmt.Errorf("away"))
			if _, err := s.Fetch(gone, "olga/kernels"); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("one who left: %v", err)
			}
			close(o.open)
			all.Wait()
			want := int64(2)
			if spoilt {
				want = most + 1
			}
			if n := o.fetches.Load(); n > want {
				t.Errorf("%d fetches for %d, want %d at most", n, most, want)
			}
			if spoilt != (failed.Load() == 1) {
				t.Errorf("%d failed", failed.Load())
			}
		})
	}
}

// TestAnnouncedHeadsComeAlong checks that announced heads come with the next fetch, for any caller,
// and are not fetched again for the caller that announced them. This holds once per head, and does
// no harm.
func TestAnnouncedHeadsComeAlong(t *testing.T) {
	hub, repo := newHub(t)
	o := &gated{base: hub.URL(), token: hub.CreateToken("olga"), begun: make(chan struct{}), open: make(chan struct{})}
	close(o.open)
	s := &Store{Dir: t.TempDir(), Origin: o}
	propose := func(branch string) (head, ref string) {
		t.Helper()
		if _, err := repo.Push(branch, map[string]string{"a.cu": branch}, branch); err != nil {
			t.Fatal(err)
		}
		pr, err := repo.OpenPR(embedded.PROptions{Head: branch, Title: branch, Author: "olga"})
		if err != nil {
			t.Fatal(err)
		}
		return pr.HeadSHA(), fmt.Sprintf("refs/pull/%d/head", pr.Number())
	}
	fetched := func(what string, want int64, fetch func() error) {
		t.Helper()
		was := o.fetches.Load()
		if err := fetch(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if n := o.fetches.Load() - was; n != want {
			t.Errorf("%s: %d fetches, want %d", what, n, want)
		}
	}
	look := func(head, ref string) func() error {
		return func() error {
			got, err := s.FetchHead(t.Context(), "olga/kernels", head, ref)
			if err == nil {
				_, err = got.Resolve(t.Context(), head)
			}
			return err
		}
	}
	other := func() error {
		_, err := s.Fetch(t.Context(), "olga/kernels")
		return err
	}
	head, ref := propose("first")
	fetched("not announced", 1, look(head, ref))
	s.Soon("olga/kernels", head, ref)
	fetched("announced, and no fetch since", 1, look(head, ref))
	fetched("its own fetch counts once", 1, look(head, ref))

	second, ref2 := propose("second")
	s.Soon("olga/kernels", head, ref)
	s.Soon("olga/kernels", second, ref2)
	s.Soon("nobody's name", head, ref)
	fetched("somebody else", 1, other)
	fetched("brought along", 0, look(second, ref2))
	fetched("brought along too", 0, look(head, ref))
	fetched("again", 1, look(second, ref2))

	third, ref3 := propose("third")
	s.Soon("olga/kernels", third, ref3)
	fetched("somebody else again", 1, other)
	m := s.mirrored("olga/kernels")
	s.mu.Lock()
	m.ahead.there[third] = m.ahead.there[third].Add(-heldFor)
	s.mu.Unlock()
	fetched("too long ago", 1, look(third, ref3))

	fourth, ref4 := propose("fourth")
	s.Soon("olga/kernels", fourth, ref4)
	s.Soon("olga/kernels", strings.Repeat("0", 40), "refs/pull/99/head")
	fetched("with one that is gone", 2, other)
	fetched("what was spoilt", 1, look(fourth, ref4))

	var all sync.WaitGroup
	all.Go(func() {
		for i := range 200 {
			s.Soon("olga/kernels", fmt.Sprintf("%040x", 1<<20+i), ref)
		}
	})
	fetched("while others announce", 1, other)
	all.Wait()

	for i := range 3 * maxAhead {
		s.Soon("olga/kernels", fmt.Sprintf("%040x", i), ref)
	}
	if n := len(m.ahead.soon); n != maxAhead {
		t.Errorf("%d are announced", n)
	}
}
