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

// gated counts fetches, and holds the first until it may go on.
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

// Those who come while somebody fetches share the next fetch. One that cannot have what
// it asks for spoils it for nobody else, and neither does one who leaves.
func TestFetchesAreShared(t *testing.T) {
	const most = 12
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
			<-o.begun // for one alone: whoever comes now waits
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
