// Package actions gates a change inside a job of GitHub Actions, on a runner of
// the repository's own: from the event that started the job to a verdict, with
// the same checks and the same sticky comment as the bot's, and an exit status.
//
// It keeps no journal. Every run measures anew. Attempts are counted in checks on
// the repository's first commit, which no push to a pull request moves. Each attempt at
// a machine code is judged at half the error rate of the one before it, and each further
// machine code of a change at a smaller one, so that neither asking again nor another
// variant rolls the dice again. Policy and manifests are the base branch's, and code from a
// fork is not run before somebody has approved that very commit.
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
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners"
)

// Config is one job.
type Config struct {
	Getenv func(string) string // the job's environment
	Dir    string              // the checkout, whose objects need not be fetched again; "" is the current folder

	Kernels []string // names; a changed kernel that is not among them gets no verdict. None means all
	Rounds  int      // at most so many rounds; 0 leaves it to the policy
	Labels  []string // what this machine is, as policies name devices: cpu, gpu, l4

	Results string // folder for results; "" is one in RUNNER_TEMP
	DryRun  bool   // say what would be written to GitHub, and write nothing there
	Version string
	Stdout  io.Writer // gets reports and workflow commands
	Now     func() time.Time
	Random  func() string // a word that nobody can guess

	// Measure gathers evidence about a job in a scratch folder; it is agent.Config's.
	Measure  func(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error)
	Progress runners.Progress
}

// An End is what the job ends with.
type End struct {
	Verdict gates.Outcome // empty where nothing was asked
	Reason  string
	Results string // folder; empty where nothing was measured
	Exit    int    // 0 PASS, 1 DEFER, 2 mistakes in the policy or a manifest, 3 ERROR
}

// What the program's exit tells the job.
const (
	exitPass  = 0
	exitDefer = 1
	exitInput = 2
	exitError = 3
)

// Run does what the job's event asks for. A mistake in how the job is set up is a
// strict.Mistake.
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
		return End{}, strict.Mistakef("%w", err)
	}
	scratch, err := os.MkdirTemp("", "kernelgate-")
	if err != nil {
		return End{}, fmt.Errorf("making a scratch folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	// The sandbox's programs read it as another user.
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
