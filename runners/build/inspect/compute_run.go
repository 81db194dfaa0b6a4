package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// A SanitizeRequest is one program to run under one tool.
type SanitizeRequest struct {
	Tool  policy.Sanitizer
	Args  []string // the program and its arguments
	Env   []string // its whole environment
	Files Files    // the kernel's sources
	Dir   string   // folder for the tool's log while it runs
}

const (
	printLimit = 200 // a kernel can have millions of hazards; all of them are counted
	maxLog     = 4 << 20
	foundExit  = 99 // the tool's status if the program succeeded and the tool found something
)

// Run runs the program under the tool. It reads the tool's messages only from a separate log,
// because a kernel may print, and its output must not be mistaken for the tool's. The error is for
// a tool that could not run at all, or that the context stopped.
func (c Compute) Run(ctx context.Context, r SanitizeRequest) (Report, error) {
	folder, err := os.MkdirTemp(r.Dir, "sanitize-")
	if err != nil {
		return Report{}, fmt.Errorf("making room for the log of %s: %w", r.Tool, err)
	}
	defer os.RemoveAll(folder)
	log := filepath.Join(folder, "log")
	out := capped{Limit: 64 << 10}
	failure := runTool(ctx, command{
		Args: slices.Concat([]string{c.Path}, options(r.Tool, log), r.Args), Env: append(slices.Clip(r.Env), "LC_ALL=C"), Stdout: &out, Stderr: &out,
	})
	if ctx.Err() != nil {
		return Report{}, fmt.Errorf("%s was stopped: %w", r.Tool, context.Cause(ctx))
	}
	text, err := readLog(log, "the sanitizer", maxLog)
	if err != nil {
		return Report{}, err
	}
	report := parseCompute(text, r.Files)
	exit, ended := errors.AsType[*exec.ExitError](failure)
	switch {
	case failure != nil && !ended:
		return report, fmt.Errorf("running %s: %w", c.Path, failure)
	case report.Found():
	case ended && exit.ExitCode() == foundExit:
		report.Trouble = "it found something and did not say what"
	case ended && report.Trouble == "":
		report.Trouble = fmt.Sprintf("the program under it failed (%v)", failure)
	case !ended && !report.Finished && report.Trouble == "":
		report.Trouble = "it ended without a summary"
	}
	if report.Trouble != "" {
		report.Trouble = bounded(report.Trouble + said(out.String()))
	}
	return report, nil
}

// options restrict the tool to faults of the kernel. Failed API calls are not reported: the driver
// is asked for entry points until it has no more, which is nobody's fault.
func options(tool policy.Sanitizer, log string) []string {
	args := []string{
		"--tool", string(tool), "--log-file", log, "--print-limit", strconv.Itoa(printLimit),
		"--show-backtrace", "device", "--error-exitcode", strconv.Itoa(foundExit),
	}
	if tool == policy.Memcheck {
		args = append(args, "--report-api-errors", "no")
	}
	return args
}

// said returns the last line of the program's output.
func said(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return ": " + last
	}
	return ""
}
