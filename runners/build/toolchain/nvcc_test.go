package toolchain

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// The compilers of this machine are looked for once: every search runs them for their versions.
var (
	foundCUDA    = sync.OnceValues(func() (*CUDA, error) { return FindCUDA(context.Background(), os.Getenv) })
	foundPython  = sync.OnceValues(func() (python, error) { return findPython(context.Background(), os.Getenv) })
	foundTritons = sync.OnceValues(func() ([]*Triton, error) {
		p, err := foundPython()
		if err != nil {
			return nil, err
		}
		return p.tritons(os.Getenv)
	})
)

// realCUDA is the compiler of this machine, which compiles every time. Without one, or without a sandbox, tests are skipped, except in CI.
func realCUDA(t *testing.T) *CUDA {
	t.Helper()
	c, err := foundCUDA()
	if err == nil && !sandbox.Probe().Works() {
		err = sandbox.ErrUnsupported
	}
	if err == nil {
		own := *c
		return &own
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	t.Skip(err)
	return nil
}

// keptCUDA is the same for tests of what is read out of a build: one of the same sources, flags and compiler is kept from one run of
// the tests to the next.
func keptCUDA(t *testing.T) *CUDA {
	t.Helper()
	c := realCUDA(t)
	c.Cache = &Cache{Dir: toolchaintest.Builds(t)}
	return c
}

// folder writes files to a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func mustBuild(t *testing.T, c *CUDA, b NVCCBuild) *Cubin {
	t.Helper()
	b.Scratch = t.TempDir()
	cubin, err := c.Build(t.Context(), b)
	if err != nil {
		t.Fatalf("%+v: %v\n%s", b, err, logOf(err))
	}
	return cubin
}

func logOf(err error) string {
	var refusal *output.CompileError
	if errors.As(err, &refusal) {
		return refusal.Log
	}
	return ""
}

// mustRefuseBuild checks that the source is blamed in these words, and that nothing is left behind.
func mustRefuseBuild(t *testing.T, c *CUDA, b NVCCBuild, want ...string) *output.CompileError {
	t.Helper()
	b.Scratch = t.TempDir()
	_, err := c.Build(t.Context(), b)
	var refusal *output.CompileError
	if !errors.As(err, &refusal) {
		t.Fatalf("error %v, want a refusal of the source", err)
	}
	for _, w := range want {
		if !strings.Contains(refusal.Summary, w) {
			t.Errorf("refused with %q, which does not say %q; log:\n%s", refusal.Summary, w, refusal.Log)
		}
	}
	if left, err := os.ReadDir(b.Scratch); err != nil || len(left) > 0 {
		t.Errorf("left in the scratch folder: %v, %v", left, err)
	}
	return refusal
}

func TestBuild(t *testing.T) {
	c := realCUDA(t)
	for _, arch := range []string{"sm_89", "sm_90a"} {
		t.Run(arch, func(t *testing.T) {
			if arch != "sm_90a" {
				long.Test(t)
			}
			t.Parallel()
			dir := folder(t, map[string]string{"whole.cu": read(t, "testdata/whole.cu")})
			b := NVCCBuild{Dir: dir, Source: "whole.cu", Entries: []string{"scale"}, Arch: arch, Flags: []string{"-O3"}}
			cubin := mustBuild(t, c, b)
			if cubin.Cached || read(t, cubin.Path) != string(cubin.Image) {
				t.Errorf("cached %v, or another image in %s", cubin.Cached, cubin.Path)
			}
			u := cubin.Kernels[0].Usage
			if u.Name != "scale" || u.Arch != arch || u.Registers == nil || *u.Registers < 8 || u.SpillStores == nil || *u.SpillStores != 0 || u.Stack == nil {
				t.Errorf("usage %+v", u)
			}
			// Without the kilobyte that the driver reserves from sm_90 on.
			if u.StaticShared == nil || *u.StaticShared != 256 {
				t.Errorf("shared memory %v, want 256", u.StaticShared)
			}
			var globals []string
			for _, g := range cubin.Globals {
				globals = append(globals, g.Name)
			}
			slices.Sort(globals)
			if diff := cmp.Diff([]string{"$str", "counter", "preset"}, globals); diff != "" {
				t.Errorf("globals (-want +got):\n%s", diff)
			}
			if k := cubin.Kernels[0]; len(cubin.Kernels) != 1 || k.Symbol != "scale" || k.Name != "scale" || k.CodeSize < 256 || k.Line != 28 {
				t.Errorf("kernel %+v", k)
			}
			if c.Version == "13.0.88" {
				if recorded, err := machineCode(recordedCubins(t)[arch]); err != nil || recorded != cubin.Code {
					t.Errorf("code %s, recorded %s (%v)", cubin.Code, recorded, err)
				}
			}

			made := nvccOutput{Image: cubin.Image, Log: cubin.Log}
			for entry, want := range map[string]string{
				"sdpa":        `whole.cu has no kernel sdpa: write the entry as one of these, or define it: scale; local<3>(float*)`,
				"loca<1>":     `whole.cu has no kernel loca<1>: write the entry as one of these, or define it: local<3>(float*); scale`,
				"ns::scale()": `whole.cu has no kernel ns::scale(): write the entry as one of these, or define it: scale; local<3>(float*)`,
			} {
				b.Entries = []string{entry}
				if _, err := made.read(b); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("asked for %s: error %v, want %q", entry, err, want)
				}
			}
		})
	}
}

// A comment, the file's name and line information are not part of the code; a constant is. The sanitizers' and the profiler's
// cubins, which have lines, are so the same code as those without.
func TestMachineCodeOfRealCubins(t *testing.T) {
	c := keptCUDA(t)
	source := read(t, "testdata/whole.cu")
	commented := "// more\n" + strings.ReplaceAll(source, "__syncthreads();", "__syncthreads(); /* and\nmore */")
	dir := folder(t, map[string]string{"whole.cu": source, "sub/another_name.cu": commented, "changed.cu": strings.Replace(source, "3.5f", "3.25f", 1)})
	for _, arch := range []string{"sm_89", "sm_90a"} {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			b := NVCCBuild{Dir: dir, Entries: []string{"scale"}, Arch: arch}
			built := map[string]*Cubin{}
			for _, b.Source = range []string{"sub/another_name.cu", "changed.cu"} {
				built[b.Source] = mustBuild(t, c, b)
			}
			without := toolchaintest.Kept(t, func() []byte {
				out := filepath.Join(t.TempDir(), "plain.cubin")
				if log, err := exec.Command(c.NVCC, "-cubin", "-arch="+arch, "-ccbin", c.HostCompiler, "-o", out, filepath.Join(dir, "whole.cu")).CombinedOutput(); err != nil {
					t.Fatalf("nvcc: %v\n%s", err, log)
				}
				return []byte(read(t, out))
			}, "nvcc", c.Version, c.HostVersion, arch, source)
			plain, err := machineCode(without)
			if err != nil {
				t.Fatal(err)
			}
			lines := built["sub/another_name.cu"]
			if !strings.Contains(string(lines.Image), ".nv_debug_line_sass") || strings.Contains(string(without), ".nv_debug_line_sass") {
				t.Error("the one has no line information, or the other has")
			}
			if lines.Code != plain {
				t.Error("with a comment, another name and -lineinfo the hash differs")
			}
			if built["changed.cu"].Code == plain {
				t.Error("with another constant the hash is the same")
			}
			// What is loaded is the same to the byte.
			with, err := readCubin(lines.Image)
			if err != nil {
				t.Fatal(err)
			}
			bare, err := readCubin(without)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range bare.sections {
				if s.Flags&elf.SectionAllocated == 0 {
					continue
				}
				i := slices.IndexFunc(with.sections, func(o elf.Section) bool { return stableName(o.Name) == stableName(s.Name) })
				if i < 0 || string(with.sections[i].Data) != string(s.Data) || with.sections[i].Size != s.Size {
					t.Errorf("section %s differs", s.Name)
				}
			}
			// A bit of what is for people makes no difference.
			loaded, noise := loadedBytes(t, lines.Image)
			for i := range noise {
				if loaded[i] != "" || i%16 != 0 {
					continue
				}
				lines.Image[i] ^= 1
				hash, err := machineCode(lines.Image)
				lines.Image[i] ^= 1
				if hash != plain {
					t.Errorf("byte %d, %s, makes a difference (%v)", i, noise[i], err)
				}
			}
		})
	}
}

// What nvcc made cannot be read: since it makes an empty kernel that can, the source is to blame.
func TestUnreadableCubinIsTheSourcesFault(t *testing.T) {
	c := *realCUDA(t)
	c.Cache = &Cache{Dir: t.TempDir()}
	b := NVCCBuild{Dir: folder(t, map[string]string{"k.cu": kernelText}), Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89"}
	key, err := c.cacheKey(b)
	if err != nil {
		t.Fatal(err)
	}
	image := recordedCubins(t)["sm_89"]
	if err := c.Cache.store(key, nvccOutput{Image: image[:len(image)/2]}); err != nil {
		t.Fatal(err)
	}
	mustRefuseBuild(t, &c, b, "reading what nvcc made of k.cu: not a well-formed cubin: the section headers lie outside the file")
}

func TestBuildTellsWhatTheToolsSay(t *testing.T) {
	c := keptCUDA(t)
	warned := strings.Replace(read(t, "testdata/warned.cu"), "__global__", `extern "C" __global__`, 1)
	spilling := strings.Replace(read(t, "testdata/spill.cu"), "__maxnreg__(32)", "", 1)
	t.Run("warnings", func(t *testing.T) {
		t.Parallel()
		cubin := mustBuild(t, c, NVCCBuild{Dir: folder(t, map[string]string{"k/warned.cu": warned}), Source: "k/warned.cu", Entries: []string{"warned"}, Arch: "sm_89"})
		i := slices.IndexFunc(cubin.Diagnostics, func(d gates.Diagnostic) bool { return d.Code == "#177-D" })
		if i < 0 || cubin.Diagnostics[i].File != "k/warned.cu" || cubin.Diagnostics[i].Line != 4 || cubin.Diagnostics[i].Severity != "warning" {
			t.Errorf("diagnostics %+v", cubin.Diagnostics)
		}
	})
	t.Run("spills", func(t *testing.T) {
		t.Parallel()
		cubin := mustBuild(t, c, NVCCBuild{
			Dir: folder(t, map[string]string{"spill.cu": spilling}), Source: "spill.cu", Entries: []string{"spill"}, Arch: "sm_90a",
			Flags: []string{"-maxrregcount=32", "-Xptxas", "-v"}, Defines: []string{"-DUNUSED=1"},
		})
		u := cubin.Kernels[0].Usage
		if u.Registers == nil || *u.Registers > 32 || u.SpillStores == nil || *u.SpillStores == 0 || u.SpillLoads == nil || *u.SpillLoads == 0 {
			t.Errorf("usage %+v", u)
		}
		if !slices.ContainsFunc(cubin.Warnings, func(w string) bool { return strings.Contains(w, "spilled") }) {
			t.Errorf("warnings %q", cubin.Warnings)
		}
	})
	t.Run("errors", func(t *testing.T) {
		t.Parallel()
		refusal := mustRefuseBuild(t, c, NVCCBuild{Dir: folder(t, map[string]string{"broken.cu": read(t, "testdata/broken.cu")}), Source: "broken.cu", Entries: []string{"broken"}, Arch: "sm_89"},
			`broken.cu:4: identifier "missing" is undefined (and`)
		if d := refusal.Diagnostics[0]; d.File != "broken.cu" || d.Line != 4 || d.Severity != "error" {
			t.Errorf("the first of %+v", refusal.Diagnostics)
		}
	})
	t.Run("an error of ptxas", func(t *testing.T) {
		t.Parallel()
		mustRefuseBuild(t, c, NVCCBuild{Dir: folder(t, map[string]string{"badptx.cu": read(t, "testdata/badptx.cu")}), Source: "badptx.cu", Entries: []string{"badptx"}, Arch: "sm_89"},
			"badptx.ptx:")
	})
}

func TestBuildBlamesTheFlags(t *testing.T) {
	c := realCUDA(t)
	dir := folder(t, map[string]string{"k.cu": `extern "C" __global__ void k() {}`})
	for arch, flags := range map[string][]string{"sm_10": nil, "sm_89": {"--no-such-flag"}} {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			_, err := c.Build(t.Context(), NVCCBuild{Dir: dir, Source: "k.cu", Entries: []string{"k"}, Arch: arch, Flags: flags, Scratch: t.TempDir()})
			if refusal := new(output.CompileError); err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), "refuses even an empty kernel for "+arch) {
				t.Errorf("error %v (%T) does not blame the flags", err, err)
			}
		})
	}
}

func TestBuildChecksItsInput(t *testing.T) {
	good := NVCCBuild{Dir: "/k", Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89", Scratch: "/s"}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*NVCCBuild){
		"no GPU architecture":        func(b *NVCCBuild) { b.Arch = "sm_89,code=sm_90" },
		"no name of a kernel":        func(b *NVCCBuild) { b.Entries = []string{"k(int); evil"} },
		"no file within":             func(b *NVCCBuild) { b.Source = "../k.cu" },
		"no file within the kernel'": func(b *NVCCBuild) { b.Source = "-ccbin=k.cu" },
		"no file within the kernel":  func(b *NVCCBuild) { b.Source = "@k.cu" },
		"no CUDA source":             func(b *NVCCBuild) { b.Source = "k.cpp" },
		"must be absolute":           func(b *NVCCBuild) { b.Dir = "k" },
	} {
		b := good
		change(&b)
		if _, err := new(CUDA).Build(t.Context(), b); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: error %v, want one that says %q", b, err, name)
		}
	}
}

func TestDefinitionLine(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		want   int
	}{
		"plain":               {"\nextern \"C\" __global__ void k(int n) {}", 2},
		"over several lines":  {"extern \"C\"\n__global__\nvoid\n__launch_bounds__(128, 2)\nk (int n)\n{\n}", 2},
		"after a declaration": {"__global__ void k(int);\n__global__ void k(int n) {}", 2},
		"after another":       {"__global__ void kk(int) { k(1); }\n__global__ void k(int n) {}", 2},
		"in a comment":        {"// __global__ void k() {\n/* __global__ void k() {\n*/ __global__ void k() {}", 3},
		"in a text":           {"const char* s = \"__global__ void k() {\";\n__global__ void k() {}", 2},
		"made by a macro":     {"KERNEL(k) {}", 0},
		"only declared":       {"__global__ void k(int);", 0},
		"at the end":          {"__global__", 0},
		"empty":               {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := definitionLine(test.source, "k"); got != test.want {
				t.Errorf("line %d, want %d", got, test.want)
			}
		})
	}
}

func TestReadMergesTheTools(t *testing.T) {
	image := recordedCubins(t)["sm_90a"]
	log := "ptxas info    : Compiling entry function 'scale' for 'sm_90a'\n" +
		"ptxas info    : Function properties for scale\n    8 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads\n" +
		"ptxas info    : Used 24 registers, 256 bytes smem\n"
	usage := " Function scale:\n  REG:22 STACK:16 SHARED:%s LOCAL:4\n"
	b := NVCCBuild{Dir: t.TempDir(), Source: "k.cu", Entries: []string{"scale"}, Arch: "sm_90a"}
	for name, test := range map[string]struct {
		output nvccOutput
		want   map[string]int
		err    string
		blamed bool
	}{
		"both": {
			output: nvccOutput{Log: log, Usage: strings.Replace(usage, "%s", "1280", 1)},
			want:   map[string]int{"registers": 24, "stack": 16, "shared memory": 256, "spill stores": 4, "spill loads": 0},
		},
		"ptxas alone": {
			output: nvccOutput{Log: log},
			want:   map[string]int{"registers": 24, "stack": 8, "shared memory": 256, "spill stores": 4, "spill loads": 0},
		},
		"cuobjdump sees more shared memory": {
			output: nvccOutput{Log: log, Usage: strings.Replace(usage, "%s", "1536", 1)},
			want:   map[string]int{"registers": 24, "stack": 16, "shared memory": 512, "spill stores": 4, "spill loads": 0},
		},
		"a number that is none": {output: nvccOutput{Log: log + "ptxas info    : Used many registers\n"}, err: "resource report is garbled", blamed: true},
		"another architecture":  {output: nvccOutput{Log: strings.ReplaceAll(log, "sm_90a", "sm_80")}, err: "resource report is garbled", blamed: true},
		"no report":             {output: nvccOutput{Log: "hello"}, err: "resource report is garbled", blamed: true},
		"a broken cuobjdump":    {output: nvccOutput{Log: log, Usage: "hello"}, err: "no function"},
		"a broken image":        {output: nvccOutput{Log: log, Image: []byte("hello")}, err: "not a well-formed cubin"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.output.Image == nil {
				test.output.Image = image
			}
			cubin, err := test.output.read(b)
			if test.err != "" {
				refusal := new(output.CompileError)
				if err == nil || !strings.Contains(err.Error(), test.err) || errors.As(err, &refusal) != test.blamed {
					t.Errorf("error %v (%T), want one that says %q, and the source blamed: %v", err, err, test.err, test.blamed)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for name, n := range figuresOf(cubin.Kernels[0].Usage) {
				if n != nil {
					got[name] = *n
				}
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("usage %v, want %v", got, test.want)
			}
		})
	}
}
