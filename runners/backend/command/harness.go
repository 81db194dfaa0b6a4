package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// maxResults is how many bytes are read of the result descriptor.
const maxResults = 16 << 20

// A harness is a command with the files and devices that it may see.
type harness struct {
	argv    []string
	dir     string
	path    string   // PATH
	read    []string // in addition to the system's and dir
	devices []string
	gpu     string // UUID
	timeout time.Duration
}

// A harnessOutput is the output of one process of a harness.
type harnessOutput struct {
	results, stdout, stderr bytes.Buffer
}

// run starts a fresh process and waits until it and everything that it started have ended. The
// failure is the program's; the error is the runner's.
func (h harness) run(ctx context.Context, r request) (*harnessOutput, *gates.Failure, error) {
	env, err := r.env(h.path)
	if err != nil {
		return nil, nil, err
	}
	if h.gpu != "" {
		env = append(env, "CUDA_VISIBLE_DEVICES="+h.gpu)
	}
	near, far, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("making a pipe for the results of %s: %w", h.argv[0], err)
	}
	defer near.Close()
	out := &harnessOutput{}
	p, err := sandbox.Start(ctx, sandbox.Spec{
		Args: h.argv, Dir: h.dir, Env: env,
		Read:    slices.Concat(sandbox.SystemPaths(), h.read, []string{h.dir}),
		Devices: h.devices, ExtraFiles: []*os.File{far}, Stdout: &out.stdout, Stderr: &out.stderr,
		Limits: sandbox.Bench.Limits().Within(h.timeout),
	})
	far.Close()
	if err != nil {
		failure := notStarted(h.argv[0], err)
		if failure == nil {
			return nil, nil, fmt.Errorf("starting the bench command: %w", err)
		}
		return out, failure, nil
	}
	drained := make(chan error, 1)
	go func() {
		_, err := io.Copy(&out.results, io.LimitReader(near, maxResults+1))
		if out.results.Len() > maxResults {
			p.Kill()
		}
		drained <- err
	}()
	ended, err := p.Wait()
	if err := errors.Join(err, <-drained); err != nil {
		return nil, nil, fmt.Errorf("running the bench command: %w", err)
	}
	if out.results.Len() > maxResults {
		return out, &gates.Failure{Kind: gates.FailureOutput, Detail: fmt.Sprintf("the bench command printed more than %d MiB of results and was killed", maxResults>>20)}, nil
	}
	return out, failureOf(ended, h.timeout, out), nil
}

// notStarted distinguishes a program that cannot be run, which is its author's mistake, from a
// sandbox that cannot be built. It compares texts, because the sandbox passes on only the text of
// errors inside.
func notStarted(program string, err error) *gates.Failure {
	if errors.Is(err, sandbox.ErrUnsupported) {
		return nil
	}
	for _, step := range []string{": run " + program + ": ", ": find " + program + " in "} {
		if _, _, found := strings.Cut(err.Error(), step); found {
			_, why, _ := strings.Cut(err.Error(), "in a sandbox: ")
			return &gates.Failure{Kind: gates.FailureExit, Detail: "the bench command can not be started: " + why}
		}
	}
	return nil
}

// failureOf describes a failed run; nil means success.
func failureOf(r sandbox.Result, timeout time.Duration, out *harnessOutput) *gates.Failure {
	switch {
	case r.OK():
		return nil
	case r.TimedOut:
		return &gates.Failure{Kind: gates.FailureTimeout, Detail: fmt.Sprintf("the bench command did not end within %v and was killed", timeout)}
	case r.OutOfMemory:
		return &gates.Failure{Kind: gates.FailureOutOfMemory, Detail: "the bench command took more memory than it is allowed and was killed"}
	case r.OutputTruncated:
		return &gates.Failure{Kind: gates.FailureOutput, Detail: fmt.Sprintf("the bench command printed more than %d MiB and was killed", sandbox.Bench.Limits().Output>>20)}
	case r.Signal != 0:
		return &gates.Failure{Kind: gates.FailureCrash, Detail: fmt.Sprintf("the bench command crashed: %s (%s)%s", r.Signal, unix.SignalName(r.Signal), lastWords(out))}
	}
	if signal, ok := shellSignal(r.ExitCode); ok {
		return &gates.Failure{Kind: gates.FailureCrash, Detail: fmt.Sprintf("the bench command crashed: %s (%s)%s", signal, unix.SignalName(signal), lastWords(out))}
	}
	return &gates.Failure{Kind: gates.FailureExit, Detail: fmt.Sprintf("the bench command ended with status %d%s", r.ExitCode, lastWords(out))}
}

// shellSignal returns the signal that a shell reports for its program.
func shellSignal(status int) (syscall.Signal, bool) {
	s := syscall.Signal(status - 128)
	return s, slices.Contains([]syscall.Signal{unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGSYS}, s)
}

// lastWords returns the last line of the program's output, which is usually the most informative
// one.
func lastWords(out *harnessOutput) string {
	for _, text := range []string{out.stderr.String(), out.stdout.String()} {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if last := oneLine(lines[len(lines)-1]); last != "" {
			return ": " + last
		}
	}
	return ""
}

// oneLine makes a program's text fit a table: printable and short.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(text); len(runes) > 200 {
		text = string(runes[:200]) + "…"
	}
	return text
}
