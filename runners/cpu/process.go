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

// childOf is the only child of a process, or 0. Children are listed by the thread
// that started them; a launcher has but its first.
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
	var room [64]byte // two children would not be a number, however long their list
	child, _ := strconv.Atoi(string(bytes.TrimSpace(readOnce(list, room[:]))))
	return child
}

// readOnce is what fits of a file of /proc, or nothing. It does without the package os, which asks the
// kernel four times as much about each file, and a process is looked at several times for each sample.
func readOnce(path string, into []byte) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, _ := read(fd, into)
	return into[:max(n, 0)]
}

// A state is how a process is.
type state struct {
	letter  byte // of /proc/pid/stat: T when it is stopped, Z when it is dead
	threads int
	exit    unix.WaitStatus
}

func (s state) stopped() bool { return s.letter == 'T' }
func (s state) dead() bool    { return s.letter == 'Z' || s.letter == 'X' || s.letter == 0 }

// allStopped is known of a process with one thread by its state alone. The system counts the threads after it has looked at the
// first: if that had stopped, and then was the only one, nobody is left who could have started another.
func (s state) allStopped() bool { return s.stopped() && s.threads == 1 }

// stateOf reads a process's state. One that is gone is dead.
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

// errDead says that there is nothing left to stop.
var errDead = errors.New("the process is dead")

// A pause between two looks at a process that is about to stop.
const pause = 20 * time.Microsecond

// halt stops processes and returns when nothing of them runs any more. None can refuse.
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
		// Twice: a thread may have been started between the list and the look at whoever started it.
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

// A group is how all threads of a process are.
type group struct {
	stopped bool // or dead
	dead    bool // all of them: a first thread that has ended leaves the others
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

// runningTime is the operating system's own account of how long a process has
// been running; ok is false where there is no such process. On a machine that others
// use as well it tells the kernel's time from the scheduler's, and no process can turn
// it back.
func runningTime(pid int) (spent time.Duration, ok bool) {
	clock := int32(^pid<<3 | 2) // made of the process's number: see clock_getcpuclockid
	var t unix.Timespec
	if unix.ClockGettime(clock, &t) != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
