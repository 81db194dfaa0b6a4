package repos

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

func repo(id int64, name string) webhook.Repository {
	return webhook.Repository{ID: id, FullName: name}
}

// A late delivery does not give a repository its old name back, and a renamed repository is still watched.
func TestNames(t *testing.T) {
	var log bytes.Buffer
	r := New([]string{"Olga/Kernels"}, slog.New(slog.NewTextHandler(&log, nil)))
	if r.Observe(repo(8, "mona/kernels")) || r.Name(8) != "" {
		t.Error("a repository that the configuration leaves out is watched")
	}
	if !r.Observe(repo(7, "olga/kernels")) {
		t.Error("a name in different case is not watched")
	}
	r.Rename(7, "olga/cuda")
	if !r.Observe(repo(7, "olga/kernels")) || r.Name(7) != "olga/cuda" || !r.Known(repo(7, "olga/cuda")) {
		t.Errorf("after a late delivery the name is %q", r.Name(7))
	}
	if !strings.Contains(log.String(), "change it before the next start") {
		t.Errorf("the operator is not warned: %s", &log)
	}
	if of := r.Of("OLGA"); len(of) != 1 || of[0] != repo(7, "olga/cuda") {
		t.Errorf("the account has %v", of)
	}
	r.Names()[7] = "changed"
	if r.Name(7) != "olga/cuda" {
		t.Error("Names is not a copy")
	}
	if r.Reset(); len(r.Names()) != 0 {
		t.Error("Reset leaves names")
	}
	if !New(nil, slog.New(slog.DiscardHandler)).Observe(repo(9, "any/one")) {
		t.Error("without a list, not every repository is watched")
	}
}

// A suspended repository comes back by Resume, and only one that ended has a reason for its changes to end.
func TestSuspend(t *testing.T) {
	r := New(nil, slog.New(slog.DiscardHandler))
	r.Suspend(7, "olga/kernels", errors.New("it is archived"))
	if !r.Suspended(7) || r.Ended(7) != "" || r.Suspended(8) {
		t.Error("suspended")
	}
	r.End(7, "it was deleted")
	r.Suspend(7, "olga/kernels", errors.New("not found"))
	if r.Ended(7) != "it was deleted" {
		t.Errorf("a later fault replaces the reason: %q", r.Ended(7))
	}
	if r.Resume(7); r.Suspended(7) || r.Ended(7) != "" {
		t.Error("resumed")
	}
}
