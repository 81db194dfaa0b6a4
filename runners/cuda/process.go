package cuda

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/cuda/nvml"
	"github.com/kernelgate/kernelgate/runners/cuda/side"
	"github.com/kernelgate/kernelgate/runners/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/pyref"
	"github.com/kernelgate/kernelgate/runners/subprocess"
)

// quietTime is how long a worker may say nothing beyond one launch's timeout. It
// ends launches that take too long itself; one that is quiet for longer hangs in
// the driver, and must not hold the run for ever.
const quietTime = time.Minute

// resultFD is the descriptor that a worker answers on; what libraries print to
// its standard output cannot be taken for an answer.
const resultFD = 3

// sideWord follows a worker's own words where one side's process is meant.
const sideWord = "side"

// Worker is what a worker's process does: it answers a request on its standard
// input or, for a tool that looks on, in a file; or it is one of the sides that
// another worker has started.
func Worker(args []string) error {
	switch {
	case len(args) == 0:
		return worker.Serve(os.Stdin, os.NewFile(resultFD, "answers"))
	case args[0] == sideWord:
		return side.Serve(side.Socket)
	}
	request, err := os.Open(args[0])
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	defer request.Close()
	return worker.Serve(request, io.Discard)
}

// A process is one worker on its way.
type process struct {
	cmd      *exec.Cmd
	ctx      context.Context
	cancel   context.CancelCauseFunc
	commands io.WriteCloser
	answers  *os.File
	noise    tail
	wait     func() error
}

// spawn starts a worker, which touches no GPU before it is asked for something. It
// lives no longer than ctx.
func (b *Backend) spawn(ctx context.Context) (*process, error) {
	answers, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe to the worker: %w", err)
	}
	defer theirs.Close()
	p := &process{answers: answers}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.cmd = exec.CommandContext(p.ctx, b.config.Program[0], b.config.Program[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = &p.noise, &p.noise
	p.cmd.ExtraFiles = append([]*os.File{theirs}, b.pythonFiles()...)
	p.cmd.Env = b.workerEnv()
	// A worker in a group of its own is killed whole.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }
	p.cmd.WaitDelay = 5 * time.Second
	p.wait = sync.OnceValue(p.cmd.Wait)
	if p.commands, err = p.cmd.StdinPipe(); err == nil {
		err = subprocess.Start(p.cmd, syscall.SIGKILL)
	}
	if err != nil {
		p.cancel(nil)
		answers.Close()
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	// Whoever ends it, and whether or not anybody hears it out, nothing is left.
	context.AfterFunc(p.ctx, func() {
		p.wait()
		answers.Close()
	})
	return p, nil
}

// ask hands a worker its request.
func (p *process) ask(request worker.Request) error {
	text, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("writing the worker's request: %w", err)
	}
	p.commands.Write(append(text, '\n')) // a worker that died tells so when it is heard
	return nil
}

// start runs one request in a process of its own and hands over its replies.
func (b *Backend) start(ctx context.Context, request worker.Request, each func(worker.Reply)) error {
	p, err := b.spawn(ctx)
	if err != nil {
		return err
	}
	if err := p.ask(request); err != nil {
		p.cancel(nil)
		return err
	}
	return b.finish(p, each)
}

// finish lets a worker do its work and hands over its replies.
func (b *Backend) finish(p *process, each func(worker.Reply)) error {
	defer p.cancel(nil)
	patience := b.config.LaunchTimeout + quietTime
	if b.python != nil {
		patience += pyref.CaseTimeout
	}
	watchdog := time.AfterFunc(patience, func() {
		p.cancel(fmt.Errorf("the worker said nothing for %v: the GPU or its driver hangs (look for Xid messages in dmesg)", patience))
	})
	defer watchdog.Stop()
	xids(b.xids, 0)                                    // what came before is not this worker's
	json.NewEncoder(p.commands).Encode(worker.Start{}) // a worker that died tells so below
	p.commands.Close()
	var failed *gates.Failure
	done, problem := receive(p.answers, func(r worker.Reply) {
		watchdog.Reset(patience)
		each(r)
		failed = cmp.Or(r.Failure(), failed)
	})
	waited := p.wait()
	if failed != nil {
		// The evidence has the same pointer.
		nameXids(failed, b.xids)
	}
	switch {
	case p.ctx.Err() != nil:
		return fmt.Errorf("the worker was stopped: %w%s", context.Cause(p.ctx), b.reported())
	case problem != nil:
		return b.blamed(problem)
	case !done:
		return fmt.Errorf("the worker died (%w)%s%s", errors.Join(waited, errors.New("it did not finish its answer")), p.noise.said(), b.reported())
	}
	return nil
}

// reported is what the GPU said about a worker's end.
func (b *Backend) reported() string {
	if said := xids(b.xids, xidPatience); said != "" {
		return "; the GPU reported " + said
	}
	return ""
}

// receive reads replies until the last one.
func receive(from io.Reader, each func(worker.Reply)) (done bool, problem error) {
	for dec := json.NewDecoder(from); ; {
		var r worker.Reply
		if err := dec.Decode(&r); err != nil {
			if errors.Is(err, io.EOF) {
				return done, nil
			}
			return done, fmt.Errorf("reading the worker's answer: %w", err)
		}
		if r.Mistake != nil {
			return true, r.Mistake
		}
		if r.Error != "" {
			return true, errors.New(r.Error)
		}
		each(r)
		done = done || r.Done
	}
}

// workerEnv is what the driver needs to find itself and the right GPU. Whatever measures, profiles or sanitizes a side gets it,
// and sees one GPU alone: both sides run on the same.
func (b *Backend) workerEnv() []string {
	// One queue to the GPU is enough for a process with one stream, and takes less
	// time to make.
	env := []string{"CUDA_CACHE_DISABLE=1", "CUDA_DEVICE_MAX_CONNECTIONS=1"}
	names := []string{"PATH", "LD_LIBRARY_PATH", "HOME"}
	if b.config.GPU != "" {
		env = append(env, "CUDA_VISIBLE_DEVICES="+b.config.GPU)
	} else {
		names = append(names, "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
	}
	for _, name := range names {
		if v := b.config.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// A tail keeps the end of what a process prints, for its obituary.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(len(t.text)-2000, 0):]
	return len(p), nil
}

func (t *tail) said() string {
	if text := strings.TrimSpace(string(t.text)); text != "" {
		return ": " + text
	}
	return ""
}

// An xidSource tells of Xids one by one; it is an nvml.XidWatch.
type xidSource interface {
	Next(patience time.Duration) (nvml.Xid, bool, error)
}

// watchXids listens to the GPU. Where NVML does not allow it there is nil:
// evidence then names no Xid, and the doctor says why.
func watchXids(p driver.Properties) xidSource {
	library, err := nvml.Open()
	if err != nil {
		return nil
	}
	device, err := library.DeviceByPCI(p.PCIBusID)
	if err != nil {
		return nil
	}
	watch, err := device.WatchXids()
	if err != nil {
		return nil
	}
	return watch
}

// xidPatience is how long the driver may take to report what ended a worker.
const xidPatience = 500 * time.Millisecond

// xids is what the GPU has reported since it was asked last, in words: "Xid 31
// (GPU memory page fault)". The first one is waited for.
func xids(from xidSource, patience time.Duration) string {
	if from == nil {
		return ""
	}
	var all []string
	for {
		x, ok, err := from.Next(patience)
		if err != nil || !ok || len(all) == 8 {
			return strings.Join(all, ", ")
		}
		if len(all) == 0 || all[len(all)-1] != x.String() {
			all = append(all, x.String())
		}
		patience = 0
	}
}

// nameXids adds them to a failure that may have one: what the kernel did wrong
// without the GPU's notice has none.
func nameXids(f *gates.Failure, from xidSource) {
	switch f.Kind {
	case gates.FailureCrash, gates.FailureIllegalAddress, gates.FailureLaunch, gates.FailureTimeout:
		if said := xids(from, xidPatience); said != "" {
			f.Detail += fmt.Sprintf("; the GPU reported %s", said)
		}
	}
}
