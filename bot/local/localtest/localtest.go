// Package localtest has what the tests of package local's users share: a runner that the bot can
// start, and a kernel that a CPU measures in a moment. RunnerMain turns the test's program into
// that runner; Small returns the repository with the kernel. Use it in tests only.
package localtest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// Measure gathers evidence about a job, like measure.Config.Measure.
type Measure func(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error)

// RunnerMain runs a runner and exits, if the bot started the test's program as a runner. Otherwise
// it returns. TestMain must call it first.
func RunnerMain(measure Measure) {
	if len(os.Args) < 2 || os.Args[1] != "runner" {
		return
	}
	if err := runner(os.Args[2:], measure); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runner is a real runner, except that it measures with the given function.
func runner(args []string, measure Measure) error {
	f := flag.NewFlagSet("runner", flag.ContinueOnError)
	server, file, name := f.String("server", "", ""), f.String("token-file", "", ""), f.String("name", "", "")
	labels, state := f.String("labels", "", ""), f.String("state", "", "")
	_, _ = f.String("log-level", "", ""), f.String("log-format", "", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	token, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return agent.Run(ctx, agent.Config{
		Servers: []string{*server}, Token: string(token), Name: *name, Labels: strings.Split(*labels, ","), StateDir: *state, Measure: measure,
	})
}

// SmallSource is the source of the kernel of [Small].
const SmallSource = "kernels/small/small.c"

// The possible contents of SmallSource.
const (
	SmallSlow  = "void small(const float *x, float *y, int n) { for (volatile int i = 0; i < n; i++) { y[i] = x[i]; y[i] = 2 * x[i]; } }\n"
	SmallFast  = "void small(const float *x, float *y, int n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n"
	SmallWrong = "void small(const float *x, float *y, int n) { for (int i = 0; i < n; i++) y[i] = 3 * x[i]; }\n"
)

// Small returns a repository with one slow kernel. Its policy requires only correct outputs: tests
// share their machine, so times prove nothing.
func Small() map[string]string {
	return map[string]string{
		"README.md": "A kernel.\n", SmallSource: SmallSlow,
		"kernels/small/reference.c": "void reference(const double *x, double *y, int n) { for (int i = 0; i < n; i++) y[i] = 2.0 * x[i]; }\n",
		"kernels/small/kernel.yaml": `version: 1
name: small
mode: cpu
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}
reference: {source: reference.c, entry: reference}
tolerance: {rel: 1e-6}
shapes:
  one: {N: 1000}
  two: {N: 5000}
source: small.c
entry: small
`,
		".github/kernelgate.yaml": `version: 1
devices: [cpu]
gates:
  correctness: {shapes: all, seeds: [0], distributions: [normal], secret_cases: 0, norm_error: "<= 1%"}
rules:
  - name: default
`,
	}
}
