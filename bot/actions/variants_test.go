package actions_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/actions"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/runners"
)

// numbers records the machine code number of every run's rounds.
func (w *world) numbers() *[]int {
	var all []int
	w.measure = func(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
		out, err := measureScripted(ctx, job, dir, p)
		if err == nil && out.Evidence.Performance != nil {
			all = append(all, out.Evidence.Performance.CodeNumber())
		}
		return out, err
	}
	return &all
}

// forcePush replaces a branch by one commit on main, and removes the history from the comment.
// Everyone with write access can do both.
func (w *world) forcePush(pr *embedded.PR, branch, text string) {
	w.Helper()
	for _, c := range pr.Comments() {
		if body, _, found := strings.Cut(c.Body, "<!-- kernelgate:history:"); found {
			w.no(c.Edit("walt", body))
		}
	}
	_, err := w.repo.PushCommit(embedded.Commit{Branch: branch, From: w.repo.Head("main"), Author: "walt", Message: "in place of " + pr.HeadSHA(), Files: source(text)})
	w.no(err)
}

// TestForcePushForgetsNoAttempt checks that a force-push and an edited comment do not reset the
// count of attempts at the same machine code.
func TestForcePushForgetsNoAttempt(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	all := w.attempts()
	pr := w.propose("close", source("speed 1.1"), embedded.PROptions{})
	for range 3 {
		w.act("pull_request")
		w.forcePush(pr, "close", "speed 1.1")
	}
	w.counted("amended, with the comment edited", all, 1, 2, 3)
}

// TestVariantsAreNumbered checks that every distinct machine code of a pull request or of its
// author gets the next number, in spite of force-pushes, and that a measured one keeps its number.
func TestVariantsAreNumbered(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	all := w.numbers()
	must := func(what string, want ...int) {
		t.Helper()
		if !slices.Equal(*all, want) {
			t.Errorf("%s: the machine codes have the numbers %v, want %v", what, *all, want)
		}
	}
	pr := w.propose("close", source("speed 1.1 variant 1"), embedded.PROptions{})
	w.act("pull_request")
	for _, n := range []int{2, 3, 1} {
		w.forcePush(pr, "close", fmt.Sprint("speed 1.1 variant ", n))
		j := w.act("pull_request")
		if n == 3 {
			w.holds(j.summary, "This is machine code 3 of this change or its author")
		}
	}
	must("one pull request", 1, 2, 3, 1)
	w.propose("second", source("speed 1.1 variant 4"), embedded.PROptions{})
	w.act("pull_request")
	must("the author's second pull request", 1, 2, 3, 1, 4)
	w.propose("third", source("speed 1.1 variant 5"), embedded.PROptions{Author: "olga"})
	w.act("pull_request")
	must("another author", 1, 2, 3, 1, 4, 1)
}

// TestUncountableAttempts checks that nothing is measured if the earlier attempts cannot be read,
// because the attempt may not be the first.
func TestUncountableAttempts(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	all := w.attempts()
	pr := w.propose("close", source("speed 1.3"), embedded.PROptions{})
	w.act("pull_request")
	w.forcePush(pr, "close", "speed 1.3")
	hub, err := url.Parse(w.hub.URL())
	w.no(err)
	proxy := httputil.NewSingleHostReverseProxy(hub)
	blind := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Query().Get("check_name"), " attempts by ") {
			http.Error(rw, "{}", http.StatusNotFound)
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	defer blind.Close()
	j := w.actIn(t.Context(), "pull_request", func(c *actions.Config) {
		env := c.Getenv
		c.Getenv = func(name string) string {
			if name == "GITHUB_API_URL" {
				return blind.URL
			}
			return env(name)
		}
	})
	w.must(j, "ERROR", "runner", 3)
	w.holds(j.log, "reading the attempts from the checks of")
	w.counted("the first alone", all, 1)
}
