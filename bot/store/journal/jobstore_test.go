package journal

import (
	"errors"
	"testing"
)

// A job that is gone already can be deleted, and its id used again.
func TestDeleteJobTwice(t *testing.T) {
	t.Parallel()
	deletesTwice(t, open(t, Options{}))
}

func deletesTwice(t *testing.T, j *Journal) {
	t.Helper()
	ctx := testContext(t)
	seq, err := j.PutJob(ctx, "l4", "twice", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.PutJob(ctx, "l4", "twice", []byte("{}")); !IsConflict(err) {
		t.Errorf("a second job of the id: %v", err)
	}
	for range 2 {
		if err := j.DeleteJob(ctx, seq); err != nil {
			t.Error(err)
		}
	}
	if _, err := j.StoredJob(ctx, "l4", "twice"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after it was deleted: %v", err)
	}
	if again, err := j.PutJob(ctx, "l4", "twice", []byte("{}")); err != nil || again <= seq {
		t.Errorf("again: %d after %d, %v", again, seq, err)
	}
}

// A lease record that is no JSON of the reader's is an error, and no record is none.
func TestReadLease(t *testing.T) {
	t.Parallel()
	j, ctx := open(t, Options{}), testContext(t)
	var n int
	if revision, err := j.ReadLease(ctx, "none", &n); revision != 0 || err != nil {
		t.Errorf("none: %d, %v", revision, err)
	}
	revision, err := j.WriteLease(ctx, "a", "text", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.ReadLease(ctx, "a", &n); !errors.Is(err, errGarbled) {
		t.Errorf("a text in place of a number: %v", err)
	}
	if _, err := j.WriteLease(ctx, "a", 1, revision+1); !IsConflict(err) {
		t.Errorf("a revision that is not the last: %v", err)
	}
	if _, err := j.WriteLease(ctx, "a", 1, revision); err != nil {
		t.Error(err)
	}
}
