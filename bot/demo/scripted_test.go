package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/agent"
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/sandbox"
)

// The bot starts its own program as the runner: here that is the test's.
func TestMain(m *testing.M) {
	sandbox.Init()
	if len(os.Args) > 1 && os.Args[1] == "runner" {
		if err := runner(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runner is a real runner in all but measuring.
func runner(args []string) error {
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
		Server: *server, Token: string(token), Name: *name, Labels: strings.Split(*labels, ","), StateDir: *state, Measure: measureScripted,
	})
}

// A scripted backend knows the stages, and says of each what the hardware says.
type scripted struct {
	job bundle.Job
	rng *rand.Rand
}

func measureScripted(ctx context.Context, job bundle.Job, _ string, p runners.Progress) (agent.Outcome, error) {
	b := scripted{job: job, rng: rand.New(rand.NewPCG(1, 2))}
	// As the product's own runner logs it.
	fmt.Fprintf(os.Stderr, `{"level":"INFO","msg":"performance: scripted","kernel":%q}`+"\n", job.Manifest.Name)
	var e *gates.Evidence
	var err error
	if job.Earlier == nil {
		e, err = runners.Gather(ctx, job.Job, b, p)
	} else {
		e, err = runners.Rebench(ctx, job.Job, b, job.Earlier, job.Rounds, p)
	}
	return agent.Outcome{Evidence: e, BuildLog: "scripted\n"}, err
}

// stage is which one a side's source is, and how fast that is.
func (b scripted) stage(side runners.Side) (name string, speed float64) {
	have, err := os.ReadFile(filepath.Join(side.Dir, "sdpa.c"))
	if err != nil {
		return err.Error(), 1
	}
	for name, speed := range map[string]float64{"stage0": 1, "stage1": 8, "stage2": 60, "stage3a": 60.1, "stage3b": 70} {
		if text, err := shipped(name + ".c"); err == nil && text == string(have) {
			return name, speed
		}
	}
	return "another", 1
}

func (b scripted) Device() gates.Device {
	return gates.Device{Kind: "cpu", Name: "scripted", Arch: "none", Units: 1}
}
func (b scripted) Tools() map[string]string { return map[string]string{"cc": "scripted 1"} }

func (b scripted) Build(_ context.Context, _ runners.Role, side runners.Side) (gates.Build, error) {
	name, _ := b.stage(side)
	sum := sha256.Sum256([]byte(name))
	bytes := 1000
	return gates.Build{
		Variant: side.Variant, Source: "sdpa.c", EntryLine: 1, OK: true, Code: hex.EncodeToString(sum[:]), Compiler: "scripted 1",
		Resources: &gates.Resources{Stack: &bytes, CodeSize: &bytes},
	}, nil
}

func (b scripted) Correctness(_ context.Context, gate *policies.CorrectnessGate, _ runners.Progress) (*gates.Correctness, error) {
	out := &gates.Correctness{Tolerance: gates.Tolerance{Abs: 0.06}}
	name, _ := b.stage(b.job.Candidate)
	yes := true
	for _, c := range runners.Cases(b.job.Job, gate, b.rng) {
		e := c.Evidence()
		e.Errors = &gates.Errors{Elements: 100, MaxAbs: 1e-6, MeanAbs: 1e-7, Norm: 1e-6}
		if name == "stage3b" {
			e.Errors = &gates.Errors{Elements: 100, MaxAbs: 3, MeanAbs: 1, Norm: 0.8, Bad: 90}
		}
		e.EndToEnd, e.Deterministic = e.Errors, &yes
		out.Cases = append(out.Cases, e)
	}
	return out, nil
}

func (b scripted) Round(_ context.Context, gate *policies.PerformanceGate, shapes []string, _ runners.Progress) (gates.Round, error) {
	noise := simulate.Noise{Between: 0.001, Within: 0.005}
	round := gates.Round{Seed: b.rng.Uint64() >> 16}
	_, old := b.stage(*b.job.Baseline)
	_, new := b.stage(b.job.Candidate)
	for _, name := range shapes {
		pairs := int(gate.Pairs)
		gain := noise.Ratios(b.rng, new/old, 1, pairs).Rounds[0]
		control := noise.Ratios(b.rng, 1, 1, pairs).Rounds[0]
		s := gates.Series{Shape: name, Batch: 1, Verified: pairs, Worst: &gates.Errors{Elements: 100, Norm: 1e-6}}
		for i := range pairs {
			s.Order = strings.TrimSpace(s.Order + " bca")
			s.Nanos = append(s.Nanos, 2e7/old, 2e7/old/gain[i], 2e7/old/control[i])
		}
		round.Series = append(round.Series, s)
	}
	return round, nil
}

func (b scripted) Profile(context.Context, *policies.ProfileGate, runners.Progress) (*gates.Profile, error) {
	return nil, errors.New("nothing profiles a script")
}
