package sandbox

import (
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// setupTime bounds how long building the sandbox may take.
const setupTime = 30 * time.Second

// A Process is a program in a sandbox.
type Process struct {
	cmd    *exec.Cmd
	socket *os.File // when this is closed, process 1 ends, and with it everything inside
	limits Limits
	timer  *time.Timer
	unbind func() bool // stops listening to the context

	mu     sync.Mutex
	result Result
	why    error // why it was killed from outside; the first reason wins
	ended  bool

	done chan struct{}
	err  error
}

// Run starts the program and waits until it ends.
func Run(ctx context.Context, s Spec) (Result, error) {
	p, err := Start(ctx, s)
	if err != nil {
		return Result{}, err
	}
	return p.Wait()
}

// Start builds the sandbox and returns when the program runs in it. Its error names the step that
// failed. If the kernel refuses any sandbox, the error wraps [ErrUnsupported] and says what to do.
// When ctx ends, everything inside is killed.
func Start(ctx context.Context, s Spec) (*Process, error) {
	if len(s.Args) == 0 || s.Args[0] == "" {
		return nil, errors.New("start a sandbox: no program given")
	}
	p, err := start(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("start %s in a sandbox: %w", s.Args[0], err)
	}
	return p, nil
}

func start(ctx context.Context, s Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := config{Args: s.Args, Env: s.Env, Dir: cmp.Or(s.Dir, "/tmp"), Files: len(s.ExtraFiles), Calls: s.Calls, Limits: s.Limits.withDefaults(),
		Host: cmp.Or(s.Host, "sandbox"), Watch: s.Watch}
	var err error
	if c.Layout, err = plan(s); err != nil {
		return nil, err
	}
	if c.IDs, err = currentIdentity(); err != nil {
		return nil, err
	}
	near, far, err := socketpair()
	if err != nil {
		return nil, err
	}
	p := &Process{socket: near, limits: c.Limits, done: make(chan struct{})}
	p.cmd = &exec.Cmd{
		Path:       "/proc/self/exe",
		Args:       []string{initName, fmt.Sprint(3 + c.Files)},
		Env:        stageEnv,
		Dir:        "/",
		ExtraFiles: append(slices.Clone(s.ExtraFiles), far),
		SysProcAttr: c.IDs.userNamespace(syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET |
			syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWCGROUP),
	}
	p.connectOutput(s)
	err = p.cmd.Start()
	far.Close() // otherwise this process would not see that process 1 has ended
	if err != nil {
		near.Close()
		err = fmt.Errorf("make the namespaces: %w", err)
		if refusedByKernel(err) {
			err = unsupported(err)
		}
		return nil, err
	}
	p.timer = time.AfterFunc(setupTime, func() { p.stop(errors.New("setup took too long"), nil) })
	p.unbind = context.AfterFunc(ctx, func() { p.stop(context.Cause(ctx), nil) })

	replies := gob.NewDecoder(near)
	// A program may hit a limit before this process learns that it started.
	if err := p.handshake(c, replies); err != nil && !p.hitLimit() {
		p.stop(err, nil)
		_ = p.reap() // the reason is known
		p.timer.Stop()
		p.unbind()
		return nil, p.why
	}
	p.timer.Stop()
	p.timer = time.AfterFunc(p.limits.Wall, func() {
		p.stop(errDeadline, func(r *Result) {
			r.TimedOut = true
			r.Refused = append(r.Refused, fmt.Sprintf("killed at the %v deadline", p.limits.Wall))
		})
	})
	go p.follow(replies)
	return p, nil
}

// handshake sends the config and waits until the program runs.
func (p *Process) handshake(c config, replies *gob.Decoder) error {
	if err := gob.NewEncoder(p.socket).Encode(c); err != nil {
		return fmt.Errorf("tell the sandbox what to run: %w", err)
	}
	var r report
	if err := replies.Decode(&r); err != nil {
		return fmt.Errorf("wait for the sandbox: %w", err)
	}
	switch {
	case r.Unsupported:
		return unsupported(errors.New(r.Error))
	case r.Error != "":
		return errors.New(r.Error)
	}
	return nil
}

// follow waits until the program has ended, and fills in the result.
func (p *Process) follow(replies *gob.Decoder) {
	var r report
	replyErr := replies.Decode(&r)
	waitErr := p.reap()
	p.timer.Stop()
	p.unbind()

	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(p.done)
	switch e := r.Exit; {
	case p.why != nil:
		p.result.ExitCode, p.result.Signal = -1, syscall.SIGKILL
		if len(p.result.Refused) == 0 {
			p.err = fmt.Errorf("the program in the sandbox was killed: %w", p.why)
		}
	case r.Error != "":
		p.err = fmt.Errorf("end the sandbox: %s", r.Error)
	case replyErr != nil || e == nil:
		p.err = fmt.Errorf("the sandbox's process 1 ended without a result (%v): %w", p.cmd.ProcessState, cmp.Or(replyErr, io.ErrUnexpectedEOF))
	default:
		p.result.ExitCode, p.result.Signal = exitOf(e.Status)
		p.result.OutOfMemory = e.OutOfMemory
		p.result.Refused = append(p.result.Refused, e.Refused...)
		p.result.Lookups, p.result.Opened, p.result.LookupsCut = e.Lookups, e.Opened, e.LookupsCut
		if exit := new(exec.ExitError); waitErr != nil && !errors.As(waitErr, &exit) {
			p.err = fmt.Errorf("pass on the program's output: %w", waitErr)
		}
	}
}

func exitOf(s syscall.WaitStatus) (int, syscall.Signal) {
	if s.Signaled() {
		return -1, s.Signal()
	}
	return s.ExitStatus(), 0
}

// reap waits for process 1 and for the last of the output. The kernel ends process 1 only after all
// other processes inside.
func (p *Process) reap() error {
	err := p.cmd.Wait()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.socket.Close()
	return err
}

// stop kills everything inside. If a limit was hit, note records it in the result.
func (p *Process) stop(why error, note func(*Result)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.why != nil {
		return
	}
	p.why = why
	if note != nil {
		note(&p.result)
	}
	_ = p.cmd.Process.Kill() // fails only if it is already dead
}

func (p *Process) hitLimit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.result.Refused) > 0
}

var (
	errDeadline = errors.New("the deadline has passed")
	errOutput   = errors.New("too much output")
	errKilled   = errors.New("killed by the caller")
)

// Wait waits until every process inside has ended. It may be called more than once.
func (p *Process) Wait() (Result, error) {
	<-p.done
	return p.result, p.err
}

// Kill kills everything inside at once.
func (p *Process) Kill() {
	p.stop(errKilled, func(r *Result) { r.Refused = append(r.Refused, "killed by the caller") })
}

// Pid returns the host's process id of the sandbox's process 1. When process 1 ends, the kernel
// kills everything else inside.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// A budget is the number of bytes that all streams of one program may still write.
type budget struct {
	mu   sync.Mutex
	left int64
	over func()
}

// limited passes writes on until the budget is spent.
type limited struct {
	*budget
	to io.Writer
}

// Write reports all of p as written, so that the pipe is drained until the program is dead.
func (l limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	keep := min(int64(len(p)), l.left)
	l.left -= keep
	if keep > 0 {
		if _, err := l.to.Write(p[:keep]); err != nil {
			return 0, err
		}
	}
	if keep < int64(len(p)) {
		l.over()
	}
	return len(p), nil
}

// connectOutput counts the program's output against Limits.Output. The writers see one write at a
// time.
func (p *Process) connectOutput(s Spec) {
	b := &budget{left: p.limits.Output, over: func() {
		p.stop(errOutput, func(r *Result) {
			r.OutputTruncated = true
			r.Refused = append(r.Refused, fmt.Sprintf("output cut at %s", sizeText(p.limits.Output)))
		})
	}}
	if s.Stdout != nil {
		p.cmd.Stdout = limited{b, s.Stdout}
	}
	if s.Stderr != nil {
		p.cmd.Stderr = limited{b, s.Stderr}
	}
}
