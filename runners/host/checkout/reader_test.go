package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A mirrored is a bare repository, and the work tree that its commits come from.
type mirrored struct {
	*testing.T
	*Repo
	from string
}

func mirrorOf(t *testing.T) mirrored {
	t.Helper()
	from := repository(t).Dir()
	dir := filepath.Join(t.TempDir(), "mirror.git")
	m := mirrored{T: t, Repo: OpenBare(dir), from: from}
	m.readers.keep = time.Hour // until the test changes it
	m.git(from, "clone", "-q", "--mirror", ".", dir)
	t.Cleanup(m.dismiss)
	return m
}

func (m mirrored) git(dir string, args ...string) string {
	m.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...).CombinedOutput()
	if err != nil {
		m.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// look reads as a plan does.
func (m mirrored) look(rev string) (string, error) {
	r := m.Again()
	at, err := r.Resolve(m.Context(), rev)
	if err != nil {
		return "", err
	}
	text, err := r.Read(m.Context(), at, "k/one/one.c")
	return string(text), err
}

// commit writes the source on the branch topic, and fetches it into the mirror.
func (m mirrored) commit(text string) string {
	m.Helper()
	if err := os.WriteFile(filepath.Join(m.from, "k/one/one.c"), []byte(text), 0o644); err != nil {
		m.Fatal(err)
	}
	m.git(m.from, "commit", "-qam", text)
	m.git(m.Dir(), "fetch", "-q", m.from, "+refs/heads/*:refs/heads/*")
	return m.git(m.from, "rev-parse", "HEAD")
}

// pids returns the idle processes.
func (m mirrored) pids() []int {
	m.readers.mu.Lock()
	defer m.readers.mu.Unlock()
	var all []int
	for _, how := range []string{"--batch", "--batch-check"} {
		for _, rd := range m.readers.resting[how] {
			all = append(all, rd.cmd.Process.Pid)
		}
	}
	return all
}

// dismiss makes all of them retire.
func (m mirrored) dismiss() {
	m.readers.mu.Lock()
	m.readers.keep = 0
	for _, list := range m.readers.resting {
		for _, rd := range list {
			rd.rest.Reset(0)
		}
	}
	m.readers.mu.Unlock()
}

func (m mirrored) gone(pids []int) {
	m.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, pid := range pids {
		for syscall.Kill(pid, 0) == nil { // a process that was not waited for still exists
			if time.Now().After(deadline) {
				m.Fatalf("git %d is still there", pid)
			}
			runtime.Gosched()
		}
	}
}

// TestKeptReaderSeesWhatComes checks that a kept git process finds objects that arrive after it
// started, however git stores them.
func TestKeptReaderSeesWhatComes(t *testing.T) {
	m := mirrorOf(t)
	if text, err := m.look("refs/heads/topic"); err != nil || text != "new" {
		t.Fatalf("%q, %v", text, err)
	}
	was := fmt.Sprint(m.pids())
	for i, store := range [][]string{nil, {"repack", "-adq"}, {"pack-refs", "--all"}, {"gc", "-q", "--prune=now"}, nil} {
		text := fmt.Sprintf("text %d", i)
		sha := m.commit(text)
		if store != nil {
			m.git(m.Dir(), store...)
		}
		for _, rev := range []string{"refs/heads/topic", sha} {
			if got, err := m.look(rev); err != nil || got != text {
				t.Errorf("after %v, %s: %q, %v; want %q", store, rev, got, err, text)
			}
		}
	}
	if is := fmt.Sprint(m.pids()); is != was || len(m.pids()) != 2 {
		t.Errorf("the processes were %s and are %s, want the same two", was, is)
	}
	m.git(m.Dir(), "update-ref", "-d", "refs/heads/topic")
	if got, err := m.look("refs/heads/topic"); err == nil {
		t.Errorf("a branch that is gone has %q", got)
	}
	if _, err := m.Resolve(t.Context(), strings.Repeat("0", 40)); err == nil {
		t.Error("a commit that is not there was found")
	}
}

// TestKeptReaderIsKilled checks that a process that was killed, or whose repository was replaced,
// is not used.
func TestKeptReaderIsKilled(t *testing.T) {
	m := mirrorOf(t)
	for i := range 3 {
		sha := m.commit(fmt.Sprint("text ", i)) // nothing of it is cached
		for _, pid := range m.pids() {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := m.look(sha); err != nil || got != fmt.Sprint("text ", i) {
			t.Errorf("after a kill: %q, %v", got, err)
		}
	}
	was := m.pids()
	if err := os.RemoveAll(m.Dir()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.look("refs/heads/main"); err == nil {
		t.Error("a repository that is gone has a branch")
	}
	m.git(m.from, "clone", "-q", "--mirror", ".", m.Dir())
	sha := m.commit("anew")
	if got, err := m.look(sha); err != nil || got != "anew" {
		t.Errorf("of another repository at the same place: %q, %v", got, err)
	}
	m.gone(was)
}

// TestReadersEnd checks that no process is left when nobody asks any more, nor after a deadline or
// a refusal, and that only a few stay idle.
func TestReadersEnd(t *testing.T) {
	m := mirrorOf(t)
	topic, err := m.Resolve(t.Context(), "refs/heads/topic")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	rd, err := m.borrow(ctx, "--batch")
	if err != nil {
		t.Fatal(err)
	}
	cancel(errors.New("too long"))
	err = rd.giveBack(rd.each([]string{topic}, func(int, answer) error {
		_, err := rd.out.ReadString(0) // git sends no zero byte, so this ends when git ends
		return err
	}))
	if err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("at the deadline: %v", err)
	}
	m.gone([]int{rd.cmd.Process.Pid})
	if _, err := m.borrow(ctx, "--batch"); err == nil {
		t.Error("who is late has got one")
	}

	small := m.Again()
	limits := *usual()
	limits.Trees, small.limits, small.memo = 10, &limits, newMemo()
	before := m.pids()
	if _, err := small.Kernels(t.Context(), topic); !errors.As(err, new(Refused)) {
		t.Errorf("longer than it may be: %v", err)
	}
	if got, err := m.look(topic); err != nil || got != "new" {
		t.Errorf("after a refusal: %q, %v", got, err)
	}

	var all sync.WaitGroup
	var held sync.WaitGroup
	held.Add(3 * maxResting)
	for range 3 * maxResting {
		all.Go(func() {
			rd, err := m.borrow(t.Context(), "--batch")
			held.Done()
			held.Wait() // all at once
			if err == nil {
				err = rd.giveBack(nil)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	resting := m.pids()
	if len(resting) > 2*maxResting {
		t.Errorf("%d processes rest", len(resting))
	}
	m.dismiss()
	m.gone(append(before, resting...))
}

// TestReaderThatCannotStart checks that git's own message is reported if git does not work.
func TestReaderThatCannotStart(t *testing.T) {
	dir := t.TempDir()
	_, err := OpenBare(dir).Kernels(t.Context(), strings.Repeat("0", 40))
	if err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("in a folder that is none: %v", err)
	}
	if _, err := OpenBare(filepath.Join(dir, "none")).Kernels(t.Context(), strings.Repeat("0", 40)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("where there is no folder: %v", err)
	}
}

// TestReadersRestInABubble checks that the fake clock of a synctest bubble advances although a
// process is idle, and that the process then retires.
func TestReadersRestInABubble(t *testing.T) {
	dir := mirrorOf(t).Dir()
	synctest.Test(t, func(t *testing.T) {
		r := OpenBare(dir)
		if _, err := r.Kernels(t.Context(), "refs/heads/main"); err != nil {
			t.Fatal(err)
		}
		m := mirrored{T: t, Repo: r}
		pids := m.pids()
		<-time.After(2 * restingFor) // returns at once
		synctest.Wait()
		if left := m.pids(); len(pids) != 2 || len(left) != 0 {
			t.Errorf("%v rested, and %v still do", pids, left)
		}
		m.gone(pids)
	})
}

// TestReaderThatWasAskedMuch checks that a process with many queries is not kept for ever, because
// it is unknown what git caches.
func TestReaderThatWasAskedMuch(t *testing.T) {
	m := mirrorOf(t)
	rd, err := m.borrow(t.Context(), "--batch-check")
	if err != nil {
		t.Fatal(err)
	}
	rd.asked = maxAsked
	if err := rd.giveBack(rd.each([]string{"refs/heads/main"}, func(_ int, a answer) error {
		if a.kind != "commit" {
			return fmt.Errorf("it is a %s", a.kind)
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	if pids := m.pids(); len(pids) != 0 {
		t.Errorf("it rests: %v", pids)
	}
	m.gone([]int{rd.cmd.Process.Pid})
}

// TestMergeBaseIsGits checks that git merge-base is not called if the commits lie in a straight
// line, and that the result is the same.
func TestMergeBaseIsGits(t *testing.T) {
	m := mirrorOf(t)
	main := m.git(m.from, "rev-parse", "main")
	for i := range 25 {
		m.git(m.from, "commit", "-q", "--allow-empty", "-m", fmt.Sprint("one more ", i))
	}
	m.git(m.from, "switch", "-qc", "side", "topic~23")
	m.git(m.from, "commit", "-q", "--allow-empty", "-m", "aside")
	m.git(m.from, "switch", "-qc", "both", "topic~20")
	m.git(m.from, "merge", "-q", "-m", "both", "side")
	m.git(m.from, "switch", "-q", "--orphan", "alone")
	m.git(m.from, "commit", "-q", "--allow-empty", "-m", "alone")
	m.git(m.Dir(), "fetch", "-q", m.from, "+refs/heads/*:refs/heads/*")
	var commits []string
	for _, rev := range []string{"main", "topic", "topic~4", "topic~21", "side", "both", "both^1", "both^2", "alone"} {
		commits = append(commits, m.git(m.from, "rev-parse", rev))
	}
	for _, a := range commits {
		for _, b := range commits {
			want, err := exec.Command("git", "-C", m.from, "merge-base", a, b).Output()
			got, errGot := m.Again().MergeBase(t.Context(), a, b)
			if (err == nil) != (errGot == nil) || err == nil && got != strings.TrimSpace(string(want)) {
				t.Errorf("%s and %s: %s (%v), and git says %s (%v)", a, b, got, errGot, want, err)
			}
		}
	}
	// Now no other git command works here.
	if err := os.Rename(m.Dir()+"/refs", m.Dir()+"/gone"); err != nil {
		t.Fatal(err)
	}
	fresh := m.Again()
	fresh.memo = newMemo()
	if got, err := fresh.MergeBase(t.Context(), main, commits[3]); err != nil || got != main {
		t.Errorf("by itself: %s, %v", got, err)
	}
}
