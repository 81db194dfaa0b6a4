package plan_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// TestPublicKernelsAsChanges plans changes of twelve unmodified kernels from public repositories. A
// different launch, a different instance of a template or macro, an edit of a shared header, and a
// new file as the default variant each change what runs, and are compared with the kernel as it
// was.
func TestPublicKernelsAsChanges(t *testing.T) {
	files := map[string]string{".github/kernelgate.yaml": policyYAML}
	root := filepath.Join("..", "..", "backend", "cuda", "testdata", "public")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		name, _ := filepath.Rel(root, file)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r := newTree(t)
	base := r.commit(files)
	edits := map[string][2][2]string{ // an edit of the launch, and one of what is compiled
		"layernorm": {{"block: [32, 4], shared_memory: 4*4*C", "block: [32, 2], shared_memory: 4*4*C"}, {"flags: [-DUSE_BF16]", "flags: [-DUSE_BF16, -maxrregcount=32]"}},
		"softmax":   {{"block: [256]", "block: [512]"}, {"flags: [-DUSE_BF16]", "flags: [-DUSE_BF16, --use_fast_math]"}},
		"embedding": {{"block: [256]", "block: [512]"}, {"flags: [-DUSE_BF16]", "flags: [-DUSE_BF16, -DWIDE=1]"}},
		"transpose": {{"block: [TILE, 8]", "block: [TILE, 8, 1], max_threads: 512"}, {"default: 32", "default: 16"}},
		"sum_grid":  {{"default: 64", "default: 32"}, {"\nsource: samples.cu", "\nsource: samples.cu\nflags: [-O3]"}},
		"sum_last":  {{"default: 64", "default: 32"}, {"sum_of_last<256, false>\", grid: [BLOCKS], block: [256]", "sum_of_last<128, false>\", grid: [BLOCKS], block: [128]"}},
		"rms":       {{"min(H, 256)", "min(H, 128)"}, {"fused_add_rms<half, 8>", "fused_add_rms<half, 4>"}},
		"rotary":    {{"min(H*R/2, 512)", "min(H*R/2, 256)"}, {"rotary<half, half, true>", "rotary<half, half, false>"}},
		"paged":     {{"shared_memory: 4*512", "shared_memory: 4*1024"}, {"64, 16, 128, serve::Cache::Same, 512>\n      grid: [H, B, \"ceildiv(S, 512)\"]\n      block: [128]", "64, 16, 256, serve::Cache::Same, 512>\n      grid: [H, B, \"ceildiv(S, 512)\"]\n      block: [256]"}},
		"matvec":    {{"block: [256], args: [x,", "block: [128], args: [x,"}, {"mul_mat_vec<BLOCK_Q4, 1, false>", "mul_mat_vec<BLOCK_Q4, 1, true>"}},
		"flash":     {{"grid: [B, H], block: [64]", "grid: [B, H], block: [32]"}, {"flash::forward_splitkv<flash::traits<64, 128, 4, half>, false, true>\", grid: [SPLITS, B, H], block: [128]", "flash::forward_splitkv<flash::traits<64, 128, 8, half>, false, true>\", grid: [SPLITS, B, H], block: [256]"}},
		"gemm":      {{"block: [256]", "block: [128]"}, {"tiles::Int<16>, tiles::Int<16>", "tiles::Int<8>, tiles::Int<32>"}},
	}
	changes := map[string]map[string]string{"a launch": {}, "a template": {}, "a new file": {}, "a shared header": {"common/warp.cuh": files["common/warp.cuh"] + "// faster\n"}}
	for name, e := range edits {
		key := "gate/" + name + ".kernel.yaml"
		m, err := manifest.Parse(key, []byte(files[key]))
		if err != nil {
			t.Fatal(err)
		}
		source := m.Variants[0].Source
		changes["a launch"][key] = edited(t, files[key], e[0][0], e[0][1])
		changes["a template"][key] = edited(t, files[key], e[1][0], e[1][1])
		changes["a new file"][key] = edited(t, files[key], "\nsource: "+source+"\n", "\nvariants: {before: {source: "+source+"}, after: {source: next/"+source+"}}\ndefault_variant: after\n")
		changes["a new file"]["csrc/next/"+source] = strings.ReplaceAll(files["csrc/"+source], "../common", "../../common") + "// faster\n"
	}
	for name, change := range changes {
		p := r.plan(plan.Options{Base: base, Head: r.commit(change)})
		keys, err := p.Kernels(t.Context())
		if err != nil || len(keys) != len(edits) {
			t.Fatalf("%s touches %q (%v)", name, keys, err)
		}
		if name == "a shared header" {
			keys = keys[:1] // the others are laid out in the same way
		}
		for _, key := range keys {
			job, err := p.Job(t.Context(), key)
			if err != nil || len(job.Broken) > 0 || len(job.Notes) > 0 {
				t.Fatalf("%s of %s: %v %v %v", name, key, err, job.Broken, job.Notes)
			}
			was, is := job.Of(*job.Baseline), job.Of(job.Candidate)
			if was.Recipe(job.Baseline.Variant) == is.Recipe(job.Candidate.Variant) && r.read(job.Baseline.Dir, header) == r.read(job.Candidate.Dir, header) {
				t.Errorf("%s of %s: the candidate is what the baseline is", name, key)
			}
			v, _ := is.Variant(job.Candidate.Variant)
			if r.read(job.Candidate.Dir, is.SourceFile(v)) == "" || r.read(job.Trusted, is.Reference.Source) != files["gate/"+is.Reference.Source] {
				t.Errorf("%s of %s: the source is not the head's, or the reference not the base's", name, key)
			}
		}
		r.git("checkout", "--quiet", base)
	}
}

// header is the shared header's path in a side's folder.
const header = ".repository/common/warp.cuh"
