package side

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/host/subprocess"
)

// A Process is a side's process as its judge sees it. Its errors are [*Failure] if the side's
// kernel failed. After that the process can do nothing more.
type Process struct {
	Who    string // baseline, control or candidate
	socket int
	cmd    *exec.Cmd
	buffer []byte
	State  bool // its kernel has memory that outlives a launch
	owed   int  // answers that nobody has waited for yet
	err    error
}

// maxOwed bounds how many answers a side may owe. The operating system holds this many packets, and
// the descriptors in them, without blocking the judge.
const maxOwed = 4

// Start starts a side and does not wait for it, because creating a context takes long and several
// can be created at once. The program's arguments must lead to [Serve].
func Start(who string, program, env []string, setup Setup) (*Process, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a socket for the %s: %w", who, err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "side")
	defer theirs.Close()
	cmd := exec.Command(program[0], program[1:]...)
	cmd.ExtraFiles = []*os.File{theirs} // descriptor Socket
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := subprocess.Start(cmd, syscall.SIGKILL); err != nil {
		unix.Close(pair[0])
		return nil, fmt.Errorf("starting the %s's process: %w", who, err)
	}
	p := &Process{Who: who, socket: pair[0], cmd: cmd, buffer: make([]byte, maxPacket)}
	// A side watches its own launches. If it sends nothing for longer than this, it hangs in the
	// driver.
	patience := unix.NsecToTimeval((setup.Timeout + 30*time.Second).Nanoseconds())
	err = errors.Join(unix.SetsockoptTimeval(p.socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience), send(p.socket, request{Setup: &setup}, nil))
	return p, err
}

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Up waits until the side has its context.
func (p *Process) Up() error {
	_, err := p.receive()
	return err
}

func (p *Process) ask(r request) (answer, error) {
	if err := p.settle(0); err != nil {
		return answer{}, err
	}
	if err := p.send(r); err != nil {
		return answer{}, err
	}
	p.owed--
	return p.receive()
}

// send sends a request and does not wait for the answer.
func (p *Process) send(r request, files ...*os.File) error {
	if p.err != nil {
		return p.err
	}
	if err := send(p.socket, r, files); err != nil {
		return fmt.Errorf("asking the %s's process: %w", p.Who, err)
	}
	p.owed++
	return nil
}

// settle receives answers until at most this many are owed.
func (p *Process) settle(owed int) error {
	for p.err == nil && p.owed > owed {
		p.owed--
		p.receive()
	}
	return p.err
}

func (p *Process) receive() (answer, error) {
	var a answer
	_, err := receive(p.socket, p.buffer, &a)
	switch {
	case err != nil:
		err = fmt.Errorf("the %s's process does not answer: %w", p.Who, err)
	case a.Failure != nil:
		err = &Failure{*a.Failure}
	case a.Error != "":
		err = fmt.Errorf("the %s's process: %s", p.Who, a.Error)
	}
	p.err = err
	return a, err
}

// Revive lets the process go on after a failure of a kernel. It reports whether it failed in this way; whether its context has
// survived shows in the next request.
func (p *Process) Revive() bool {
	_, ok := errors.AsType[*Failure](p.err)
	if ok {
		p.err = nil
	}
	return ok
}

// Load makes the side load its code.
func (p *Process) Load(b Built) error {
	a, err := p.ask(request{Load: &b})
	p.State = a.State
	return err
}

// NewSlots creates slots in the judge's context and passes them to the side. A slot is memory that
// the two share: the side launches on it, and the judge fills and reads it. The side maps the slots
// while the judge continues; the side's next answer comes after that.
func (p *Process) NewSlots(c *driver.Context, set, count, size int) ([]driver.Buffer, error) {
	var all []driver.Buffer
	for count > 0 {
		n := min(count, maxFiles)
		made, files, err := newSlots(c, n, size)
		if err == nil {
			err = p.send(request{Slots: &slotSet{Set: set, Size: made[0].Size, Count: n}}, files...)
		}
		for _, f := range files {
			f.Close()
		}
		if err == nil {
			err = p.settle(maxOwed)
		}
		if err != nil {
			return nil, err
		}
		all, count = append(all, made...), count-n
	}
	return all, nil
}

// NewSingleSlot creates a set's room for launches that run alone. The side has it mapped only during
// such a launch.
func (p *Process) NewSingleSlot(c *driver.Context, set, size int) (driver.Buffer, error) {
	made, files, err := newSlots(c, 1, size)
	if err != nil {
		return driver.Buffer{}, err
	}
	defer files[0].Close()
	if err := p.send(request{Slots: &slotSet{Set: set, Size: made[0].Size, Count: 1, Single: true}}, files...); err != nil {
		return driver.Buffer{}, err
	}
	return made[0], p.settle(maxOwed)
}

func newSlots(c *driver.Context, count, size int) (made []driver.Buffer, files []*os.File, err error) {
	for range count {
		shared, err := c.NewShared(int64(size))
		if err != nil {
			return made, files, err
		}
		buffer, err := c.Map(shared, 0)
		if err != nil {
			return made, files, err
		}
		file, err := c.Export(shared)
		if err != nil {
			return made, files, err
		}
		made, files = append(made, buffer), append(files, file)
	}
	return made, files, nil
}

// Prepare makes the side prepare launches for a shape.
func (p *Process) Prepare(q Problem) error {
	_, err := p.ask(request{Problem: &q})
	return err
}

// Ready brings the GPU into the state in which every sample begins.
func (p *Process) Ready(problem int, reset bool) error {
	_, err := p.ask(request{Ready: &ready{Problem: problem, Reset: reset}})
	return err
}

// Run launches in neighbouring slots, from a cold cache if cold is set, and returns the time
// between two events around the launches.
func (p *Process) Run(problem, first, count int, cold bool) (time.Duration, error) {
	a, err := p.ask(request{Run: &run{Problem: problem, First: first, Count: count, Flush: cold}})
	return time.Duration(a.Nanos), err
}

// RunAlone launches in the first warm slots from a cold cache, and then once in the single slot,
// which the side cannot reach before. It returns the time of that launch.
func (p *Process) RunAlone(problem, warm int) (time.Duration, error) {
	a, err := p.ask(request{Run: &run{Problem: problem, Count: warm, Flush: true, Single: true}})
	return time.Duration(a.Nanos), err
}

// Empty is Ready, and empties the caches. The caller can then fill the L2 cache, for RunFilled or
// RunFilledAlone.
func (p *Process) Empty(problem int, reset bool) error {
	_, err := p.ask(request{Ready: &ready{Problem: problem, Reset: reset, Flush: true}})
	return err
}

// RunFilled launches in the first slots, and returns the time between two events around the launches.
func (p *Process) RunFilled(problem, count int) (time.Duration, error) {
	a, err := p.ask(request{Run: &run{Problem: problem, Count: count, Filled: true}})
	return time.Duration(a.Nanos), err
}

// RunFilledAlone launches in the single slot, and returns the time of the launch.
func (p *Process) RunFilledAlone(problem int) (time.Duration, error) {
	a, err := p.ask(request{Run: &run{Problem: problem, Single: true}})
	return time.Duration(a.Nanos), err
}

// Rough returns roughly how long one launch takes, by the side's clock.
func (p *Process) Rough(problem, slot int) (time.Duration, error) {
	a, err := p.ask(request{Rough: &run{Problem: problem, First: slot, Count: 1}})
	return time.Duration(a.Nanos), err
}

// Kill starts to end the side. It does not wait for the context to disappear, which takes long.
func (p *Process) Kill() { p.cmd.Process.Kill() }

// Close ends the side and waits for its process.
func (p *Process) Close() {
	p.Kill()
	p.cmd.Wait()
	unix.Close(p.socket)
}
