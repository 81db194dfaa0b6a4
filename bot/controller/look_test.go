package controller

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/client"
)

// nobody answers that there is no such thing, and remembers what for.
type nobody struct{ asked []string }

func (n *nobody) RoundTrip(rq *http.Request) (*http.Response, error) {
	n.asked = append(n.asked, rq.URL.Path)
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: rq}, nil
}

// A look that was asked for by a name which the repository had looks at it by the name that
// it has, and not at all where it has gone meanwhile.
func TestLookByTheNameOfNow(t *testing.T) {
	heard := &nobody{}
	h, err := client.NewToken("x", client.Options{BaseURL: "http://github.invalid", Transport: heard, Sleep: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	k := New(Config{GitHub: h})
	k.repos.Rename(7, "olga/kernels")
	k.repos.Rename(7, "olga/cuda")
	asked := resyncTarget{repo: 7, name: "olga/kernels"}
	if err := k.resync(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(heard.asked, " ")
	if !strings.Contains(all, "/olga/cuda/") || strings.Contains(all, "/olga/kernels/") {
		t.Errorf("it asked for %s", all)
	}
	k.repos.Suspend(7, "olga/cuda", errors.New("the App was taken out of it"))
	before := len(heard.asked)
	if err := k.resync(t.Context(), asked); err != nil || len(heard.asked) != before {
		t.Errorf("of one that is gone: %v, %v", heard.asked[before:], err)
	}
}
