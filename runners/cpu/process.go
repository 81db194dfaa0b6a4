package cpu

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// childOf is the only child of a process, or 0. Children are listed by the thread
// that started them.
func childOf(pid int) int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		if child, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return child
		}
	}
	return 0
}

// A state is how a process is.
type state struct {
	letter byte // of /proc/pid/stat: T when it is stopped, Z when it is dead
	exit   unix.WaitStatus
}

func (s state) stopped() bool { return s.letter == 'T' }
func (s state) dead() bool    { return s.letter == 'Z' || s.letter == 'X' || s.letter == 0 }

// stateOf reads a process's state. One that is gone is dead.
func stateOf(pid int) state { return stateIn(fmt.Sprintf("/proc/%d/stat", pid)) }

func stateIn(file string) state {
	text, err := os.ReadFile(file)
	if err != nil {
		return state{}
	}
	// The name, in brackets, is the program's own choice.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 50 {
		return state{}
	}
	exit, _ := strconv.Atoi(string(fields[49]))
	return state{letter: fields[0][0], exit: unix.WaitStatus(exit)}
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
