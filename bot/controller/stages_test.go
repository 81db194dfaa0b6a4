package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	measuring "github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

const attention = "../../kernels/sdpa_fp8"

// staticPolicy asks for what a compiler can tell.
const staticPolicy = `version: 1
devices: [cpu]
gates:
  ptxas: {registers: "<= 224", shared_memory: "<= 208KiB", spill_stores: "<= 0B", spill_loads: "<= 0B", blocks_per_sm: ">= 1"}
rules:
  - name: default
`

// A compiler is a runner without a GPU: it builds both sides for every architecture that the candidate names, and keeps what
// it saw of each variant.
type compiler struct {
	cache string
	mu    sync.Mutex
	seen  map[string]*gates.Evidence // by variant and architecture
}

func (c *compiler) measure(ctx context.Context, job measuring.Job, scratch string, p measuring.Progress) (measuring.Measured, error) {
	var all sync.WaitGroup
	archs := []string{"sm_89", "sm_90"}
	measured, errs := make([]measuring.Measured, len(archs)), make([]error, len(archs))
	for i, arch := range archs {
		if !builtFor(job, *job.Baseline, arch) || !builtFor(job, job.Candidate, arch) {
			continue
		}
		all.Go(func() { measured[i], errs[i] = c.compile(ctx, job, filepath.Join(scratch, arch), arch, p) })
	}
	all.Wait()
	last := len(archs) - 1
	if e := measured[0].Evidence; e != nil && !e.Candidate.OK {
		last = 0
	}
	return measured[last], errors.Join(errs...)
}

func builtFor(job measuring.Job, side measuring.Side, arch string) bool {
	return slices.ContainsFunc(job.Of(side).ArchOf(side.Variant), func(a manifest.Arch) bool { return a.Device() == arch })
}

func (c *compiler) compile(ctx context.Context, job measuring.Job, dir, arch string, p measuring.Progress) (measuring.Measured, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return measuring.Measured{}, err
	}
	b, err := cuda.New(ctx, job, cuda.Config{Scratch: dir, Cache: c.cache, Arch: arch, Seed: 1, Getenv: os.Getenv})
	if err != nil {
		return measuring.Measured{}, err
	}
	e, err := gather.Gather(ctx, job, b, p)
	if err != nil {
		return measuring.Measured{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[job.Candidate.Variant+" "+arch] = e
	return measuring.Measured{Evidence: e, BuildLog: b.BuildLog()}, nil
}

// alone is the attention kernel as if one stage were all that there is of it: its manifest, and its source. All stages take
// the first of the problems. stage6_fp8_short is stage6_fp8 in other numbers, and shares its launch.
func alone(t *testing.T, stage string) map[string]string {
	t.Helper()
	text := readText(t, "kernel.yaml")
	head, tail, _ := strings.Cut(text, "\nvariants:\n")
	var b strings.Builder
	for line := range strings.Lines(head) {
		if shape := strings.TrimSpace(line); !strings.Contains(shape, " D: 128,") && !strings.HasSuffix(shape, " causal: 1}") {
			b.WriteString(strings.Replace(line, "D: 64|128, causal: 0|1", "D: 64, causal: 0", 1))
		}
	}
	b.WriteString("\nvariants:\n")
	keep, file := false, ""
	for line := range strings.Lines(tail) {
		if !strings.HasPrefix(line, " ") {
			break
		}
		if strings.HasPrefix(line, "  ") && line[2] != ' ' {
			name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			keep = name == stage || stage == "stage6_fp8_short" && name == "stage6_fp8"
		}
		if keep {
			b.WriteString(line)
			if _, source, ok := strings.Cut(line, "source: "); ok {
				file, _, _ = strings.Cut(strings.TrimSpace(source), ",")
			}
		}
	}
	return map[string]string{"kernels/sdpa_fp8/kernel.yaml": b.String() + "default_variant: " + stage + "\n", "kernels/sdpa_fp8/" + file: readText(t, file)}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(attention, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every stage of the attention kernel is a pull request that brings its source, its launch and a manifest which makes it the
// default. Each is built and judged against the stage before it, and the figures are those that were seen on an H200.
func TestStagesAsPullRequests(t *testing.T) {
	long.Test(t)
	if _, err := toolchain.FindCUDA(t.Context(), os.Getenv); (err != nil || !sandbox.Probe().Works()) && os.Getenv("CI") == "" {
		t.Skip("no CUDA compiler, or no sandbox: ", err)
	}
	c := &compiler{cache: toolchaintest.Builds(t), seen: map[string]*gates.Evidence{}}
	w := newWorld(t, worldOptions{retold: true, measure: c.measure})
	first := alone(t, "stage0")
	first[".github/kernelgate.yaml"] = staticPolicy
	headers, err := filepath.Glob(filepath.Join(attention, "*.cuh"))
	w.no(err)
	for _, file := range append(headers, "reference.cu") {
		first["kernels/sdpa_fp8/"+filepath.Base(file)] = readText(t, filepath.Base(file))
	}
	_, err = w.repo.Push("main", first, "Attention")
	w.no(err)
	w.settle()
	for _, stage := range []struct {
		name  string
		archs []string
		kept  bool // the next is built upon it
	}{
		{"stage1", []string{"sm_89", "sm_90"}, true},
		{"stage2", []string{"sm_89", "sm_90"}, true},
		{"stage3a", []string{"sm_89", "sm_90"}, false},
		{"stage3a_xor", []string{"sm_89", "sm_90"}, false},
		{"stage3b", []string{"sm_89", "sm_90"}, true},
		{"stage4", []string{"sm_89", "sm_90"}, true},
		{"stage5", []string{"sm_89", "sm_90"}, true},
		{"stage6_fp8", []string{"sm_89", "sm_90"}, true},
		{"stage6_fp8_short", []string{"sm_89", "sm_90"}, false},
		{"stage6_split", []string{"sm_90"}, true},
		{"stage6_wgmma", []string{"sm_90"}, true},
	} {
		pr := w.bring(stage.name, alone(t, stage.name))
		w.concluded(pr.HeadSHA(), "success")
		w.said(pr, "PASS")
		for _, arch := range stage.archs {
			e := c.seen[stage.name+" "+arch]
			if e == nil || e.SameCode || !e.Baseline.OK {
				t.Fatalf("%s was not built for %s against another: %+v", stage.name, arch, e)
			}
			if e.Provenance.Implementation == "" {
				t.Errorf("%s was not built by its own manifest", stage.name)
			}
		}
		was, is := recorded(t, stage.name), c.seen[stage.name+" sm_90"].Candidate.Resources
		if *is.Registers != *was.Registers || *is.BlockThreads != *was.BlockThreads || *is.StaticShared != *was.StaticShared || *is.DynamicShared > *was.DynamicShared {
			t.Errorf("%s: %s, and on an H200 %s", stage.name, figures(is), figures(was))
		}
		if stage.kept {
			w.no(pr.Merge("olga"))
		} else {
			w.no(pr.Close("walt"))
		}
		w.settle()
	}
	// A stage that does not compile, and one that asks for more than there is.
	broken := alone(t, "stage5")
	broken["kernels/sdpa_fp8/stage5.cu"] = strings.Replace(broken["kernels/sdpa_fp8/stage5.cu"], "__global__", "__globe__", 1)
	pr := w.bring("broken", broken)
	w.concluded(pr.HeadSHA(), "failure")
	w.said(pr, "does not build")
	greedy := alone(t, "stage6_split")
	greedy["kernels/sdpa_fp8/kernel.yaml"] = strings.Replace(greedy["kernels/sdpa_fp8/kernel.yaml"], "shared_memory: 67600 + 128*D", "shared_memory: 232448", 1)
	pr = w.bring("greedy", greedy)
	w.concluded(pr.HeadSHA(), "failure")
	w.said(pr, "shared memory")
}

// recorded is what an H200's runner saw of a stage.
func recorded(t *testing.T, stage string) *gates.Resources {
	t.Helper()
	e, err := gates.ParseEvidence(stage, []byte(readText(t, "evidence/"+stage+".json")))
	if err != nil {
		t.Fatal(err)
	}
	return e.Candidate.Resources
}

func figures(r *gates.Resources) string {
	text, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
