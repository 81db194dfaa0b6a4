package cpu

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// childOf returns the only child of a process, or 0. The system lists children by the thread that
// started them; a launcher has only its first thread.
func childOf(pid int) int {
	if child := childIn(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)); child != 0 {
		return child
	}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		if child := childIn(list); child != 0 {
			return child
		}
	}
	return 0
}

func childIn(list string) int {
	var room [64]byte // two children would not parse as a number
	child, _ := strconv.Atoi(string(bytes.TrimSpace(readOnce(list, room[:]))))
	return child
}

// readOnce reads what fits of a file of /proc, or nothing. It does not use package os, which makes
// four times as many system calls per file, because a process is checked several times for each
// sample.
func readOnce(path string, into []byte) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, _ := read(fd, into)
	return into[:max(n, 0)]
}

// A state is the state of a process.
type state struct {
	letter  byte // of /proc/pid/stat: T when it is stopped, Z when it is dead
	threads int
	exit    unix.WaitStatus
}

func (s state) stopped() bool { return s.letter == 'T' }
func (s state) waits() bool   { return s.letter == 'S' }
func (s state) dead() bool    { return s.letter == 'Z' || s.letter == 'X' || s.letter == 0 }

// allStopped reports whether all threads have stopped. For a process with one thread its state is
// enough. The system counts the threads after it has looked at the first: if that one had stopped
// and was the only one, no thread is left that could start another.
func (s state) allStopped() bool { return s.stopped() && s.threads == 1 }

// stateOf reads a process's state. A missing process is dead.
func stateOf(pid int) state { return stateIn(fmt.Sprintf("/proc/%d/stat", pid)) }

func stateIn(file string) state {
	var room [1024]byte // fifty numbers and a name
	text := readOnce(file, room[:])
	// The name, in brackets, is the program's own choice.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 50 {
		return state{}
	}
	threads, _ := strconv.Atoi(string(fields[17]))
	exit, _ := strconv.Atoi(string(fields[49]))
	return state{letter: fields[0][0], threads: threads, exit: unix.WaitStatus(exit)}
}

// errDead says that the process is dead, so nothing can be stopped.
var errDead = errors.New("the process is dead")

// A pause between two checks of a process that is about to stop.
const pause = 20 * time.Microsecond

// halt stops processes and returns when none of their threads runs. No process can refuse.
func halt(pids ...int) error {
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			return errDead
		}
	}
	began := time.Now()
	for _, pid := range pids {
		if stateOf(pid).allStopped() {
			continue
		}
		// Twice: a thread may have been started between the list and the check of the thread that
		// started it.
		for still := 0; still < 2; {
			switch all := threadsOf(pid); {
			case all.dead:
				return errDead
			case all.stopped:
				still++
				continue
			}
			still = 0
			if time.Since(began) > 10*time.Second {
				return fmt.Errorf("stopping a kernel's process: it is still running after %v", time.Since(began))
			}
			time.Sleep(pause)
		}
	}
	return nil
}

// A group is the state of all threads of a process.
type group struct {
	stopped bool // or dead
	dead    bool // all of them: the first thread may have ended while others continue
}

func threadsOf(pid int) group {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return group{dead: true}
	}
	g := group{stopped: true, dead: true}
	for _, thread := range list {
		s := stateIn(fmt.Sprintf("/proc/%d/task/%s/stat", pid, thread.Name()))
		g.stopped = g.stopped && (s.stopped() || s.dead())
		g.dead = g.dead && s.dead()
	}
	return g
}

// runningTime returns the operating system's account of a process's CPU time; ok is false if there
// is no such process. On a shared machine it separates the kernel's time from the scheduler's, and
// no process can turn it back.
func runningTime(pid int) (spent time.Duration, ok bool) {
	clock := int32(^pid<<3 | 2) // derived from the process id: see clock_getcpuclockid
	var t unix.Timespec
	if unix.ClockGettime(clock, &t) != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
