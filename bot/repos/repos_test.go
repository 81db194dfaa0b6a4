package repos

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/compat"
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
	if r.Resume(7, r.Moment()); r.Suspended(7) || r.Ended(7) != "" {
		t.Error("resumed")
	}
	asked := r.Moment()
	r.End(7, "it was deleted")
	if r.Resume(7, asked); r.Ended(7) != "it was deleted" {
		t.Error("a list that GitHub was asked for before the end has brought it back")
	}
	if !r.Resume(7, r.Moment()) || r.Suspended(7) {
		t.Error("a later list has not brought it back")
	}
	r.End(7, "it was deleted")
	asked = r.Moment()
	if r.Revive(7, "olga/kernels"); r.Suspended(7) || r.Ended(7) != "" || !r.Doubtful(7) {
		t.Error("a delivery has not brought it back in doubt")
	}
	r.Suspend(7, "olga/kernels", errors.New("not found"))
	if r.Revive(7, "olga/kernels"); !r.Doubtful(7) {
		t.Error("another delivery has ended the doubt")
	}
	for n := 1; n < 3; n++ {
		if why, denials := r.Deny(7); why != "it was deleted" || denials != n {
			t.Errorf("%d answers that it is not there: %q, %d", n, why, denials)
		}
	}
	if why, denials := r.Deny(8); why != "" || denials != 0 {
		t.Errorf("a repository that is not doubtful: %q, %d", why, denials)
	}
	if !r.Resume(7, asked) || r.Doubtful(7) {
		t.Error("a list that was asked for after the end has not ended the doubt")
	}
	r.End(7, "it was deleted")
	r.Revive(7, "olga/kernels")
	if r.End(7, "the App was removed"); r.Doubtful(7) || r.Ended(7) != "the App was removed" {
		t.Error("doubtful, and ended again")
	}
	r.Suspend(8, "olga/cuda", errors.New("it is archived"))
	if r.Revive(8, "olga/cuda"); r.Suspended(8) || r.Doubtful(8) {
		t.Error("a suspended one is doubtful")
	}
}

// A name belongs to one repository. The one that lost it is skipped until GitHub lists it, whatever late
// deliveries say, and a name from the journal counts only after GitHub has said it.
func TestNameGoesToAnother(t *testing.T) {
	r := New(nil, slog.New(slog.DiscardHandler))
	r.Observe(repo(7, "olga/kernels"))
	if !r.Confirmed(7) || r.Confirmed(8) {
		t.Error("confirmed")
	}
	if !r.Observe(repo(8, "Olga/Kernels")) || r.Name(8) != "Olga/Kernels" || r.Name(7) != "" || !r.Suspended(7) || r.Suspended(8) || r.Confirmed(7) {
		t.Errorf("after a namesake came: %v", r.Names())
	}
	if r.Observe(repo(7, "olga/kernels")) || r.Name(7) != "" || r.Name(8) != "Olga/Kernels" {
		t.Errorf("after a late delivery: %v", r.Names())
	}
	r.Rename(7, "olga/cuda")
	r.Resume(7, r.Moment())
	if !r.Observe(repo(7, "olga/kernels")) || r.Name(7) != "olga/cuda" || r.Suspended(7) || !r.Confirmed(7) {
		t.Errorf("after GitHub listed it: %v", r.Names())
	}
	r.End(8, "it was deleted")
	r.Rename(7, "olga/kernels")
	if r.Name(8) != "" || r.Ended(8) != "it was deleted" {
		t.Errorf("a deleted one that lost its name: %v, %q", r.Names(), r.Ended(8))
	}
	r.End(9, "it was deleted")
	if r.Observe(repo(9, "olga/kernels")) || r.Name(7) != "olga/kernels" {
		t.Errorf("a late delivery of a deleted one has taken the name of its successor: %v", r.Names())
	}
	if r.Revive(8, "Olga/kernels"); r.Name(7) != "olga/kernels" || r.Name(8) != "" {
		t.Errorf("a late rename of a deleted one has taken a name: %v", r.Names())
	}
	if r.Revive(8, "olga/cuda"); r.Name(8) != "olga/cuda" {
		t.Errorf("it was renamed: %v", r.Names())
	}
	few := New([]string{"olga/kernels"}, slog.New(slog.DiscardHandler))
	if few.Confirm(9, "mona/kernels"); !few.Confirmed(9) || few.Known(repo(9, "mona/kernels")) {
		t.Error("a repository that is not watched any more is watched again, or not confirmed")
	}
	if few.Confirm(10, "olga/kernels"); few.Name(10) != "olga/kernels" {
		t.Errorf("a watched one has the name %q", few.Name(10))
	}
}

// Every event is stored and read again, and an unknown one is refused.
func TestEvents(t *testing.T) {
	for _, e := range []Event{Named{Repo: 7, Name: "olga/cuda"}, Removed{Repo: 7, Why: "deleted"}, MadePublic{Repo: 7, Name: "olga/cuda"}, MadePrivate{Name: "olga/cuda"}} {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Decode(compat.Writer{}, KindOf(e), data); err != nil || got != e {
			t.Errorf("%+v is read as %+v (%v)", e, got, err)
		}
	}
	if _, err := Decode(compat.Writer{}, "repository_sold", []byte("{}")); !compat.IsUnknown(err) {
		t.Errorf("an unknown event: %v", err)
	}
	if !IsSubject(Subject(7)) || !IsSubject(PublicSubject("olga/cuda")) || PublicSubject("Olga/CUDA") != PublicSubject("olga/cuda") || IsSubject("pr-7-1") {
		t.Error("subjects")
	}
}
