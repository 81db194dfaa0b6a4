package cpu

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/inspect"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/object"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// Sanitize builds the candidate again for every tool of the gate, with the compiler's sanitizer,
// and runs it on the gate's cases. The arguments are heap copies of their exact size: in the shared
// memory of the other children, a read beyond an array would hit a guard and go unnoticed.
func (w *Worker) Sanitize(ctx context.Context, gate *policy.SanitizeGate, p runners.Progress) (*gates.Sanitize, error) {
	cases := runners.SanitizeCases(w.job, gate, w.rng)
	result := &gates.Sanitize{Unseen: []string{"leaks are not looked for: the process that calls the kernel ends with it"}}
	for _, c := range cases {
		result.Cases = append(result.Cases, c.Input())
	}
	for i, tool := range gate.Tools {
		p.Report(runners.Event{Gate: gates.GateSanitize, Text: string(tool), Done: i, Total: len(gate.Tools), Unit: "tools"})
		start := time.Now()
		run, err := w.sanitizeWith(ctx, tool, cases)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", tool, err)
		}
		run.Tool, run.Seconds = string(tool), time.Since(start).Seconds()
		result.Tools = append(result.Tools, run)
	}
	return result, nil
}

// sanitizeWith runs one tool.
func (w *Worker) sanitizeWith(ctx context.Context, tool policy.Sanitizer, cases []runners.Case) (gates.Sanitized, error) {
	if tool == policy.Synccheck {
		return gates.Sanitized{NotApplicable: "a CPU kernel has one thread, which waits at no barrier"}, nil
	}
	s, ok := inspect.ForC(tool, w.cc.Version)
	if !ok {
		return gates.Sanitized{Skipped: fmt.Sprintf("%s has no sanitizer for reads of unwritten memory (set CC=clang, which has one)", w.cc.Version)}, nil
	}
	run := gates.Sanitized{With: filepath.Base(w.cc.Path) + " " + s.Flag()}
	err := w.look(ctx, tool, s, runners.Candidate, cases, &run)
	if err == nil && len(run.Findings) > 0 && w.job.Baseline != nil {
		return w.besideBaseline(ctx, tool, s.GoingOn(), cases, run)
	}
	if err != nil || run.Failure == nil || len(run.Findings) > 0 {
		return inspect.Late(ctx, run, err)
	}
	// A program without a kernel shows whether the host lacks the sanitizer: the candidate must
	// have no influence on that.
	why, err := w.sanitizerStarts(ctx, tool, s)
	switch {
	case err != nil:
		return inspect.Late(ctx, run, err)
	case why != "" && tool == policy.Racecheck && w.job.Manifest.Threads < 2:
		// Nothing is lost: the sandbox allows no second thread.
		return gates.Sanitized{NotApplicable: "a CPU kernel has one thread (and " + why + ")"}, nil
	case why != "":
		run.Skipped, run.Failure = why, nil
	}
	return run, nil
}

// besideBaseline checks both sides again with a sanitizer that continues after a finding: a finding
// that the baseline also has must not hide later ones.
func (w *Worker) besideBaseline(ctx context.Context, tool policy.Sanitizer, s inspect.C, cases []runners.Case, run gates.Sanitized) (gates.Sanitized, error) {
	all, before := gates.Sanitized{}, gates.Sanitized{}
	if err := w.look(ctx, tool, s, runners.Candidate, cases, &all); err != nil {
		return inspect.Late(ctx, run, err)
	}
	run.Findings, run.Hidden = inspect.Joined(all.Findings, run.Findings), max(all.Hidden, run.Hidden)
	run.Failure = all.Failure // it did not reach its end, so there may be more findings
	if err := w.look(ctx, tool, s, runners.Baseline, cases, &before); err != nil {
		return inspect.Late(ctx, run, err)
	}
	run.Baseline = before.Findings
	return run, nil
}

// look builds a side with the sanitizer and runs it on the cases.
func (w *Worker) look(ctx context.Context, tool policy.Sanitizer, s inspect.C, role runners.Role, cases []runners.Case, run *gates.Sanitized) error {
	var all inspect.Report
	whole, built := w.sideOf(role), map[string]string{}
	files := inspect.FilesOf(whole.Dir)
	for n, c := range cases {
		side, err := w.servingSide(whole, c.Shape.Dims)
		if err != nil {
			return err
		}
		if built[side.Variant] == "" {
			exe, failure, err := w.buildSanitized(ctx, tool, s, role, side)
			if err != nil || failure != nil {
				run.Failure = failure
				return err
			}
			built[side.Variant] = exe
		}
		report, failure, err := w.runSanitized(ctx, built[side.Variant], s, side, c, files)
		if err != nil {
			return err
		}
		for i := range report.Findings {
			report.Findings[i].Shape, report.Findings[i].Cases = c.Shape.Name, []int{n}
		}
		all.Add(report)
		if run.Failure == nil && (s.GoesOn() || !report.Found()) {
			run.Failure = failure
		}
	}
	run.Findings, run.Hidden = all.Findings, all.Hidden
	return nil
}

// sanitizerStarts tries the sanitizer on a program without a kernel, and returns why it does not
// work on this host.
func (w *Worker) sanitizerStarts(ctx context.Context, tool policy.Sanitizer, s inspect.C) (string, error) {
	out := filepath.Join(w.config.Scratch, "sanitize-probe-"+string(tool))
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", fmt.Errorf("making room for a sanitizer: %w", err)
	}
	source, exe := filepath.Join(out, "main.c"), filepath.Join(out, "probe")
	if isCXX(w.job) {
		source += "pp"
	}
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o644); err != nil {
		return "", fmt.Errorf("writing a sanitizer's first program: %w", err)
	}
	args := append(s.Flags(), source, "-o", exe)
	log, err := w.compiler.Run(ctx, toolchain.Compile{Dir: out, Args: args, Out: out})
	if refusal, ok := errors.AsType[*output.CompileError](err); ok {
		fmt.Fprintf(&w.log, "# %s\n%s\n", s.Flag(), log)
		return fmt.Sprintf("%s cannot be used here: %s (install the compiler's sanitizer libraries)", s.Flag(), refusal.Summary), nil
	}
	if err != nil {
		return "", err
	}
	said, r, err := w.call(ctx, exe, s, nil)
	if err != nil || r.OK() {
		return "", err
	}
	return fmt.Sprintf("a program with %s does not start in the sandbox%s", s.Flag(), firstLine(said)), nil
}

func firstLine(said string) string {
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" {
			return ": " + line
		}
	}
	return ""
}

func (w *Worker) sideOf(role runners.Role) runners.Side {
	if role == runners.Baseline {
		return *w.job.Baseline
	}
	return w.job.Candidate
}

// buildSanitized compiles a side with the sanitizer. A source that compiled for the build gate but
// not here is a failure of the side.
func (w *Worker) buildSanitized(ctx context.Context, tool policy.Sanitizer, s inspect.C, role runners.Role, side runners.Side) (string, *gates.Failure, error) {
	m := w.job.Of(side)
	variant, err := m.Variant(side.Variant)
	if err != nil {
		return "", nil, err
	}
	sample, err := tensor.NewProblem(m, m.Shapes[0], m.ToggleValues(side.Variant), "zero", 0)
	if err != nil {
		return "", nil, err
	}
	out := filepath.Join(w.config.Scratch, "sanitize-"+string(tool)+"-"+side.Variant)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", nil, fmt.Errorf("making room for a sanitizer: %w", err)
	}
	source, kernel, exe := filepath.Join(out, "main.c"), filepath.Join(out, "kernel.o"), filepath.Join(out, "kernel")
	// The name comes from the build: in C++ it is mangled. If nothing was built, the name is that
	// of C.
	symbol := m.Entry
	for _, built := range w.sides[role].programs() {
		if built.variant == side.Variant {
			symbol = built.symbol
		}
	}
	prototype := strings.TrimSuffix(m.CPrototype(object.EntrySymbol), ";")
	text := sanitizedStub(fmt.Sprintf("%s __asm__(%q);", prototype, symbol), object.EntrySymbol, sample.Args)
	if isCXX(w.job) {
		source += "pp"
		text = "extern \"C\" {\n" + text + "}\n"
	}
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		return "", nil, fmt.Errorf("writing the main of a sanitized kernel: %w", err)
	}
	flags := compileOnly(slices.Concat(m.IncludeFlags(), m.CompilerFlags(side.Variant), m.Defines(side.Variant)))
	if tool != policy.Racecheck {
		// It does not know OpenMP's barriers, and would report a race behind each of them. So it
		// checks only threads that the kernel starts itself.
		flags = append(flags, openMP(m)...)
	}
	for _, step := range []toolchain.Compile{
		{Dir: side.Dir, Args: slices.Concat([]string{"-c", m.SourceFile(variant), "-o", kernel}, flags, s.Flags())},
		{Dir: out, Args: slices.Concat([]string{"-O1"}, s.Flags(), []string{source, kernel, "-o", exe, "-lm"}, openMP(m))},
	} {
		step.Out = out
		log, err := w.compiler.Run(ctx, step)
		fmt.Fprintf(&w.log, "# %s\n%s %s\n%s\n", tool, filepath.Base(w.cc.Path), strings.Join(step.Args, " "), log)
		if refusal, ok := errors.AsType[*output.CompileError](err); ok {
			return "", &gates.Failure{Kind: gates.FailureBuild, Detail: fmt.Sprintf("the kernel does not build with %s: %s", s.Flag(), refusal.Summary)}, nil
		}
		if err != nil {
			return "", nil, err
		}
	}
	return exe, nil, nil
}

// runSanitized calls the kernel once on one case, in a separate process: unless the sanitizer
// continues, it ends the process at the first finding.
func (w *Worker) runSanitized(ctx context.Context, exe string, s inspect.C, side runners.Side, c runners.Case, files inspect.Files) (inspect.Report, *gates.Failure, error) {
	m := w.job.Of(side)
	p, err := tensor.NewProblem(m, c.Shape, m.ToggleValues(side.Variant), c.Distribution, c.Seed)
	if err != nil {
		return inspect.Report{}, nil, err
	}
	// Behind the table of words follow a table of sizes and a word for the stub's answer.
	n := len(p.Args)
	l := layout{tensor.NewLayout(p.Args, 16*n+8)}
	memory, err := newMemory(l.Size)
	if err != nil {
		return inspect.Report{}, nil, err
	}
	defer memory.close()
	l.image(memory.data, 0, p.Args)
	for i, a := range p.Args {
		binary.LittleEndian.PutUint64(memory.data[8*(n+i):], uint64(a.Size()))
	}
	said, r, err := w.call(ctx, exe, s, memory)
	if err != nil {
		return inspect.Report{}, nil, err
	}
	report := inspect.ParseC(said, files)
	returned := memory.data[16*n] == sanitizedDone
	switch {
	case r.OK() && returned && !report.Found():
		return report, nil, nil
	case s.GoesOn() && returned && report.Found() && (r.OK() || r.ExitCode == inspect.FoundExit) && !r.OutputTruncated:
		return report, nil, nil
	case r.TimedOut:
		return report, &gates.Failure{Kind: gates.FailureTimeout, Detail: fmt.Sprintf("the kernel did not return within %v under %s on %s", sanitizedTime(w.config.LaunchTimeout), s.Flag(), c.Shape.Name)}, nil
	}
	// The process ended without a report and did not reach its end, so a clean result is not
	// proven.
	return report, &gates.Failure{Kind: gates.FailureCrash, Detail: fmt.Sprintf("the kernel ended its process under %s on %s, without a report (%s)%s", s.Flag(), c.Shape.Name, endOf(r), troubled(report))}, nil
}

func troubled(r inspect.Report) string {
	if r.Trouble != "" {
		return ": " + r.Trouble
	}
	return ""
}

func endOf(r sandbox.Result) string {
	switch {
	case len(r.Refused) > 0:
		return strings.Join(r.Refused, "; ")
	case r.Signal != 0:
		return unix.SignalName(r.Signal)
	}
	return fmt.Sprintf("exit status %d", r.ExitCode)
}

// sanitizedTime is how long a launch may take under a sanitizer.
func sanitizedTime(launch time.Duration) time.Duration {
	return launch * (sandbox.SanitizedTime / sandbox.LaunchTime)
}

// call runs the program in the sandbox and returns its output.
func (w *Worker) call(ctx context.Context, exe string, s inspect.C, m *memory) (string, sandbox.Result, error) {
	var out bytes.Buffer
	spec := sandbox.Spec{
		Args: []string{exe}, Env: append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", fmt.Sprintf("OMP_NUM_THREADS=%d", w.job.Manifest.Threads)}, s.Env()...),
		Read:   append(sandbox.SystemPaths(), exe),
		Stdout: &out, Stderr: &out,
		Limits: sandbox.SanitizedKernel.Limits().Within(sanitizedTime(w.config.LaunchTimeout)),
	}
	if m != nil {
		spec.ExtraFiles = []*os.File{m.file}
	}
	r, err := sandbox.Run(ctx, spec)
	if err != nil {
		return out.String(), r, fmt.Errorf("running the kernel under %s: %w", s.Flag(), err)
	}
	return out.String(), r, nil
}

// sanitizedDone is what the stub writes to the memory after the kernel has returned.
const sanitizedDone = 'k'

// sanitizedText is the main function of a sanitized process: it copies every array to a heap block
// of its exact size, calls the kernel once and writes that it returned. Arrays that the kernel only
// writes are left uninitialised.
const sanitizedText = `#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

%s;

static void *copy(char *memory, uint64_t at, uint64_t size, int reads)
{
    void *array = 0;
    if (posix_memalign(&array, 256, size) != 0)
        exit(73);
    if (reads)
        memcpy(array, memory + at, size);
    return array;
}

%s
int main(void)
{
    struct stat about;
    uint64_t word[%d];
    char *memory;

    if (fstat(%d, &about) != 0)
        return 70;
    memory = (char *)mmap(0, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, %d, 0);
    if (memory == MAP_FAILED)
        return 71;
    memcpy(word, memory, sizeof word);
    %s(%s);
    memory[%d] = '%c';
    return 0;
}
`

// sanitizedStub writes the main for an entry point with the given prototype and
// arguments.
func sanitizedStub(prototype, entry string, args []tensor.Arg) string {
	var copies strings.Builder
	for _, a := range args {
		if !a.Array() {
			continue
		}
		reads := 0
		if a.Reads() {
			reads = 1
		}
		// A function for each: a report says by whom the memory was taken.
		fmt.Fprintf(&copies, "__attribute__((noinline)) static %s *%s%s(char *memory, uint64_t at, uint64_t size)\n{\n    return (%[1]s *)copy(memory, at, size, %[4]d);\n}\n\n",
			a.DType.CType(), inspect.ArgumentPrefix, a.Name, reads)
	}
	pass := passed(args, func(i int, a tensor.Arg) string {
		return fmt.Sprintf("%s%s(memory, word[%d], word[%d])", inspect.ArgumentPrefix, a.Name, i, len(args)+i)
	})
	return fmt.Sprintf(sanitizedText, strings.TrimSuffix(prototype, ";"), copies.String(), 2*len(args), fdMemory, fdMemory, entry, strings.Join(pass, ", "), 16*len(args), sanitizedDone)
}
