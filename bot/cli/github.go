package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/actions"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/backend/gpus"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// checkOnGitHub implements kernelgate check --github: the job's event says which change to check.
func checkOnGitHub(cmd *cobra.Command, opt check.Options, gpu string, dryRun bool, stdout, stderr io.Writer) error {
	for _, name := range []string{"base", "head", "policy", "baseline-variant", "variant", "label", "title", "runner", "static", "arch", "json"} {
		if cmd.Flags().Changed(name) {
			return usage.Errorf("kernelgate: --%s: with --github, the event and the policy of the base decide what is checked (remove the flag; --github allows --dir, --dry-run, --gpu, --include, --rivals, --rounds and --results)", name)
		}
	}
	environment := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		environment[name] = value
	}
	// Compilers and harnesses started from here do not need the job's tokens.
	for _, name := range []string{"GITHUB_TOKEN", "INPUT_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"} {
		if err := os.Unsetenv(name); err != nil {
			return fmt.Errorf("removing %s from the environment: %w", name, err)
		}
	}
	if err := measureOn(&opt.Config, gpu); err != nil {
		return err
	}
	labels := gpus.Labels(opt.GPU.List())
	labels = append(labels, strings.FieldsFunc(environment["KERNELGATE_LABELS"], func(r rune) bool { return r == ',' || r == ' ' })...)
	slices.Sort(labels)
	live := liveProgress(cmd.Context(), actions.Defuse(stderr))
	defer live.Clear()
	out, err := actions.Run(cmd.Context(), actions.Config{
		Getenv: func(name string) string { return environment[name] }, Dir: opt.Dir,
		Kernels: opt.Kernels, Rounds: opt.Rounds, Labels: slices.Compact(labels),
		Results: opt.Results, DryRun: dryRun, Version: version(), Stdout: stdout, Now: time.Now, Random: rand.Text,
		Measure: opt.Measure, Progress: live,
	})
	if bad, ok := errors.AsType[usage.Error](err); ok {
		return usage.Error{Err: actions.Inert{Err: bad.Err}}
	}
	if err != nil {
		return actions.Inert{Err: err}
	}
	return asExit(out.Exit)
}
