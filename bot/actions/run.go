// Package actions gates a change inside a job of GitHub Actions, on the repository's own runner. It
// goes from the event that started the job to a verdict and an exit status, with the same checks
// and the same sticky comment as the bot. Policy and manifests come from the base branch, and code
// from a fork does not run before somebody has approved that exact commit.
//
// It keeps no journal: every run measures from the start. Attempts are counted in checks on the
// repository's first commit, which no push to a pull request moves. Each attempt at a machine code
// is judged at half the error rate of the previous one, and each further machine code of a change
// at a smaller one, so that neither a rerun nor a new variant gets another free chance.
package actions

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/publish"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
)

// Config describes one job.
type Config struct {
	Getenv func(string) string // the job's environment
	Dir    string              // the checkout, whose objects are reused; empty for the current folder

	Kernels []string // kernels to measure, all if empty; other changed kernels get no verdict
	Rounds  int      // limit of rounds; 0 leaves it to the policy
	Labels  []string // what this machine is, by the policies' names of devices: cpu, gpu, l4

	Results string // folder for results; empty for one in RUNNER_TEMP
	DryRun  bool   // report what would be written to GitHub, and write nothing
	Version string
	Stdout  io.Writer // receives reports and workflow commands
	Now     func() time.Time
	Random  func() string // returns an unguessable word

	// Measure gathers evidence about a job in a scratch folder, like measure.Config.Measure.
	Measure  func(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error)
	Progress runners.Progress
}

// An End is the result of the job.
type End struct {
	Verdict gates.Outcome // empty if nothing was asked
	Reason  string
	Results string // folder; empty if nothing was measured
	Exit    int    // 0 PASS, 1 DEFER, 2 mistakes in the policy or a manifest, 3 ERROR
}

// The exit statuses of the program.
const (
	exitPass  = 0
	exitDefer = 1
	exitInput = 2
	exitError = 3
)

// Run executes what the job's event asks for. A mistake in the setup of the job is a
// usage.Error.
func Run(ctx context.Context, c Config) (End, error) {
	env, err := readEnv(c.Getenv)
	if err != nil {
		return End{}, err
	}
	event, relabelled, err := env.event()
	if err != nil {
		return End{}, err
	}
	options := client.Options{Checks: true, Statuses: env.report == reportStatus, BaseURL: env.apiURL, GitURL: env.serverURL, Now: c.Now}
	var dry *dryRun
	if c.DryRun {
		dry = newDryRun()
		options.Transport = dry
	}
	client, err := client.NewToken(env.token, options)
	if err != nil {
		return End{}, usage.Errorf("%w", err)
	}
	scratch, err := os.MkdirTemp("", "kernelgate-")
	if err != nil {
		return End{}, fmt.Errorf("making a scratch folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	// The programs in the sandbox read it as a different user.
	if err := os.Chmod(scratch, 0o755); err != nil {
		return End{}, fmt.Errorf("opening the scratch folder: %w", err)
	}
	s := &session{
		Config: c, env: env, relabelled: relabelled, hub: client, scratch: scratch, verdicts: map[string]*gates.Verdict{},
		lines: &workflow{out: c.Stdout, random: c.Random, dry: c.DryRun},
	}
	withHistory := func(body string) string { return remember(body, slices.Concat(s.state.Past, s.state.Runs)) }
	s.posts = &publish.Publisher{GitHub: client, Lenient: true, Extend: withHistory}
	end, err := s.handle(ctx, event)
	if dry != nil {
		s.lines.print(dry.String())
	}
	return end, err
}
