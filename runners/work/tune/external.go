package tune

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// A Program is a proposer in a process. It reads one State as a line of JSON, and answers with one
// line {"candidates": [{"variant": …, "toggles": {…}, "files": {…}}]}; no candidates end the search.
// It runs in a sandbox without network, sees no file of the repository, and has a time limit for each
// answer.
type Program struct {
	name    string
	m       sourceTest
	timeout time.Duration
	process *sandbox.Process
	in      *os.File
	lines   *bufio.Reader
	stderr  *tail
}

// A sourceTest tells which files a candidate may bring.
type sourceTest func(path string) bool

// Limits of an answer.
const (
	answerTimeout = 5 * time.Minute
	maxAnswer     = 8 << 20
	maxProposed   = 10_000 // candidates in an answer
)

// StartProgram starts a proposer. The program is a path; one that ends in .py is run by Python.
func StartProgram(ctx context.Context, words []string, mayBring func(path string) bool, getenv func(string) string) (*Program, error) {
	program, err := exec.LookPath(words[0])
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if strings.HasSuffix(words[0], ".py") { // it need not be executable
		program, err = filepath.Abs(words[0])
		if err == nil {
			_, err = os.Stat(program)
		}
	}
	if err != nil {
		return nil, usage.Errorf("--proposer: %w (name a program, or one of %s)", err, strict.JoinWords(Proposers()))
	}
	args, read := append([]string{program}, words[1:]...), append(sandbox.SystemPaths(), program)
	if strings.HasSuffix(program, ".py") {
		python, err := pyref.Interpreter(ctx, getenv)
		if err != nil {
			return nil, usage.Errorf("--proposer %s needs Python: %w", words[0], err)
		}
		args, read = append([]string{python.Program, "-u"}, args...), append(read, python.Folders()...)
	}
	input, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the proposer %s: %w", words[0], err)
	}
	defer input.Close()
	out, output, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, fmt.Errorf("starting the proposer %s: %w", words[0], err)
	}
	defer output.Close()
	p := &Program{name: words[0], m: mayBring, timeout: answerTimeout, in: in, lines: bufio.NewReader(out), stderr: &tail{}}
	// Standard input and output of a sandbox are its own: the pipes are descriptors 3 and 4, and a
	// shell connects them.
	p.process, err = sandbox.Start(ctx, sandbox.Spec{
		Args: append([]string{"/bin/sh", "-c", `exec "$@" <&3 >&4 3<&- 4>&-`, "proposer"}, args...),
		Env:  []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8"}, Read: read,
		ExtraFiles: []*os.File{input, output}, Stderr: p.stderr,
		Limits: sandbox.Proposer.Limits(),
	})
	if err != nil {
		in.Close()
		out.Close()
		return nil, fmt.Errorf("starting the proposer %s: %w", words[0], err)
	}
	return p, nil
}

// Close ends the program.
func (p *Program) Close() {
	p.in.Close()
	p.process.Kill()
	p.process.Wait()
}

// Propose sends the state and reads the answer.
func (p *Program) Propose(ctx context.Context, s State) ([]Candidate, error) {
	line, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("writing the state for the proposer %s: %w", p.name, err)
	}
	type answer struct {
		text []byte
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		if _, err := p.in.Write(append(line, '\n')); err != nil {
			answered <- answer{err: err}
			return
		}
		text, err := readLine(p.lines, maxAnswer)
		answered <- answer{text, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			return nil, p.mistake("it ended without an answer (answer each line of standard input with one line of standard output; no candidates end the search)%s", p.said())
		}
		return p.parse(a.text, s)
	case <-time.After(p.timeout):
		p.Close()
		return nil, p.mistake("it gave no answer in %v", p.timeout)
	case <-ctx.Done():
		p.Close()
		return nil, context.Cause(ctx)
	}
}

// readLine reads a line of at most so many bytes.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, more, err := r.ReadLine()
		if err != nil {
			return nil, err
		}
		if line = append(line, part...); !more {
			return line, nil
		}
		if len(line) > most {
			return nil, errors.New("the line is too long")
		}
	}
}

func (p *Program) mistake(format string, args ...any) error {
	return usage.Errorf("the proposer %s: %s", p.name, fmt.Sprintf(format, args...))
}

// said is the end of what the program wrote to standard error.
func (p *Program) said() string {
	p.process.Kill()
	p.process.Wait()
	if text := strings.TrimSpace(p.stderr.String()); text != "" {
		return "; it wrote: " + text
	}
	return ""
}

// parse reads an answer. Every mistake names the field.
func (p *Program) parse(text []byte, s State) ([]Candidate, error) {
	candidates, err := parseAnswer(text, s, p.m)
	if err != nil {
		return nil, p.mistake("%v", err)
	}
	return candidates, nil
}

func parseAnswer(text []byte, s State, mayBring func(string) bool) ([]Candidate, error) {
	var answer struct {
		Candidates *[]Candidate `json:"candidates"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&answer)
	if mistaken, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil, fmt.Errorf("%s: %s is no %s", mistaken.Field, mistaken.Value, mistaken.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("its answer is no JSON object with candidates: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("its answer has more than one JSON object in a line")
	}
	if answer.Candidates == nil {
		return nil, errors.New("candidates: the field is missing (write an empty list to end the search)")
	}
	if n := len(*answer.Candidates); n > maxProposed {
		return nil, fmt.Errorf("candidates: %d are too many (propose %d or fewer at a time)", n, maxProposed)
	}
	for i, c := range *answer.Candidates {
		if err := s.Space.Check(c); err != nil {
			return nil, fmt.Errorf("candidates[%d].%w", i, err)
		}
		for _, file := range slices.Sorted(maps.Keys(c.Files)) {
			if !mayBring(file) {
				return nil, fmt.Errorf("candidates[%d].files: %q is no source of the kernel (the manifest's sources or root say which files are)", i, file)
			}
		}
	}
	return *answer.Candidates, nil
}

// tail keeps the end of what is written.
type tail struct{ text []byte }

const maxTail = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - maxTail; over > 0 {
		t.text = slices.Clone(t.text[over:])
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.text) }
