package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/archive"
	"github.com/kernelgate/kernelgate/bot/local"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/hindsight"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// simulateOptions are the flags of policy simulate.
type simulateOptions struct {
	old, data, repo string
	json, suggest   bool
	runs            int
	seed            uint64
	limit           time.Duration
}

func simulateCommand(stdout, stderr io.Writer) *cobra.Command {
	var opt simulateOptions
	cmd := &cobra.Command{
		Use:   "simulate NEW.yaml [FOLDER|FILE...]",
		Short: "Try a changed policy on the evidence of past runs, and on the noise of this fleet",
		Long: "Judges every evidence.json below the folders (default: results) by the new policy and by the old one, and\n" +
			"prints the verdicts that would be different, the runs whose evidence would not suffice, and the seconds\n" +
			"of measuring per verdict. The old policy is the one stored next to the evidence, else --old, else the\n" +
			"repository's.\n\n" +
			"Then it simulates the new policy's performance gate on the A/A controls that the evidence has for each\n" +
			"device: how often a true gain passes, and how often a kernel exactly at the threshold does.\n\n" +
			"Exit status: 0 printed, 2 bad input, 3 any other failure.",
		Example: "  kernelgate policy simulate new.yaml\n" +
			"  kernelgate policy simulate l4 kernels/sdpa_fp8/evidence --old h200\n" +
			"  kernelgate policy simulate new.yaml --data /var/lib/kernelgate --repo acme/kernels\n" +
			"  kernelgate policy simulate new.yaml --suggest   # the smallest guard without a false alarm",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return simulate(cmd.Context(), opt, args[0], args[1:], stdout, stderr)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.old, "old", "", "policy that runs were judged by if none is stored next to their evidence (default: the repository's)")
	f.StringVar(&opt.data, "data", "", "data folder of a bot that is stopped, or a copy of it: judge its newest runs instead of a folder")
	f.StringVar(&opt.repo, "repo", "", "with --data: the repository, owner/name (default: the only one)")
	f.BoolVar(&opt.json, "json", false, "print JSON")
	f.BoolVar(&opt.suggest, "suggest", false, "also find, for each device, the smallest guard that had no alarm on the recorded A/A controls")
	f.IntVar(&opt.runs, "runs", 240, "simulated runs for each device, goal and true speedup; 0 simulates nothing")
	f.Uint64Var(&opt.seed, "seed", 1, "seed of the simulation: the same seed, evidence and policy give the same figures")
	f.DurationVar(&opt.limit, "limit", 2*time.Minute, "time limit of the simulation; fewer runs are then reported")
	return cmd
}

// A past run has evidence and the policy that it was judged by.
type pastRuns interface {
	// Each calls back with every run.
	Each(ctx context.Context, do func(name string, e *gates.Evidence, old hindsight.Policy) error) error
}

// storedRuns are those of folders.
type storedRuns struct{ *check.Stored }

func (s storedRuns) Each(ctx context.Context, do func(string, *gates.Evidence, hindsight.Policy) error) error {
	for _, file := range s.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, old, err := s.Read(file)
		if err == nil {
			err = do(file, e, old)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// simulated is what the command prints as JSON.
type simulated struct {
	Policy  string                 `json:"policy"`
	Devices string                 `json:"devices,omitempty"` // what the policy asks of several devices
	Summary hindsight.Summary      `json:"summary"`
	Rows    []hindsight.Row        `json:"runs"`
	Seed    uint64                 `json:"seed"`
	Powers  []*hindsight.Power     `json:"powers,omitempty"`
	Guards  []hindsight.Suggestion `json:"suggestions,omitempty"`
}

func simulate(ctx context.Context, opt simulateOptions, name string, paths []string, stdout, stderr io.Writer) error {
	if opt.runs < 0 || opt.runs > 100_000 {
		return usage.Errorf("--runs: %d is outside 0 to 100000", opt.runs)
	}
	p, file, err := check.ReadPolicy(name)
	if err != nil {
		return err
	}
	runs, err := opt.past(ctx, paths)
	if err != nil {
		return err
	}
	new := hindsight.Policy{Policy: p, File: file}
	out := simulated{Policy: file, Devices: p.Devices.Explain(), Seed: opt.seed}
	var noise hindsight.Recorder
	live := liveProgress(ctx, stderr)
	defer live.Clear()
	err = runs.Each(ctx, func(name string, e *gates.Evidence, old hindsight.Policy) error {
		out.Rows = append(out.Rows, hindsight.Judge(old, new, name, e))
		noise.Add(e)
		return nil
	})
	if err != nil {
		return err
	}
	out.Summary = hindsight.Summarize(out.Rows)
	opt.simulateNoise(ctx, p, noise.Devices(), &out, live)
	live.Clear()
	if err := ctx.Err(); err != nil {
		return err
	}
	if opt.json {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		if err := enc.Encode(out); err != nil {
			return fmt.Errorf("printing the simulation: %w", err)
		}
		return nil
	}
	fmt.Fprint(stdout, hindsight.Text(out.Rows))
	if out.Devices != "" {
		fmt.Fprint(stdout, "\nEvery run above is of one device. By the new policy, a kernel has several: "+out.Devices+"\n")
	}
	if opt.runs > 0 {
		fmt.Fprint(stdout, "\nSimulated on the noise that was recorded:\n\n"+hindsight.PowerText(out.Powers))
	}
	if opt.suggest {
		fmt.Fprint(stdout, "\nSuggested guards:\n\n"+hindsight.SuggestText(out.Guards))
	}
	return nil
}

// simulateNoise fills in what follows from the recorded noise, within the time limit.
func (opt simulateOptions) simulateNoise(ctx context.Context, p *policy.Policy, devices []*hindsight.Noise, out *simulated, live local.Live) {
	limited, cancel := context.WithTimeout(ctx, opt.limit)
	defer cancel()
	if opt.suggest {
		live.Report(runners.Event{Gate: "simulate", Text: "trying guards on the recorded controls"})
		out.Guards = hindsight.Suggest(limited, p, devices)
	}
	if opt.runs > 0 {
		out.Powers = hindsight.Powers(p, devices)
		hindsight.Simulate(limited, out.Powers, opt.runs, opt.seed, func(done int) {
			if tenth := max(1, opt.runs/10); done%tenth == 0 && done < opt.runs {
				live.Report(runners.Event{Gate: "simulate", Text: fmt.Sprintf("%d of %d runs", done, opt.runs)})
			}
		})
	}
}

func (opt simulateOptions) past(ctx context.Context, paths []string) (pastRuns, error) {
	if opt.data != "" && len(paths) > 0 {
		return nil, usage.Errorf("--data: name a bot's data folder or folders of results, and not both")
	}
	if len(paths) == 0 {
		paths = []string{"results"}
	}
	if opt.data != "" {
		return dataRuns{opt}, nil
	}
	if opt.repo != "" {
		return nil, usage.Errorf("--repo works only with --data (add e.g. --data /var/lib/kernelgate)")
	}
	stored, err := check.FindStored(ctx, paths, opt.old)
	return storedRuns{stored}, err
}

// newest is how many runs of a bot are judged.
const newest = 500

// dataRuns are those of a bot.
type dataRuns struct{ simulateOptions }

func (d dataRuns) Each(ctx context.Context, do func(string, *gates.Evidence, hindsight.Policy) error) (err error) {
	bot, err := archive.Open(ctx, d.data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bot.Close()) }()
	rows, err := bot.Runs(ctx, d.repo, newest)
	if err != nil {
		return err
	}
	known := map[string]*policy.Policy{}
	for _, row := range rows {
		e, err := bot.Evidence(ctx, row)
		if errors.Is(err, archive.ErrExpired) {
			continue
		}
		if err != nil {
			return err
		}
		file, text, err := bot.Policy(ctx, row)
		if err != nil {
			return err
		}
		if known[text] == nil {
			if known[text], err = policy.Parse(file, []byte(text)); err != nil {
				return usage.Errorf("the policy of run %s: %w", row.Job, err)
			}
		}
		if err := do(fmt.Sprintf("%s@%s", row.Change, report.Short(row.Head)), e, hindsight.Policy{Policy: known[text], File: file}); err != nil {
			return err
		}
	}
	return nil
}
