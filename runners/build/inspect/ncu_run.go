package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// A ProfileRequest names one program to profile and what to count.
type ProfileRequest struct {
	Args    []string // the program and its arguments
	Env     []string // its whole environment
	Kernels []string // the symbols of the kernels, as the cubin names them
	Skip    int      // launches of these kernels to skip first
	Count   int      // launches to profile
	Metrics []string
	// Sections are ncu's groups of metrics, which exist on every GPU with the names of that GPU.
	Sections []string
	Samples  bool          // whether launches have where the profiler found their warps; the sections must sample them
	Report   string        // Report is where to write the report for ncu-ui, a name with .ncu-rep.
	Timeout  time.Duration // for the whole run
}

// A Launch is one profiled launch of a kernel.
type Launch struct {
	ID      int
	Kernel  string
	Metrics []Metric // in ncu's order, without counters that have no value
	Sampled *Sampled // nil where it was not asked for, or ncu does not print it
}

// A Metric is one counter. A percentage is kept as ncu writes it: 45.2 with the unit %.
type Metric struct {
	Name  string
	Unit  string
	Value float64 // finite
}

const (
	maxNCULog = 1 << 20
	maxTable  = 16 << 20
)

var symbol = regexp.MustCompile(`^[A-Za-z_$][\w$.]*$`)

func (r ProfileRequest) check() error {
	switch {
	case len(r.Args) == 0:
		return errors.New("no program is named")
	case len(r.Kernels) == 0:
		return errors.New("no kernel is named")
	case r.Skip < 0 || r.Count < 1:
		return fmt.Errorf("%d launches to skip and %d to profile cannot be asked for", r.Skip, r.Count)
	case len(r.Metrics)+len(r.Sections) == 0:
		return errors.New("no metric is asked for")
	case !strings.HasSuffix(r.Report, ".ncu-rep"):
		return fmt.Errorf("the report's name %s does not end in .ncu-rep, which ncu insists on", r.Report)
	}
	for _, k := range r.Kernels {
		if !symbol.MatchString(k) {
			return fmt.Errorf("%q is not the symbol of a kernel", k)
		}
	}
	for _, m := range r.Metrics {
		if !policy.IsMetric(m) {
			return fmt.Errorf("%q is not the name of a metric", m)
		}
	}
	return nil
}

// names returns the kernels for ncu's command line: one by its name, several by a regular
// expression.
func (r ProfileRequest) names() string {
	if len(r.Kernels) == 1 {
		return r.Kernels[0]
	}
	var quoted []string
	for _, k := range r.Kernels {
		quoted = append(quoted, regexp.QuoteMeta(k))
	}
	return "regex:^(" + strings.Join(quoted, "|") + ")$"
}

// counted is the options that say what to count.
func (r ProfileRequest) counted() (args []string) {
	for _, s := range r.Sections {
		args = append(args, "--section", s)
	}
	if len(r.Metrics) > 0 {
		args = append(args, "--metrics", strings.Join(r.Metrics, ","))
	}
	return args
}

// Run profiles the program. A Problem is a known one, with its remedy; the error is anything else.
// Launches are valid if both are nil.
//
// Run calls ncu to write a report, whatever the program prints meanwhile, and again to print it; for
// samples, a third time. The first call prints no table, because newer versions print none when they
// write a report.
func (n NCU) Run(ctx context.Context, r ProfileRequest) ([]Launch, *Problem, error) {
	launches, problem, err := n.run(ctx, r)
	if err != nil {
		return nil, nil, fmt.Errorf("profiling %s: %w", strings.Join(r.Kernels, ", "), err)
	}
	return launches, problem, nil
}

func (n NCU) run(parent context.Context, r ProfileRequest) ([]Launch, *Problem, error) {
	if err := r.check(); err != nil {
		return nil, nil, err
	}
	// A different locale would swap the points and commas in numbers.
	r.Env = append(slices.Clip(r.Env), "LC_ALL=C")

	folder, err := workFolder(r.Report)
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(folder)
	report, log := filepath.Join(folder, "profile.ncu-rep"), filepath.Join(folder, "ncu.log")

	ctx, cancel := context.WithTimeout(parent, r.Timeout)
	defer cancel()
	problem, err := n.collect(ctx, r, report, log)
	if rest := r.without(problem); rest != nil {
		r.Metrics = rest
		problem, err = n.collect(ctx, r, report, log)
	}
	if err == nil && problem == nil {
		var launches []Launch
		if launches, err = n.printAll(ctx, r, report); err == nil {
			if err := os.Rename(report, r.Report); err != nil {
				return nil, nil, fmt.Errorf("keeping ncu's report: %w", err)
			}
			return launches, nil, nil
		}
	}
	if parent.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("ncu was killed after %v: %w (raise the timeout, profile fewer launches or metrics, or a smaller shape)", r.Timeout, err)
	}
	return nil, problem, err
}

// without returns the metrics that are left if the GPU lacks some of those that were asked for in addition to sections. It
// returns nil if that is not the problem, or if all of them are asked for by somebody who needs them.
func (r ProfileRequest) without(problem *Problem) []string {
	if problem == nil || problem.Kind != metricsUnknown || len(r.Sections) == 0 {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(r.Metrics), func(m string) bool {
		return slices.ContainsFunc(problem.Names, func(name string) bool { return m == name || strings.HasPrefix(m, name+".") })
	})
	if len(rest) == len(r.Metrics) {
		return nil
	}
	return rest
}

// workFolder makes a folder next to the report, so that the finished report can be renamed into
// place.
func workFolder(report string) (string, error) {
	beside, err := filepath.Abs(filepath.Dir(report))
	if err != nil {
		return "", fmt.Errorf("finding the folder for the report: %w", err)
	}
	if strings.Contains(beside, "%") {
		return "", fmt.Errorf("ncu would replace the %% in the folder %s: choose another for the report", beside)
	}
	folder, err := os.MkdirTemp(beside, ".ncu-")
	if err != nil {
		return "", fmt.Errorf("making a folder for ncu's report: %w", err)
	}
	return folder, nil
}

func (n NCU) collect(ctx context.Context, r ProfileRequest, report, log string) (*Problem, error) {
	args := append([]string{n.Path,
		"--log-file", log, "--export", report, "--force-overwrite",
		"--target-processes", "all",
		"--clock-control", "none",
		"--kernel-name-base", "mangled", "--kernel-name", r.names(),
		"--launch-skip", strconv.Itoa(r.Skip), "--launch-count", strconv.Itoa(r.Count),
	}, r.counted()...)
	args = append(args, r.Args...)
	out := capped{Limit: 64 << 10}
	failure := runTool(ctx, command{Args: args, Env: r.Env, Stdout: &out, Stderr: &out})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	said, err := readLog(log, "ncu", maxNCULog)
	if err != nil {
		return nil, err
	}
	if failure == nil {
		if _, err := os.Stat(report); err == nil {
			return nil, nil
		}
		failure = errors.New("it ended well but wrote no report")
	}
	if p := classify(said); p != nil {
		return p, nil
	}
	// Before it has a log, ncu prints its messages to the program's stream. They may be quoted, but
	// not trusted.
	return nil, fmt.Errorf("ncu %s: %w: %s (try it by hand: %s)", n.Version, failure, complaint(cmp.Or(said, out.String())), strings.Join(args, " "))
}

// printAll prints a report and its samples, at the same time: ncu takes long to start. Nothing depends on the samples.
func (n NCU) printAll(ctx context.Context, r ProfileRequest, report string) ([]Launch, error) {
	var wait sync.WaitGroup
	var sampled []Sampled
	if r.Samples {
		wait.Go(func() {
			var err error
			if sampled, err = n.sampled(ctx, report, r.Env); err != nil {
				sampled = nil
			}
		})
	}
	launches, err := n.print(ctx, r, report)
	wait.Wait()
	if len(sampled) == len(launches) {
		for i := range launches {
			launches[i].Sampled = &sampled[i]
		}
	}
	return launches, err
}

func (n NCU) print(ctx context.Context, r ProfileRequest, report string) ([]Launch, error) {
	args := []string{n.Path, "--import", report, "--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "mangled"}
	out, complaints := capped{Limit: maxTable}, capped{Limit: 64 << 10}
	if err := runTool(ctx, command{Args: args, Env: r.Env, Stdout: &out, Stderr: &complaints}); err != nil {
		return nil, fmt.Errorf("ncu %s could not print its own report: %w: %s (reinstall Nsight Compute)", n.Version, err, complaint(out.String()+complaints.String()))
	}
	if out.Overflow {
		return nil, fmt.Errorf("ncu's table is longer than %d MiB: profile fewer launches", maxTable>>20)
	}
	var asked []string
	if len(r.Sections) > 0 {
		asked = append([]string{}, r.Metrics...) // a section may have metrics that are no numbers
	}
	launches, err := parseCSV(out.String(), asked)
	if err != nil {
		return nil, fmt.Errorf("ncu %s: %w", n.Version, err)
	}
	if len(launches) == 0 {
		return nil, fmt.Errorf("ncu %s printed a table without a launch: raise the number of launches that the program makes, or skip fewer", n.Version)
	}
	return launches, nil
}

// complaint returns the part of ncu's output that a reader needs: its errors, or else its last
// lines.
func complaint(output string) string {
	var lines, errors []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		lines = append(lines, line)
		if _, after, found := strings.Cut(line, "==ERROR=="); found {
			errors = append(errors, strings.TrimSpace(after))
		}
	}
	switch {
	case len(errors) > 0:
		return strings.Join(errors[:min(3, len(errors))], "; ")
	case len(lines) > 0:
		return strings.Join(lines[max(0, len(lines)-3):], "; ")
	}
	return "it said nothing"
}
