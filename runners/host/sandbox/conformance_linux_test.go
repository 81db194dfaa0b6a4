package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestConformance checks the sandbox's promise. The test binary makes every attempt inside, and the
// sandbox refuses it with a message that says what it refused.
func TestConformance(t *testing.T) {
	needSandbox(t)
	t.Parallel()
	outside := t.TempDir()
	key := filepath.Join(outside, "key")
	if err := os.WriteFile(key, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	bystander := exec.Command("sleep", "600")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bystander.Process.Kill(); err != nil {
			t.Errorf("a process outside did not live to the end: %v", err)
		}
		_ = bystander.Wait()
	})
	handedOver, err := os.Open(key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { handedOver.Close() })
	readable := t.TempDir()
	const writable = "a write path of its own for each attempt"
	parent := fmt.Sprint(os.Getpid())

	const mib = 1 << 20
	withWrite := func(s *Spec) { s.Write = []string{writable} }
	small := func(s *Spec) { withWrite(s); s.Limits.Disk, s.Limits.FileSize = 16*mib, 8*mib }
	type attempt struct {
		name    string
		attack  []string
		change  func(*Spec)
		printed string // printed by the attempt; | separates alternatives
		refused string // in Result.Refused
		killed  bool
	}
	tests := []attempt{
		{name: "read a key outside", attack: []string{"read", key}, printed: "no such file"},
		{name: "list the home directory", attack: []string{"list", home}, printed: "no such file"},
		{name: "read the passwords", attack: []string{"read", "/etc/shadow"}, printed: "no such file"},
		{name: "read process 1's environment", attack: []string{"read", "/proc/1/environ"}, printed: "no such file"},
		{name: "read the caller's environment", attack: []string{"read", "/proc/" + parent + "/environ"}, printed: "no such file"},
		{name: "find an environment", attack: []string{"environment"}, printed: "empty"},
		{name: "overwrite the sandbox's binary", attack: []string{"write", "/proc/1/exe"}, printed: "no such file"},
		{name: "change a kernel setting", attack: []string{"write", "/proc/sys/kernel/core_pattern"}, printed: "no such file"},
		{name: "write to a read path", attack: []string{"write", filepath.Join(readable, "x")}, change: func(s *Spec) { s.Read = append(s.Read, readable) }, printed: "permission denied|read-only"},
		{name: "write to the root", attack: []string{"write", "/x"}, printed: "permission denied|read-only"},

		{name: "connect to a server on loopback", attack: []string{"connect", server.Addr().String()}, printed: "not permitted|unreachable"},
		{name: "open a vsock", attack: []string{"vsock"}, printed: "not permitted"},

		{name: "hold memory in a file without a name", attack: []string{"memfd"}, printed: "not permitted"},

		{name: "fork without end", attack: []string{"fork", "40"}, change: func(s *Spec) { s.Limits.Processes = 40 },
			printed: "resource temporarily unavailable", refused: "limit of 40 processes"},
		{name: "raise the process limit", attack: []string{"raise"}, printed: "not permitted"},
		{name: "fill /tmp", attack: []string{"fill by files", "/tmp"}, change: small, printed: "no space left", refused: "16 MiB of disk were full"},
		{name: "fill a write path", attack: []string{"fill by files", writable}, change: small, printed: "no space left", refused: "16 MiB of disk were full"},
		{name: "fill a write path with a hidden file", attack: []string{"fill", writable, "hide"},
			change: func(s *Spec) { withWrite(s); s.Limits.Disk, s.Limits.FileSize = 16*mib, 64*mib }, printed: "no space left"},
		{name: "fill shared memory", attack: []string{"fill by files", "/dev/shm"}, change: small, printed: "no space left"},
		{name: "write a large file", attack: []string{"fill", writable}, change: small, printed: "file too large"},
		{name: "allocate in many processes", attack: []string{"allocate apart"}, change: func(s *Spec) { s.Limits.Memory, s.Limits.Overcommit = 128*mib, true },
			refused: "over the limit of 128 MiB", killed: true},
		{name: "allocate shared memory", attack: []string{"allocate shared"}, change: func(s *Spec) { s.Limits.Memory, s.Limits.Overcommit = 128*mib, true },
			refused: "over the limit of 128 MiB", killed: true},
		{name: "allocate without end", attack: []string{"allocate"}, change: func(s *Spec) { s.Limits.Memory, s.Limits.Overcommit = 128*mib, true },
			refused: "over the limit of 128 MiB", killed: true},
		{name: "print without end", attack: []string{"print"}, change: func(s *Spec) { s.Limits.Output = 64 << 10 }, refused: "output cut at 64 KiB", killed: true},
		{name: "run past the deadline", attack: []string{"wait"}, change: func(s *Spec) { s.Limits.Wall = 200 * time.Millisecond }, refused: "killed at the 200ms deadline", killed: true},

		{name: "signal the caller", attack: []string{"signal", parent}, printed: "no such process"},
		{name: "signal everyone", attack: []string{"signal", "-1"}, printed: "no such process"},
		{name: "trace the caller", attack: []string{"ptrace", parent}, printed: "not permitted"},
		{name: "trace process 1", attack: []string{"ptrace", "1"}, printed: "not permitted"},
		{name: "open the kernel's log", attack: []string{"open device", "/dev/kmsg"}, printed: "no such file"},
		{name: "open a terminal", attack: []string{"open device", "/dev/tty"}, printed: "no such file"},
		{name: "make a device", attack: []string{"mknod"}, printed: "not permitted|permission denied"},
		{name: "mount", attack: []string{"mount"}, printed: "not permitted"},
		{name: "unmount", attack: []string{"unmount", "/usr"}, printed: "not permitted"},
		{name: "remount for writing", attack: []string{"remount", "/usr"}, printed: "not permitted"},
		{name: "unshare", attack: []string{"unshare"}, printed: "not permitted"},
		{name: "clone into a user namespace", attack: []string{"new user namespace"}, printed: "no space left|not permitted"},
		{name: "hold a capability", attack: []string{"capability"}, printed: "capabilities are"},
		{name: "become root", attack: []string{"become 0"}, printed: "not permitted|invalid argument"},
	}
	more := func(test attempt) { tests = append(tests, test) }
	if !raceEnabled() {
		more(attempt{name: "allocate without end, refused by the kernel", attack: []string{"allocate"},
			change: func(s *Spec) { s.Limits.Memory = 256 * mib }, printed: "cannot allocate memory"})
	}
	if support().Landlock > 0 {
		// Only Landlock prevents these.
		more(attempt{name: "list the root", attack: []string{"list", "/"}, printed: "permission denied"})
		more(attempt{name: "write to a file handed over for reading", attack: []string{"reopen"},
			change: func(s *Spec) { s.ExtraFiles = []*os.File{handedOver} }, printed: "permission denied"})
	}
	judge := func(t *testing.T, test attempt, r Result, out string) {
		t.Helper()
		short := out[:min(len(out), 1000)]
		if strings.Contains(out, "BREACH") || strings.Contains(out, secret) {
			t.Fatalf("got through: %s", short)
		}
		if test.killed != (r.Signal != 0) || !test.killed && r.ExitCode != 0 {
			t.Errorf("ended with %+v, killed should be %v; it printed %s", r, test.killed, short)
		}
		if !containsAny(out, test.printed) {
			t.Errorf("printed %q, want %q", short, test.printed)
		}
		if !containsAny(strings.Join(r.Refused, "\n"), test.refused) {
			t.Errorf("result says %q, want %q; it printed %q", r.Refused, test.refused, short)
		}
	}
	// Attempts that need no special sandbox run one after the other in one sandbox and one process.
	plain := slices.DeleteFunc(slices.Clone(tests), func(a attempt) bool { return a.change != nil || a.killed })
	t.Run("in one sandbox", func(t *testing.T) {
		t.Parallel()
		args := []string{"attack", "in turn"}
		for _, test := range plain {
			args = append(append(args, test.attack...), "")
		}
		r, out := run(t, self(t, args...))
		printed := strings.Split(out, nextAttempt)
		if len(printed) != len(plain)+1 {
			t.Fatalf("%d of %d attempts came to their end: %+v, %s", len(printed)-1, len(plain), r, out)
		}
		for i, test := range plain {
			t.Run(test.name, func(t *testing.T) { judge(t, test, r, printed[i]) })
		}
	})
	for _, test := range tests {
		if test.change == nil && !test.killed {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := self(t, append([]string{"attack"}, test.attack...)...)
			if test.change != nil {
				test.change(&s)
			}
			dir := t.TempDir()
			for _, list := range [][]string{s.Args, s.Write} {
				if i := slices.Index(list, writable); i >= 0 {
					list[i] = dir
				}
			}
			r, out := run(t, s)
			judge(t, test, r, out)
		})
	}
}

// containsAny reports whether text has one of the alternatives, which | separates.
func containsAny(text, alternatives string) bool {
	for a := range strings.SplitSeq(alternatives, "|") {
		if strings.Contains(text, a) {
			return true
		}
	}
	return false
}

// TestConformanceCallerDies kills the process that called Start, which then has no time to clean
// up.
func TestConformanceCallerDies(t *testing.T) {
	needSandbox(t)
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := self(t, "caller")
	caller := exec.Command(s.Args[0], s.Args[1:]...)
	caller.ExtraFiles = []*os.File{w}
	caller.Stderr = os.Stderr
	err = caller.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		t.Errorf("the daemon never lived: %v", err)
	}
	if err := caller.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = caller.Wait()
	if err := r.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(r); err != nil {
		t.Errorf("the daemon still holds its pipe, after saying %q: %v", said, err)
	}
}

// TestConformanceOutlive starts a process that leaves its session and ignores signals. A pipe from
// that process reaches end of file only when the process has really ended.
func TestConformanceOutlive(t *testing.T) {
	needSandbox(t)
	for _, end := range []string{"exit", "deadline"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			// On a busy machine a short deadline may pass before the process runs.
			for wall := time.Second; !outlived(t, end, wall); wall *= 2 {
				if wall > time.Minute {
					t.Fatal("the daemon never lived")
				}
			}
		})
	}
}

// outlived fails the test if the process survives, and returns false if the process never ran.
func outlived(t *testing.T, end string, wall time.Duration) bool {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := self(t, "attack", "outlive", end)
	s.ExtraFiles = []*os.File{w}
	if end == "deadline" {
		s.Limits.Wall = wall
	}
	result, out := run(t, s)
	w.Close()
	if result.TimedOut != (end == "deadline") {
		t.Fatalf("ended with %+v; it printed %s", result, out)
	}
	if err := r.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("the daemon still holds its pipe, after saying %q: %v", said, err)
	}
	return len(said) > 0
}
