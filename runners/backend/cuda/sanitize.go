package cuda

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/build/inspect"
)

// Sanitize runs the candidate's cubin, the same one that is compared and timed, under the tools of
// compute-sanitizer: one process per tool, which launches every case. If the host lacks the
// program, that is reported with its remedy.
func (b *Backend) Sanitize(ctx context.Context, gate *policy.SanitizeGate, p runners.Progress) (*gates.Sanitize, error) {
	t := b.tools
	if t == nil {
		var err error
		if t, err = b.beginTools(ctx, gate); err != nil && ctx.Err() != nil {
			return nil, err
		} else if err != nil {
			return &gates.Sanitize{Skipped: err.Error()}, nil
		}
	}
	b.tools = nil
	defer t.stop()
	p.Report(runners.Event{Gate: gates.GateSanitize, Text: "all tools at once"})
	b.firstRound()
	select {
	case <-t.done:
	case <-ctx.Done(): // so that the tools stop, too
		t.stop()
		<-t.done
	}
	result := &gates.Sanitize{Cases: t.cases, Unseen: []string{
		"racecheck looks at shared memory: races of global memory, and between blocks, are not looked for",
		"initcheck looks at global memory: shared memory that nobody wrote is not looked for",
	}}
	program, request := t.program, t.request
	for i, tool := range gate.Tools {
		if t.failure != nil {
			result.Tools = append(result.Tools, gates.Sanitized{Tool: string(tool), With: "compute-sanitizer " + program.Version, Failure: t.failure})
			continue
		}
		var err error
		o := t.outcomes[i]
		run := gates.Sanitized{Findings: o.report.Findings, Hidden: o.report.Hidden}
		if o.err != nil || o.report.Found() || o.report.Trouble == "" {
			run, err = inspect.Late(ctx, run, o.err)
		} else {
			run, err = b.troubled(ctx, program, tool, request, run, o.report.Trouble)
		}
		if err == nil && len(run.Findings) > 0 && b.job.Baseline != nil && b.sides[runners.Baseline] != nil {
			run, err = b.besideBaseline(ctx, program, tool, request, run)
		}
		if err != nil {
			return nil, err
		}
		run.Tool, run.With, run.Seconds = string(tool), "compute-sanitizer "+program.Version, o.took.Seconds()
		result.Tools = append(result.Tools, run)
	}
	return result, nil
}

// tools are the running sanitizers of the candidate.
type tools struct {
	program  inspect.Compute
	request  worker.Request
	cases    []gates.Input
	failure  *gates.Failure // why nothing can be checked
	outcomes []outcome      // of each tool of the gate, once done is closed
	done     chan struct{}
	stop     context.CancelFunc
}

type outcome struct {
	report inspect.Report
	err    error
	took   time.Duration
}

// beginTools starts all tools of the gate at once: nothing is timed, so they can run together.
func (b *Backend) beginTools(ctx context.Context, gate *policy.SanitizeGate) (*tools, error) {
	program, err := inspect.FindSanitizer(ctx, b.config.Getenv)
	if err != nil {
		return nil, err
	}
	t := &tools{program: program, outcomes: make([]outcome, len(gate.Tools)), done: make(chan struct{})}
	var cases []worker.Case
	for _, c := range runners.SanitizeCases(b.job, gate, b.rng) {
		t.cases = append(t.cases, c.Input())
		cases = append(cases, worker.Case{Case: c})
	}
	if t.failure, err = b.cover(ctx, cases, nil); err != nil {
		return nil, err
	}
	ctx, t.stop = context.WithCancel(ctx)
	if t.failure != nil {
		close(t.done)
		return t, nil
	}
	if t.request, err = b.request(ctx, worker.TaskLaunch); err != nil {
		return nil, err
	}
	t.request.Baseline = nil
	t.request.Cases, t.request.Launch, t.request.Apart = cases, 1, true
	files := inspect.FilesOf(b.job.Candidate.Dir)
	var all sync.WaitGroup
	for i, tool := range gate.Tools {
		all.Go(func() {
			start := time.Now()
			report, err := b.sanitizeTask(ctx, program, tool, t.request, files)
			t.outcomes[i] = outcome{report, err, time.Since(start)}
		})
	}
	go func() {
		all.Wait()
		close(t.done)
	}()
	return t, nil
}

// besideBaseline checks both sides again, case by case. A mistake ends the launch and the tool's
// process, so a mistake that the baseline also has would hide the later cases.
func (b *Backend) besideBaseline(ctx context.Context, program inspect.Compute, tool policy.Sanitizer, request worker.Request, run gates.Sanitized) (gates.Sanitized, error) {
	var is, was inspect.Report
	cases := request.Cases
	for n := range cases {
		request.Cases = cases[n : n+1]
		for _, look := range []struct {
			built *side.Built
			dir   string
			found *inspect.Report
		}{{b.sides[runners.Candidate], b.job.Candidate.Dir, &is}, {b.sides[runners.Baseline], b.job.Baseline.Dir, &was}} {
			request.Candidate = look.built
			report, err := b.sanitizeTask(ctx, program, tool, request, inspect.FilesOf(look.dir))
			if err != nil {
				return inspect.Late(ctx, run, err)
			}
			for i := range report.Findings {
				report.Findings[i].Shape, report.Findings[i].Cases = cases[n].Shape.Name, []int{n}
			}
			look.found.Add(report)
		}
	}
	run.Findings, run.Hidden = inspect.Joined(is.Findings, run.Findings), max(is.Hidden, run.Hidden)
	run.Baseline = was.Findings
	return run, nil
}

// troubled distinguishes a tool that does not work from a kernel that cannot be checked. It tries
// the tool on the base's reference, because the candidate must have no influence on that.
func (b *Backend) troubled(ctx context.Context, program inspect.Compute, tool policy.Sanitizer, request worker.Request, run gates.Sanitized, trouble string) (gates.Sanitized, error) {
	request.Candidate, request.Cases = nil, request.Cases[:1]
	var err error
	if b.python != nil {
		request.Oracle, err = b.oracle(ctx) // the judge's own kernels are launched instead
	} else {
		request.Reference, err = b.reference(ctx)
	}
	if err != nil {
		return inspect.Late(ctx, run, err)
	}
	known, err := b.sanitizeTask(ctx, program, tool, request, inspect.Files{})
	switch {
	case err != nil:
		return inspect.Late(ctx, run, err)
	case known.Trouble != "":
		run.Skipped = fmt.Sprintf("%s does not work on this host: %s (try it by hand: compute-sanitizer --tool %s on any CUDA program)", tool, known.Trouble, tool)
	default:
		run.Failure = &gates.Failure{Kind: gates.FailureTool, Detail: "the kernel could not be looked at: " + trouble}
	}
	return run, nil
}

// sanitizeTask runs one request in a worker under the tool. A launch may take as long as the gate
// allows.
func (b *Backend) sanitizeTask(ctx context.Context, program inspect.Compute, tool policy.Sanitizer, request worker.Request, files inspect.Files) (inspect.Report, error) {
	request.Timeout = time.Hour
	text, err := json.Marshal(request)
	if err != nil {
		return inspect.Report{}, fmt.Errorf("writing the worker's request: %w", err)
	}
	file := filepath.Join(b.config.Scratch, "sanitize-"+string(tool)+".json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return inspect.Report{}, fmt.Errorf("writing the worker's request: %w", err)
	}
	return program.Run(ctx, inspect.SanitizeRequest{
		Tool: tool, Args: append(slices.Clone(b.config.Program), file), Env: b.workerEnv(), Files: files, Dir: b.config.Scratch,
	})
}
