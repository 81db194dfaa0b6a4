// Package demo tells the story of one kernel on this machine: a scratch
// repository with an FP8 attention kernel for the CPU, its stages as changes one
// after the other, each gated by real measurement and merged if it passes.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/check"
)

// Options say how to run the demo.
type Options struct {
	Once    bool // remove the scratch repository at the end
	Version string
	Now     func() time.Time
	Getenv  func(string) string
}

// A stage is one change of the story, with the verdict that the hardware gives
// it.
type stage struct {
	name, title string
	outcome     gates.Outcome
	reason      gates.Reason
}

var story = []stage{
	{"stage1", "Decode K and V once, into contiguous tiles", gates.Pass, ""},
	{"stage2", "Use the vector units for QK and PV", gates.Pass, ""},
	{"stage3a", "Reuse the score buffer for P", gates.Defer, gates.ReasonTooSlow},
	{"stage3b", "Fuse the softmax in registers", gates.Defer, gates.ReasonCorrectness},
}

// The kernel's folder in the scratch repository, and the file that every stage
// rewrites.
const (
	folder = "kernels/sdpa"
	source = folder + "/sdpa.c"
)

// Run plays the story and tells whether every verdict was the expected one.
func Run(ctx context.Context, opt Options, out io.Writer, progress runners.Progress, render func(*gates.Verdict)) (bool, error) {
	dir, err := os.MkdirTemp("", "kernelgate-demo-")
	if err != nil {
		return false, fmt.Errorf("making a scratch folder: %w", err)
	}
	if opt.Once {
		defer os.RemoveAll(dir)
	}
	r := repo{ctx: ctx, dir: dir}
	if err := r.begin(); err != nil {
		return false, err
	}
	fmt.Fprintf(out, "A repository with an FP8 attention kernel (stage 0, scalar) and a policy that asks for +10%% is at %s\n", dir)
	right := true
	var lines []string
	for i, s := range story {
		fmt.Fprintf(out, "\n─── Change %d of %d: %s (%s) ───\n\n", i+1, len(story), s.title, s.name)
		v, err := play(ctx, r, s, opt, progress)
		if err != nil {
			return false, fmt.Errorf("playing %s: %w", s.name, err)
		}
		render(v)
		expected := v.Outcome == s.outcome && v.Reason == s.reason
		right = right && expected
		lines = append(lines, summary(s, v, expected))
	}
	fmt.Fprintf(out, "\n─── The story ───\n\n%s\n", strings.Join(lines, "\n"))
	switch {
	case right:
		fmt.Fprintln(out, "\nEvery verdict is the expected one.")
	default:
		fmt.Fprintln(out, "\nNot every verdict is the expected one: see above.")
	}
	if !opt.Once {
		fmt.Fprintf(out, "Look around in %s: git log, results/, and kernelgate check on a change of your own.\n", dir)
	}
	return right, nil
}

// play opens a stage as a branch, checks it, and merges it if it passes.
func play(ctx context.Context, r repo, s stage, opt Options, progress runners.Progress) (*gates.Verdict, error) {
	if err := r.propose(s); err != nil {
		return nil, err
	}
	var verdict *gates.Verdict
	err := check.Run(ctx, check.Options{
		Dir: r.dir, Base: "main", Head: s.name, Version: opt.Version, Now: opt.Now, Getenv: opt.Getenv,
		Change: policies.Change{Title: s.title},
	}, progress, func(result check.Result) error {
		verdict = result.Verdict
		return nil
	})
	if err != nil {
		return nil, err
	}
	if verdict == nil {
		return nil, errors.New("the change touches no kernel")
	}
	if verdict.Outcome == gates.Pass {
		return verdict, r.git("merge", "--quiet", "--no-ff", "-m", s.title, s.name)
	}
	return verdict, nil
}

func summary(s stage, v *gates.Verdict, expected bool) string {
	mark, got := "✓", string(v.Outcome)
	if v.Reason != "" {
		got += " (" + string(v.Reason) + ")"
	}
	if !expected {
		mark = "✗"
	}
	want := string(s.outcome)
	if s.reason != "" {
		want += " (" + string(s.reason) + ")"
	}
	line := fmt.Sprintf("%s %-8s %-20s", mark, s.name, got)
	if !expected {
		return line + " expected " + want
	}
	for _, c := range v.Comparisons {
		if c.Role == "target" && c.Baseline != nil && c.Candidate != nil {
			return line + fmt.Sprintf(" %s: %.0f µs → %.0f µs", c.Shape, c.Baseline.P50, c.Candidate.P50)
		}
	}
	return strings.TrimRight(line, " ")
}

// A repo is the scratch repository.
type repo struct {
	ctx context.Context
	dir string
}

func (r repo) git(args ...string) error {
	// Nothing of the user's own configuration has a part in the demo.
	cmd := exec.CommandContext(r.ctx, "git", append([]string{
		"-C", r.dir, "-c", "user.name=kernelgate demo", "-c", "user.email=demo@kernelgate.invalid",
		"-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null",
	}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (r repo) write(name string, text []byte) error {
	file := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// begin commits the kernel at stage 0 with its manifest and policy.
func (r repo) begin() error {
	policy, err := policies.Shipped("cpu")
	if err != nil {
		return err
	}
	manifest, err := kernels.Shipped.ReadFile("sdpa_cpu/kernel.yaml")
	if err != nil {
		return fmt.Errorf("reading the shipped kernel: %w", err)
	}
	one, err := singleVariant(manifest)
	if err != nil {
		return err
	}
	files := map[string][]byte{check.PolicyFile: policy, folder + "/kernel.yaml": one, ".gitignore": []byte("results/\n")}
	for _, name := range []string{"fp8.h", "reference.c"} {
		if files[folder+"/"+name], err = kernels.Shipped.ReadFile("sdpa_cpu/" + name); err != nil {
			return fmt.Errorf("reading the shipped kernel: %w", err)
		}
	}
	if files[source], err = kernels.Shipped.ReadFile("sdpa_cpu/stage0.c"); err != nil {
		return fmt.Errorf("reading the shipped kernel: %w", err)
	}
	for name, text := range files {
		if err := r.write(name, text); err != nil {
			return err
		}
	}
	return errors.Join(
		r.git("init", "--quiet", "--initial-branch=main"),
		r.git("add", "--all"),
		r.git("commit", "--quiet", "-m", "FP8 attention for the CPU, scalar"),
	)
}

// singleVariant makes the shipped manifest one whose only source is sdpa.c: in
// the story a change rewrites the kernel instead of adding a variant.
func singleVariant(manifest []byte) ([]byte, error) {
	head, _, ok := strings.Cut(string(manifest), "\nvariants:")
	if !ok {
		return nil, errors.New("the shipped manifest of sdpa_cpu does not end with its variants")
	}
	return []byte(head + "\nsource: sdpa.c\n"), nil
}

// propose commits a stage on a branch of its own and goes back to main.
func (r repo) propose(s stage) error {
	text, err := kernels.Shipped.ReadFile("sdpa_cpu/" + s.name + ".c")
	if err != nil {
		return fmt.Errorf("reading the shipped kernel: %w", err)
	}
	if err := r.git("switch", "--quiet", "--create", s.name, "main"); err != nil {
		return err
	}
	if err := r.write(source, text); err != nil {
		return err
	}
	return errors.Join(
		r.git("commit", "--quiet", "--all", "-m", s.title),
		r.git("switch", "--quiet", "main"),
	)
}
