package controller_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A cut ends the bot's connection to GitHub after the first request of a kind has reached GitHub. So the
// bot does not know whether GitHub has carried out the request.
type cut struct {
	method, path string
	lost         bool // true: the bot gets an error; false: the bot gets no answer until it is stopped
	once         sync.Once
	reached      chan struct{}
}

func newCut(method, path string, lost bool) *cut {
	return &cut{method: method, path: path, lost: lost, reached: make(chan struct{})}
}

func (c *cut) refuse(rq *http.Request) (answer *http.Response) {
	if rq.Method != c.method || !strings.HasSuffix(rq.URL.Path, c.path) {
		return nil
	}
	c.once.Do(func() {
		real, err := http.DefaultTransport.RoundTrip(rq.Clone(context.WithoutCancel(rq.Context())))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, real.Body)
		_ = real.Body.Close()
		close(c.reached)
		if !c.lost {
			<-rq.Context().Done()
		}
		answer = &http.Response{StatusCode: http.StatusBadGateway, Status: "502 Bad Gateway", Header: http.Header{}, Body: http.NoBody, Request: rq, ProtoMajor: 1, ProtoMinor: 1}
	})
	return answer
}

// A bot may be stopped right after it wrote to GitHub, or may lose GitHub's answer. It does not open a
// second issue, and it does not close an issue twice.
func TestWatchCrash(t *testing.T) {
	for name, c := range map[string]*cut{
		"opened":          newCut("POST", "/repos/olga/kernels/issues", false),
		"edited":          newCut("PATCH", "/issues/1", false),
		"commented":       newCut("POST", "/issues/1/comments", false),
		"opened, lost":    newCut("POST", "/repos/olga/kernels/issues", true),
		"commented, lost": newCut("POST", "/issues/1/comments", true),
	} {
		t.Run(name, func(t *testing.T) {
			w := watchedNightly(t, worldOptions{refuse: c.refuse})
			survive := func() {
				if c.lost {
					return
				}
				select {
				case <-c.reached:
				case <-time.After(patience):
					t.Fatal("the bot never sent this request")
				}
				w.no(w.running.stop())
				w.begin()
			}
			push := func(source string) {
				_, err := w.repo.Push("main", map[string]string{sourceFile: source}, "Change")
				w.no(err)
				w.settle()
				w.clock.Add(int64(24 * time.Hour))
			}
			push("// speed 0.8\n")
			if strings.HasPrefix(name, "opened") {
				survive()
			}
			w.measured(1)
			w.shows(true, 0)
			if name == "edited" {
				w.clock.Add(int64(24 * time.Hour))
				survive()
				w.measured(1)
				w.shows(true, 0, "last measured by the watch of 2026-05-06")
			}
			push("// speed 1.0 again\n")
			if strings.HasPrefix(name, "commented") {
				survive()
			}
			w.measured(1)
			w.shows(false, 1, "The slowdown is gone")
		})
	}
}
