package toolchain

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// giving is a compiler that hands on what it makes.
func giving(t *testing.T) (*CUDA, *Handover) {
	t.Helper()
	c := keptCUDA(t)
	c.Handover = &Handover{Dir: filepath.Join(t.TempDir(), "handed"), Gives: true}
	return c, c.Handover
}

// taking is the same compiler on another host, which cannot run.
func taking(c *CUDA, from *Handover, log *bytes.Buffer) (*CUDA, *Handover) {
	idle := *c
	idle.Cache = nil
	idle.NVCC, idle.Cuobjdump = filepath.Join(c.Home, "bin", "none"), filepath.Join(c.Home, "bin", "none")
	idle.Handover = &Handover{Dir: from.Dir, Log: slog.New(slog.NewTextHandler(log, nil))}
	return &idle, idle.Handover
}

// What one host has compiled another need not, and reads from it all that it would from its own. Of other sources, flags or compilers
// nothing is handed on, nor is a refusal.
func TestHandedBuild(t *testing.T) {
	c, given := giving(t)
	dir := folder(t, map[string]string{
		"k.cu":   "extern \"C\" __global__ void k(int* y) { *y = N; }\n",
		"t.cu":   "template <int M> __global__ void k(int* y) { *y = M + N; }\n",
		"bad.cu": "extern \"C\" __global__ void k(int* y) { *y = M; }\n",
	})
	b := NVCCBuild{Dir: dir, Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89", Defines: []string{"-DN=5"}}
	marked, bad := b, b
	marked.Source, marked.Entries, bad.Source = "t.cu", []string{"k<64>"}, "bad.cu"
	first, firstMarked := mustBuild(t, c, b), mustBuild(t, c, marked)
	mustRefuseBuild(t, c, bad, "identifier \"M\" is undefined")

	var log bytes.Buffer
	idle, handed := taking(c, given, &log)
	for _, one := range []struct {
		b    NVCCBuild
		want *Cubin
	}{{b, first}, {marked, firstMarked}} {
		got := mustBuild(t, idle, one.b)
		if !got.Cached || read(t, got.Path) != string(one.want.Image) {
			t.Errorf("%s: taken %v, or another cubin", one.b.Source, got.Cached)
		}
		got.Path, got.Cached = one.want.Path, one.want.Cached
		if diff := cmp.Diff(one.want, got); diff != "" {
			t.Errorf("%s as it was handed on differs (-made +taken):\n%s", one.b.Source, diff)
		}
	}
	if handed.Taken() != 2 || log.Len() > 0 {
		t.Errorf("%d builds were taken: %s", handed.Taken(), &log)
	}

	other := *idle
	other.Version = "1.2.3"
	flags := b
	flags.Defines = []string{"-DN=6"}
	for name, one := range map[string]struct {
		c *CUDA
		b NVCCBuild
	}{"another compiler": {&other, b}, "other flags": {idle, flags}, "a refusal": {idle, bad}} {
		one.b.Scratch = t.TempDir()
		if _, err := one.c.Build(t.Context(), one.b); err == nil || !strings.Contains(err.Error(), "bin/none") {
			t.Errorf("%s: %v, want the compiler to be run", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "more.h"), []byte("#define N 6\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.Scratch = t.TempDir()
	if _, err := idle.Build(t.Context(), b); err == nil || !strings.Contains(err.Error(), "bin/none") {
		t.Errorf("other sources: %v, want the compiler to be run", err)
	}
}

// What was handed on and is no build of a compiler's is compiled anew: it is neither believed nor blamed on the source.
func TestForgedBuild(t *testing.T) {
	c, given := giving(t)
	dir := folder(t, map[string]string{"k.cu": "extern \"C\" __global__ void k(int* y) { *y = 5; }\n"})
	b := NVCCBuild{Dir: dir, Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89"}
	first := mustBuild(t, c, b)
	key, err := c.cacheKey(b)
	if err != nil {
		t.Fatal(err)
	}
	made, ok := given.entries().load(key)
	if !ok {
		t.Fatal("nothing was handed on")
	}
	damaged := bytes.Clone(made.Image)
	damaged[len(damaged)/2] ^= 1
	for name, forge := range map[string]func(){
		"its bytes are others than its sums say": func() {
			if err := os.WriteFile(filepath.Join(given.Dir, key, cubinFileName), damaged, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"it is no cubin": func() {
			forgeEntry(t, given, key, nvccOutput{Image: []byte("\x7fELF, and no more"), Log: made.Log, Usage: made.Usage})
		},
		"it has another kernel": func() {
			forgeEntry(t, given, key, nvccOutput{Image: bytes.ReplaceAll(made.Image, []byte("\x00k\x00"), []byte("\x00z\x00")), Log: made.Log})
		},
		"it is said to be refused": func() { forgeEntry(t, given, key, nvccOutput{Refusal: "error: no such thing", Log: "error"}) },
		"its figures cannot be read": func() {
			forgeEntry(t, given, key, nvccOutput{Image: made.Image, Log: "ptxas info : Used many registers"})
		},
	} {
		forge()
		var log bytes.Buffer
		idle, handed := taking(c, given, &log)
		scratch := b
		scratch.Scratch = t.TempDir()
		if _, err := idle.Build(t.Context(), scratch); err == nil || !strings.Contains(err.Error(), "bin/none") {
			t.Errorf("%s: %v, want the compiler to be run", name, err)
		}
		host := *c
		host.Handover = handed
		if got := mustBuild(t, &host, b); got.Code != first.Code || handed.Taken() != 0 {
			t.Errorf("%s: %d taken, code %s", name, handed.Taken(), got.Code)
		}
	}
}

// forgeEntry writes an entry whose checksums hold.
func forgeEntry(t *testing.T, h *Handover, key string, o nvccOutput) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(h.Dir, key)); err != nil {
		t.Fatal(err)
	}
	if err := h.entries().store(key, o); err != nil {
		t.Fatal(err)
	}
}

// A kernel in Triton is handed on kind by kind, to a host on which Triton was installed at another time. A forged kind is compiled
// there, and the others are not.
func TestHandedTriton(t *testing.T) {
	c := cached(t, realTritons(t)[0])
	c.Handover = &Handover{Dir: filepath.Join(t.TempDir(), "handed"), Gives: true}
	b := softmax(t, "")
	b.Kinds = append(b.Kinds, special(map[string]float64{"BLOCK": 1024}, 4, "x:*fp32/16 y:*fp32/16 rows:i32 cols:i32"))
	first := mustBuildTriton(t, c, b)
	host := *c
	host.Handover = &Handover{Dir: c.Handover.Dir}
	host.Cache, host.Python = nil, filepath.Join(t.TempDir(), "none")
	b.Scratch = t.TempDir()
	for i, got := range mustBuildTriton(t, &host, b) {
		if !got.Cached || got.Code != first[i].Code || !cmp.Equal(got.Start, first[i].Start) {
			t.Errorf("kind %d: taken %v, %+v", i, got.Cached, got)
		}
	}
	if n := host.Handover.Taken(); n != 2 {
		t.Errorf("%d kinds were taken", n)
	}
	key, err := c.handKey(b, b.Kinds[1])
	if err != nil {
		t.Fatal(err)
	}
	made, _ := host.Handover.entries().load(key)
	made.Usage = strings.Replace(made.Usage, `"warps": 4`, `"warps": 64`, 1) + "{}"
	forgeEntry(t, host.Handover, key, made)
	b.Scratch = t.TempDir()
	if _, err := host.Build(t.Context(), b); err == nil {
		t.Error("a forged launch was taken")
	}
	host.Cache, host.Python = c.Cache, c.Python
	b.Scratch = t.TempDir()
	if got := mustBuildTriton(t, &host, b); got[1].Code != first[1].Code || !cmp.Equal(got[1].Start, first[1].Start) {
		t.Errorf("compiled here, it is %+v", got[1])
	}
}
