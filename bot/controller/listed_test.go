package controller_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// While GitHub does not list the repositories of an installation, the bot does not take those that it knows for all of them.
func TestListedOnceGitHubLists(t *testing.T) {
	var ends atomic.Bool
	var first, spread atomic.Int64 // when GitHub refused first, and how long it has
	w := newWorld(t, worldOptions{watchful: true, retold: true, refuse: func(rq *http.Request) *http.Response {
		if strings.HasSuffix(rq.URL.Path, "/installation/repositories") && !ends.Load() {
			now := time.Now().UnixNano()
			first.CompareAndSwap(0, now)
			spread.Store(now - first.Load())
			return refuse(rq, http.StatusInternalServerError, "Server Error")
		}
		return nil
	}})
	w.poll("a second pass, and the end of the first", func() bool {
		if w.running.bot.Listed() {
			t.Fatal("it knows all repositories, and GitHub has listed none")
		}
		return spread.Load() > int64(time.Second)
	})
	ends.Store(true)
	w.poll("the list", w.running.bot.Listed)
}
