package scaffold

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/backend/command"
)

// Submissions of these formats are functions of Python that launch something: they run on the host, so that command mode measures
// them, and the verdict says what that cannot see. The harness is ours, and comes from the base branch.

//go:embed harness_task.py
var taskHarness string

//go:embed harness_model.py
var modelHarness string

const (
	benchFile   = "kernelgate_bench.py"
	harnessFile = "kernelgate_harness.py"
)

// A task is GPU MODE's task.yml, as far as it says what is measured.
type task struct {
	Lang        string           `yaml:"lang"`
	Description string           `yaml:"description"`
	Tests       []map[string]any `yaml:"tests"`
	Benchmarks  []map[string]any `yaml:"benchmarks"`
}

// fromTask describes a GPU MODE task.
func fromTask(ctx context.Context, file string, text []byte, getenv func(string) string) (*draft, error) {
	var t task
	if err := yaml.Unmarshal(text, &t); err != nil {
		return nil, usage.Errorf("%s is no GPU MODE task: %w", file, err)
	}
	folder := filepath.Dir(file)
	reference := filepath.Join(folder, "reference.py")
	if !exists(reference) || len(t.Tests)+len(t.Benchmarks) == 0 {
		return nil, usage.Errorf("%s is no GPU MODE task: it needs tests or benchmarks, and a reference.py next to it", file)
	}
	if t.Lang != "" && t.Lang != "py" {
		return nil, usage.Errorf("%s: lang is %q: submissions in Python are supported (lang: py)", file, t.Lang)
	}
	found, err := inspect(ctx, reference, getenv)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"generate_input", "ref_kernel"} {
		if found.function(name) == nil {
			return nil, usage.Errorf("%s has no function %s, which GPU MODE's tasks have", reference, name)
		}
	}
	full, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	d := &draft{kind: "a GPU MODE task", name: nameOf(filepath.Base(full)), mode: manifest.ModeCommand, folder: folder}
	d.command(t.Description, "submission.py")
	d.line("shapes:")
	var dims []string
	for kind, all := range [][]map[string]any{t.Tests, t.Benchmarks} {
		for i, one := range all {
			sizes, ok := sizesOf(one)
			if !ok {
				d.line("  # %s %d is left out: a size is no whole number", []string{"test", "benchmark"}[kind], i+1)
				d.doubted = append(d.doubted, Guess{doubt: inSizes, File: manifest.FileName, What: "shapes: a test was left out, because a size is no whole number"})
				continue
			}
			names := slices.Sorted(mapsKeys(sizes))
			if dims == nil {
				dims = names
			}
			if !slices.Equal(dims, names) {
				return nil, usage.Errorf("%s: tests and benchmarks have different keys (%s, and %s): a manifest's shapes all have the same dims", file, strings.Join(dims, ", "), strings.Join(names, ", "))
			}
			d.line("  %s%d: {%s}", []string{"test", "benchmark"}[kind], i+1, written(names, sizes))
		}
	}
	if dims == nil {
		return nil, usage.Errorf("%s: no test or benchmark has sizes that are whole numbers", file)
	}
	if !exists(filepath.Join(folder, "submission.py")) {
		d.file("submission.py", "from reference import ref_kernel as custom_kernel  # TODO: the submission begins as the reference\n")
	}
	d.file(harnessFile, taskHarness)
	d.file(benchFile, command.BenchScript)
	d.next = []string{"kernelgate policy lint .", "kernelgate check " + d.name}
	return d, nil
}

// command writes what every manifest of a submission in Python has.
func (d *draft) command(description, submission string) {
	d.line("version: 1\nname: %s", d.name)
	if line, _, _ := strings.Cut(strings.TrimSpace(description), "\n"); line != "" {
		d.line("description: %q", line)
	}
	d.line("# A submission runs on the host: its times and error figures are the harness's own.")
	d.line("mode: command")
	d.line("command:\n  build: [python3, -m, py_compile, %s]\n  bench: [python3, %s]", submission, harnessFile)
	d.line("sources: [%s] # all other files are the base branch's", submission)
}

// sizesOf is the whole numbers of a test but its seed, which kernelgate gives.
func sizesOf(one map[string]any) (map[string]int, bool) {
	sizes := map[string]int{}
	for name, value := range one {
		if name == "seed" {
			continue
		}
		switch v := value.(type) {
		case int:
			sizes[name] = v
		case float64:
			if v != math.Trunc(v) {
				return nil, false
			}
			sizes[name] = int(v)
		default:
			return nil, false
		}
	}
	return sizes, len(sizes) > 0
}

func mapsKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func written(names []string, sizes map[string]int) string {
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf("%s: %d", name, sizes[name]))
	}
	return strings.Join(all, ", ")
}

// fromKernelBench describes a KernelBench problem.
func fromKernelBench(file string, found *pythonFile) *draft {
	module := strings.TrimSuffix(filepath.Base(file), ".py")
	d := &draft{kind: "a KernelBench problem", name: nameOf(module), mode: manifest.ModeCommand, folder: filepath.Dir(file)}
	d.command("", "submission.py")
	sizes, names := map[string]int{}, []string(nil)
	for _, v := range found.Values {
		if v.Value != nil && *v.Value > 0 && len(names) < 16 {
			if _, twice := sizes[v.Name]; !twice {
				names = append(names, v.Name)
			}
			sizes[v.Name] = *v.Value
		}
	}
	if len(names) == 0 {
		names, sizes = []string{"case"}, map[string]int{"case": 1}
	}
	d.line("shapes:\n  mission: {%s} # the whole numbers of %s; the harness sets them", written(names, sizes), filepath.Base(file))
	if !exists(filepath.Join(d.folder, "submission.py")) {
		d.file("submission.py", fmt.Sprintf("import sys\n\nModelNew = sys.modules[%q].Model  # TODO: the submission begins as the reference\n", module))
	}
	d.file(harnessFile, strings.Replace(modelHarness, "@PROBLEM@", module, 1))
	d.file(benchFile, command.BenchScript)
	d.next = []string{"kernelgate policy lint .", "kernelgate check " + d.name}
	return d
}

// fromProgram describes a benchmark program by the flags that it knows.
func fromProgram(file string, text []byte) (*draft, error) {
	if !bytes.HasPrefix(text, []byte("\x7fELF")) {
		return nil, usage.Errorf("%s is nothing that is known: name a .cu file, a Triton .py file, a FlashInfer-Bench definition (.json), a GPU MODE task.yml, a KernelBench problem (.py), or a benchmark program", file)
	}
	name := filepath.Base(file)
	d := &draft{name: nameOf(name), mode: manifest.ModeCommand, folder: filepath.Dir(file)}
	var flags string
	switch {
	case bytes.Contains(text, []byte("benchmark_out_format")):
		d.kind, flags = "a Google Benchmark program", "--benchmark_out=/dev/fd/3, --benchmark_out_format=json"
	case bytes.Contains(text, []byte("nvbench")):
		d.kind, flags = "an nvbench program", "--json, /dev/fd/3"
	default:
		return nil, usage.Errorf("%s is a program that uses neither Google Benchmark nor nvbench (write a manifest of mode command by hand: docs/manifest.md)", file)
	}
	d.line("version: 1\nname: %s", d.name)
	d.line("# Times are the program's own: kernelgate owns neither the clock nor the reference in this mode.")
	d.line("mode: command")
	d.line("command:")
	d.guess(fmt.Sprintf("  build: [make, %s]", name), "how it is built")
	d.guess("  test: [./run_tests]", "a program whose exit status says whether the kernel is right")
	d.line("  bench: [./%s, %s]", name, flags)
	d.guess("sources: [\"*.cu\", \"*.cuh\", \"*.c\", \"*.cc\", \"*.cpp\", \"*.h\"]", "the files that a change may bring")
	d.guess("shapes: {N: {N: 1}}", "the names of its benchmarks, and their sizes")
	d.next = []string{"kernelgate policy lint ."}
	return d, nil
}
