package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kernelgate/kernelgate/runners/host/subprocess"
)

// A service is a process that is started again after it has ended, as systemd would with the shipped units.
type service struct {
	s    *soak
	unit unit
	name string
	args []string
	log  *os.File

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	wanted  bool          // it is started again when it ends
	paused  bool          // by SIGSTOP
	full    bool          // its disk
	started time.Time
	exits   int // without having been asked
}

// A unit has what the shipped units say. systemd does not start a process again that ended with exitInput.
type unit struct {
	again time.Duration // how long after its end a process is started again
	stop  time.Duration // how long it may take to end after SIGTERM
}

var botUnit, runnerUnit = unit{2 * time.Second, 45 * time.Second}, unit{5 * time.Second, 30 * time.Second}

func (s *soak) newService(u unit, name string, args ...string) *service {
	s.Helper()
	log, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		s.Fatal(err)
	}
	v := &service{s: s, unit: u, name: name, args: args, log: log}
	s.Cleanup(func() {
		v.kill()
		log.Close()
	})
	v.start()
	return v
}

func (v *service) start() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wanted = true
	v.spawn()
}

func (v *service) spawn() {
	cmd := exec.Command(v.s.program, v.args...)
	cmd.Stdout, cmd.Stderr = v.log, v.log
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "KERNELGATE_") })
	if err := subprocess.Start(cmd, syscall.SIGKILL); err != nil {
		v.s.fail("%s does not start: %v", v.name, err)
		return
	}
	ended := make(chan struct{})
	v.cmd, v.ended, v.started = cmd, ended, time.Now()
	go func() {
		_ = cmd.Wait() // its state has the exit status
		v.mu.Lock()
		defer v.mu.Unlock()
		close(ended)
		if !v.wanted || v.s.ctx.Err() != nil {
			return
		}
		v.exits++
		if cmd.ProcessState.ExitCode() == exitInput || cmd.ProcessState.ExitCode() < 0 {
			v.s.fail("%s ended: %v; see %s", v.name, cmd.ProcessState, v.log.Name())
		}
		time.AfterFunc(v.unit.again, func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.wanted && v.cmd == cmd && v.s.ctx.Err() == nil {
				v.spawn()
			}
		})
	}()
}

func (v *service) signal(signal syscall.Signal) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch signal {
	case syscall.SIGSTOP:
		v.paused = true
	case syscall.SIGCONT:
		v.paused = false
	}
	if err := v.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		v.s.fail("%s: %v: %v", v.name, signal, err)
	}
}

// unwant returns the process, which is not started again.
func (v *service) unwant() (*exec.Cmd, chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wanted = false
	return v.cmd, v.ended
}

// kill ends the process as a crash would.
func (v *service) kill() {
	cmd, ended := v.unwant()
	_ = cmd.Process.Kill() // it may have ended
	<-ended
}

// stop ends the process as an operator would.
func (v *service) stop() {
	cmd, ended := v.unwant()
	select {
	case <-ended: // it had ended, and waited for its next start
		return
	default:
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-ended:
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			v.s.fail("%s ended with status %d after SIGTERM; see %s", v.name, code, v.log.Name())
		}
	case <-time.After(v.unit.stop):
		v.s.fail("%s did not end within %v after SIGTERM", v.name, v.unit.stop)
		_ = cmd.Process.Signal(syscall.SIGABRT) // for the goroutines in its log
		<-ended
	}
}

// A condition is how a process is.
type condition struct {
	started time.Time
	meant   bool // it was ended or stopped on purpose
	runs    bool
	full    bool // its disk
}

func (v *service) condition() condition {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := condition{started: v.started, meant: !v.wanted || v.paused, full: v.full}
	select {
	case <-v.ended:
	default:
		c.runs = !c.meant
	}
	return c
}

// memory returns the resident memory of the process in bytes.
func (v *service) memory() (bytes int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.cmd.Process.Pid)) // without it the memory is 0
	if _, after, ok := strings.Cut(string(text), "VmRSS:"); ok {
		_, _ = fmt.Sscanf(after, "%d kB", &bytes) // the same
	}
	return bytes << 10
}
