package cuda

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/gpus"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
)

// upstreamPolicy is short: a kernel has two seconds.
const upstreamPolicy = `version: 1
gates:
  correctness: {shapes: all, seeds: [0], distributions: [normal, uniform], norm_error: "<= 2%", determinism: true}
  performance:
    guard: {shapes: first, speedup: ">= -40%"}
    rounds: {min: 6, max: 6}
    pairs: 10
    control: 10%
    solo_shift: 50%
rules:
  - name: default
`

// An upstreamKernel is one of a public project, described by a manifest of testdata/upstream. KERNELGATE_UPSTREAM is a folder that
// has each project as upstream has it; nothing of it is here. The honest branch edits the manifest or a file, the broken branch a
// file.
type upstreamKernel struct {
	name   string
	honest upstreamEdit
	broken upstreamEdit
}

// An upstreamEdit replaces texts of the manifest, or of a file below its root, in pairs.
type upstreamEdit struct {
	file  string // "" is the manifest
	words []string
}

var upstreamKernels = []upstreamKernel{
	{"saxpy", upstreamEdit{"", []string{"default: 64", "default: 256"}}, upstreamEdit{"saxpy.cu", []string{"i < n", "i < n - 1"}}},
	{"transpose", upstreamEdit{"", []string{"transposeCoalesced", "transposeNoBankConflicts"}}, upstreamEdit{"transpose.cu", []string{"threadIdx.y+j][threadIdx.x] =", "threadIdx.y+j][31 - threadIdx.x] ="}}},
	{"sgemm", upstreamEdit{"", []string{"1_naive.cuh", "2_kernel_global_mem_coalesce.cuh", "entry: sgemm_naive", "entry: sgemm_global_mem_coalesce<32>", "block: [32, 32]", "block: [1024]"}},
		upstreamEdit{"kernels/1_naive.cuh", []string{"i < K", "i < K - 1"}}},
	{"sgemm_1d", upstreamEdit{"", []string{"<64, 64, 8, 8>", "<128, 128, 8, 16>", "[N/64, M/64], block: [512]", "[N/128, M/128], block: [1024]"}},
		upstreamEdit{"kernels/4_kernel_1D_blocktiling.cuh", []string{"bkIdx += BK", "bkIdx += 2 * BK"}}},
	{"stencil", upstreamEdit{"", []string{"default: 8, layer: micro}\n  block_size_y", "default: 64, layer: micro}\n  block_size_y"}}, upstreamEdit{"stencil.cu", []string{"5.0f", "4.0f"}}},
	{"matmul", upstreamEdit{"", []string{"tile_size_x: {values: [1, 2, 4], default: 1", "tile_size_x: {values: [1, 2, 4], default: 4"}}, upstreamEdit{"matmul.cu", []string{"kb < block_size_x", "kb < block_size_x - 1"}}},
	{"adjust", upstreamEdit{"backprop_cuda_kernel.cu", []string{"ETA * delta[index_x] * ly", "(float)ETA * delta[index_x] * ly"}}, upstreamEdit{"backprop_cuda_kernel.cu", []string{"* ly[index_y]", "* ly[index_y - 1]"}}},
	{"sgemm_shared", upstreamEdit{"", []string{"3_kernel_shared_mem_blocking", "5_kernel_2D_blocktiling", "sgemm_shared_mem_block<32>", "sgemm2DBlocktiling<128, 128, 8, 8, 8>", "[M/32, N/32], block: [1024]", "[N/128, M/128], block: [256]"}},
		upstreamEdit{"kernels/3_kernel_shared_mem_blocking.cuh", []string{"bkIdx += BLOCKSIZE", "bkIdx += 2 * BLOCKSIZE"}}},
	{"rmsnorm", upstreamEdit{"", []string{"default: 256", "default: 8192"}}, upstreamEdit{"lightllm/models/llama/triton_kernel/rmsnorm.py", []string{"axis=0) / N", "axis=0) / BLOCK_SIZE"}}},
	{"silu", upstreamEdit{"", []string{"default: 128, layer: micro}\n  BLOCK_N", "default: 8, layer: micro}\n  BLOCK_N"}}, upstreamEdit{"lightllm/models/llama/triton_kernel/silu_and_mul.py", []string{"tl.exp(-gate)", "tl.exp(gate)"}}},
	{"softmax", upstreamEdit{"", []string{"num_warps: 1", "num_warps: 8"}}, upstreamEdit{"attorch/softmax_kernels.py", []string{"other=float('inf') if neg else -float('inf')", "other=0.0"}}},
	{"rms_norm", upstreamEdit{"", []string{"num_warps: 1", "num_warps: 8"}}, upstreamEdit{"attorch/rms_norm_kernels.py", []string{"axis=1) / feat_dim", "axis=1) / BLOCK_SIZE_FEAT"}}},
}

// upstreamFolder is where the projects are; without it a test is skipped.
func upstreamFolder(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("KERNELGATE_UPSTREAM")
	if folder == "" {
		t.Skip("KERNELGATE_UPSTREAM names no folder of public projects")
	}
	return folder
}

func replacePairs(t *testing.T, name, text string, words []string) string {
	t.Helper()
	for i := 0; i+1 < len(words); i += 2 {
		if !strings.Contains(text, words[i]) {
			t.Fatalf("%s has no %q", name, words[i])
		}
		text = strings.ReplaceAll(text, words[i], words[i+1])
	}
	return text
}

// gather gates a branch with an edit against upstream's files.
func (k upstreamKernel) gather(t *testing.T, edit upstreamEdit, arch string) (*gates.Evidence, *gates.Verdict) {
	t.Helper()
	upstream := upstreamFolder(t)
	key := "gate/" + k.name + ".kernel.yaml"
	text := readText(t, "testdata/upstream", k.name+".kernel.yaml")
	m, err := manifest.Parse(key, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	own, head := text, m
	if edit.file == "" {
		own = replacePairs(t, key, text, edit.words)
		if head, err = manifest.Join(key, []byte(text), []byte(own)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := policy.Parse("test.yaml", []byte(upstreamPolicy))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	side := func(name string) runners.Side {
		s := runners.Side{Dir: filepath.Join(root, name), Variant: m.DefaultVariant}
		for from, to := range map[string]string{"testdata/upstream": ".", filepath.Join(upstream, m.Root): manifest.RepositoryFolder + "/" + m.Root} {
			if err := os.CopyFS(filepath.Join(s.Dir, to), os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
		}
		if slices.Contains(m.IncludeFirst, "host") {
			if err := os.CopyFS(filepath.Join(s.Dir, manifest.RepositoryFolder, "host"), os.DirFS("testdata/upstream/host")); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	base, candidate := side("base"), side("head")
	if edit.file == "" {
		candidate.Manifest, candidate.ManifestText = head, own
	} else {
		file := filepath.Join(candidate.Dir, manifest.RepositoryFolder, m.Root, edit.file)
		if err := os.WriteFile(file, []byte(replacePairs(t, edit.file, readText(t, file), edit.words)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*runners.Side{&base, &candidate} {
		if s.Sources, err = folderhash.Sum(s.Dir); err != nil {
			t.Fatal(err)
		}
	}
	job := runners.Job{Key: key, Manifest: m, ManifestText: text, Policy: p, Trusted: base.Dir, Baseline: &base, Candidate: candidate}
	b, err := New(t.Context(), job, Config{
		Scratch: filepath.Join(root, "build"), Cache: toolchaintest.Builds(t), Program: []string{os.Args[0], serveWord}, Arch: arch, Getenv: os.Getenv, Devices: gpus.GPU{}.Files("/dev"),
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := gather.Gather(t.Context(), job, b, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return e, gates.Judge(p, "test.yaml", e)
}

// Both branches of every kernel build from upstream's files.
func TestUpstreamBuilds(t *testing.T) {
	needsCompiler(t)
	upstreamFolder(t)
	for _, k := range upstreamKernels {
		t.Run(k.name, func(t *testing.T) {
			for branch, edit := range map[string]upstreamEdit{"honest": k.honest, "broken": k.broken} {
				e, v := k.gather(t, edit, "sm_90")
				if e.Candidate == nil || !e.Candidate.OK || e.Baseline == nil || !e.Baseline.OK {
					t.Errorf("%s: %s %s", branch, v.Summary, e.Fault)
				}
			}
		})
	}
}

// The manifests are read without the projects.
func TestUpstreamManifests(t *testing.T) {
	for _, k := range upstreamKernels {
		text := readText(t, "testdata/upstream", k.name+".kernel.yaml")
		if _, err := manifest.Parse(k.name+".kernel.yaml", []byte(text)); err != nil {
			t.Error(err)
		}
		if k.honest.file == "" {
			if _, err := manifest.Join(k.name, []byte(text), []byte(replacePairs(t, k.name, text, k.honest.words))); err != nil {
				t.Errorf("%s: %v", k.name, err)
			}
		}
	}
}
