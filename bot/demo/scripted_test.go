package demo

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/agent"
	"github.com/kernelgate/kernelgate/runners/sandbox"
	"github.com/kernelgate/kernelgate/runners/scripted"
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
		Servers: []string{*server}, Token: string(token), Name: *name, Labels: strings.Split(*labels, ","), StateDir: *state, Measure: measureScripted,
	})
}

// script says of each stage what the hardware says.
func script(source string) string {
	for name, says := range map[string]string{
		"stage0": "speed 1", "stage1": "speed 8", "stage2": "speed 60", "stage3a": "speed 60.1", "stage3b": "speed 70 WRONG",
	} {
		if text, err := shipped(name + ".c"); err == nil && text == source {
			return says
		}
	}
	return "BROKEN: no stage of the story"
}

func measureScripted(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
	// As the product's own runner logs it.
	fmt.Fprintf(os.Stderr, `{"level":"INFO","msg":"performance: scripted","kernel":%q}`+"\n", job.Manifest.Name)
	return scripted.Runner{Script: script, Nanos: 2e7}.Measure(ctx, job, dir, p)
}
