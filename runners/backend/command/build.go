package command

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// folders are the names of the sides' folders. They are equally long: the length of a path moves a
// program's stack, and with it its speed.
var folders = map[runners.Role]string{runners.Baseline: "base", runners.Candidate: "head"}

// buildTime returns how long a side may build; 0 leaves it to the sandbox's table. If the context
// has a deadline, the build may run a little longer, so that the context reports the deadline.
func buildTime(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return time.Until(deadline) + time.Minute
}

// Build copies one side's folder and runs the manifest's build command in it.
func (w *Worker) Build(ctx context.Context, role runners.Role, from runners.Side) (gates.Build, error) {
	m := w.job.Of(from)
	variant, err := m.Variant(from.Variant)
	if err != nil {
		return gates.Build{}, err
	}
	start := time.Now()
	b := gates.Build{
		Variant: from.Variant, Source: variant.Source, Toggles: m.ToggleValues(from.Variant), Flags: m.Defines(from.Variant),
		Compiler: strings.Join(m.Command.Build, " "), Arch: cmp.Or(w.Device().Arch, runtime.GOARCH),
	}
	built := side{dir: filepath.Join(w.config.Scratch, folders[role]), variant: from.Variant, manifest: m}
	if err := copyTree(from.Dir, built.dir); err != nil {
		return b, err
	}
	log, problem, err := w.build(ctx, built, buildTime(ctx))
	fmt.Fprintf(&w.log, "# %s\n%s\n%s\n", role, b.Compiler, log)
	if err != nil {
		return b, err
	}
	b.Diagnostics = diagnostics(log)
	b.Seconds = time.Since(start).Seconds()
	if problem != "" {
		b.Error = problem
		return b, nil
	}
	// bench gets the variant through its environment, so the variant is part of what runs.
	if b.Code, err = hashTree(built.dir, append([]string{from.Variant}, b.Flags...)...); err != nil {
		return b, err
	}
	w.sides[role] = built
	b.OK = true
	return b, nil
}

// build runs the build command. problem is the build's failure in one line.
func (w *Worker) build(ctx context.Context, s side, timeout time.Duration) (log, problem string, err error) {
	argv := w.job.Manifest.Command.Build
	env, err := s.request(building).env(w.config.Getenv("PATH"))
	if err != nil {
		return "", "", err
	}
	var out bytes.Buffer
	r, err := sandbox.Run(ctx, sandbox.Spec{
		Args: argv, Dir: s.dir, Env: env, Read: slices.Concat(sandbox.SystemPaths(), w.config.readable()), Write: []string{s.dir},
		Stdout: &out, Stderr: &out,
		Limits: sandbox.CommandBuild.Limits().Within(timeout),
	})
	log = strings.ToValidUTF8(out.String(), "\uFFFD")
	if err != nil {
		if failure := notStarted(argv[0], err); failure != nil {
			return log, strings.Replace(failure.Detail, "bench", "build", 1), nil
		}
		return log, "", fmt.Errorf("running the build command %s: %w", argv[0], err)
	}
	for _, refused := range r.Refused {
		log += "kernelgate: " + refused + "\n"
	}
	return log, buildProblem(r, log), nil
}

func buildProblem(r sandbox.Result, log string) string {
	if r.OK() {
		return ""
	}
	if r.TimedOut || r.OutOfMemory || r.OutputTruncated {
		return "the build command was stopped: " + strings.Join(r.Refused, "; ")
	}
	switch first := output.FirstError(output.ParseDiagnostics(log)); {
	case first != "":
		return first
	case r.Signal != 0:
		return fmt.Sprintf("the build command died: %s", r.Signal)
	}
	out := &harnessOutput{}
	out.stderr.WriteString(log)
	return fmt.Sprintf("the build command ended with status %d%s", r.ExitCode, lastWords(out))
}

// maxDiagnostics is how many diagnostics a report can use. The log has them all.
const maxDiagnostics = 50

func diagnostics(log string) []gates.Diagnostic {
	all := output.ParseDiagnostics(log)
	return all[:min(len(all), maxDiagnostics)]
}

// copyTree makes a private copy of a folder. It replaces whatever was there.
func copyTree(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("clearing %s: %w", to, err)
	}
	// The sandbox's programs read it as a different user.
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("making room for a copy of %s: %w", from, err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}

// hashTree returns one hash over the salt and every file of a folder.
func hashTree(dir string, salt ...string) (string, error) {
	sum := sha256.New()
	for _, s := range salt {
		fmt.Fprintf(sum, "%q\n", s)
	}
	if err := folderhash.Write(sum, dir, nil); err != nil {
		return "", fmt.Errorf("hashing what was built in %s: %w", dir, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
