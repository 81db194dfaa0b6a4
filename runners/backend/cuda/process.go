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
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/nvml"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
	"github.com/kernelgate/kernelgate/runners/host/subprocess"
)

// quietTime is how long a worker may be silent beyond the timeout of one launch. A worker ends slow
// launches itself. If it is silent for longer, it hangs in the driver, and must not block the run
// forever.
const quietTime = time.Minute

// resultFD is the descriptor for a worker's answers, so that output of libraries on stdout cannot
// be mistaken for an answer.
const resultFD = 3

// sideWord follows the worker's arguments if the process is that of one side.
const sideWord = "side"

// Worker is the main function of a worker's process: it answers a request on its standard input or,
// under a tool, in a file; or it is the process of a side that another worker started.
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

// A process is one running worker.
type process struct {
	cmd      *exec.Cmd
	ctx      context.Context
	cancel   context.CancelCauseFunc
	commands io.WriteCloser
	answers  *os.File
	noise    tail
	wait     func() error
}

// spawn starts a worker, which does not touch the GPU before its first request. The worker ends
// with ctx.
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
	// The worker has a separate process group, so that a kill reaches all of it.
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
	// Whatever ends the worker, and whether or not its answers are read, no process remains.
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
	p.commands.Write(append(text, '\n')) // the reader finds out that a worker died
	return nil
}

// start runs one request in a separate process and passes its replies on.
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

// finish waits for a worker and passes its replies on.
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
	xids(b.xids, 0)                                    // earlier reports belong to earlier workers
	json.NewEncoder(p.commands).Encode(worker.Start{}) // a worker that died is reported below
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

// reported returns what the GPU reported when the worker ended.
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

// workerEnv returns the environment that the driver needs to find itself and the right GPU.
// Everything that measures, profiles or sanitizes a side gets it, and sees only this GPU: both
// sides run on the same one.
func (b *Backend) workerEnv() []string {
	// One queue to the GPU is enough for a process with one stream, and is faster to create.
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

// A tail keeps the end of a process's output, for error messages.
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

// An xidSource reports Xids one by one; it is an nvml.XidWatch.
type xidSource interface {
	Next(patience time.Duration) (nvml.Xid, bool, error)
}

// watchXids subscribes to the GPU's Xids. It returns nil if NVML does not allow that: evidence then
// names no Xid, and kernelgate doctor says why.
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

// xidPatience is how long the driver may take to report why a worker ended.
const xidPatience = 500 * time.Millisecond

// xids returns the Xids since the last call, in words: "Xid 31 (GPU memory page fault)". It waits
// for the first one.
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

// nameXids adds the Xids to a failure that may have caused one. A mistake that the GPU does not
// notice has none.
func nameXids(f *gates.Failure, from xidSource) {
	switch f.Kind {
	case gates.FailureCrash, gates.FailureIllegalAddress, gates.FailureLaunch, gates.FailureTimeout:
		if said := xids(from, xidPatience); said != "" {
			f.Detail += fmt.Sprintf("; the GPU reported %s", said)
		}
	}
}
