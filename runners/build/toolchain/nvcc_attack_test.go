package toolchain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

const kernelText = "extern \"C\" __global__ void k(int* y) { *y = 1; }\n"

// What a source must not get from the compiler.
func TestCompilerSeesNoSecret(t *testing.T) {
	c := realCUDA(t)
	home := folder(t, map[string]string{"id_rsa": "#define SECRET 1\n"})
	secret := filepath.Join(home, "id_rsa")
	for name, test := range map[string]struct{ source, want string }{
		"accounts":           {`#include "/etc/passwd"`, "k.cu:1: /etc/passwd: No such file or directory"},
		"a file of the home": {fmt.Sprintf("#include %q", secret), "No such file or directory"},
		"a library":          {"#include <curand_kernel.h>", "k.cu:1: curand_kernel.h: No such file or directory; write include: [<curand>] in the manifest"},
		"by a link":          {`#include "borrowed.h"`, "borrowed.h: No such file or directory"},
		"beside the sources": {`#include "RELATIVE"`, "id_rsa: No such file or directory"},
		"another process":    {`#include "/proc/1/environ"`, "No such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			relative, err := filepath.Rel(dir, secret)
			if err != nil {
				t.Fatal(err)
			}
			source := strings.ReplaceAll(test.source, "RELATIVE", relative) + "\n" + kernelText
			err = errors.Join(os.WriteFile(filepath.Join(dir, "k.cu"), []byte(source), 0o644), os.Symlink(secret, filepath.Join(dir, "borrowed.h")))
			if err != nil {
				t.Fatal(err)
			}
			mustRefuseBuild(t, c, NVCCBuild{Dir: dir, Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89"}, test.want)
		})
	}
}

func TestCompilerHasNoEnvironment(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	t.Setenv("KERNELGATE_TEST_SECRET", secret)
	c := realCUDA(t)
	dir := folder(t, map[string]string{"k.cu": "#include \"/proc/self/environ\"\n" + kernelText})
	r, printed, err := c.run(t.Context(), tool{args: []string{"/usr/bin/env"}, dir: dir, read: dir})
	if err != nil || !r.OK() {
		t.Fatalf("printing the environment: %v, %+v", err, r)
	}
	if printed != strings.Join(compilerEnv, "\n")+"\n" {
		t.Errorf("the tools get the environment\n%s", printed)
	}
	cubin, err := c.Build(t.Context(), NVCCBuild{Dir: dir, Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89", Scratch: t.TempDir()})
	shown := logOf(err)
	if err == nil {
		shown = cubin.Log + string(cubin.Image)
	} else if refusal := new(output.CompileError); !errors.As(err, &refusal) {
		t.Fatal(err)
	}
	if strings.Contains(shown, secret) {
		t.Errorf("the runner's environment is in what the compiler made:\n%s", shown)
	}
}

// A folder full of files that other compilers would take orders from changes nothing.
func TestSourcesBringNoFlags(t *testing.T) {
	c := realCUDA(t)
	dir := folder(t, map[string]string{
		"k.cu":         "#ifdef TAKEN\n#error a file of the sources brought flags\n#endif\n" + kernelText,
		"nvcc.profile": "INCLUDES += \"-DTAKEN\"\nCOMPILER_BINDIR = .\n",
		"specs":        "*cpp:\n-DTAKEN\n",
		".nvccrc":      "-DTAKEN -ccbin .\n",
		"gcc":          "#!/bin/sh\nexit 1\n",
	})
	if err := os.Chmod(filepath.Join(dir, "gcc"), 0o755); err != nil {
		t.Fatal(err)
	}
	mustBuild(t, c, NVCCBuild{Dir: dir, Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89"})
}

func TestBombs(t *testing.T) {
	c := keptCUDA(t)
	const twice = "template <int N, int M> struct F { static constexpr int v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v; };\n" +
		"template <int M> struct F<0, M> { static constexpr int v = M; };\n" +
		"extern \"C\" __global__ void k(int* y) { *y = F<40, 0>::v; }\n"
	small := *c
	small.Memory = 256 << 20
	for name, test := range map[string]struct {
		cuda    *CUDA
		source  string
		timeout time.Duration
		want    []string
	}{
		"memory": {&small, twice, time.Minute, []string{"the compiler was stopped: ", "emory", "; make the source cheaper to compile"}},
		"time":   {c, twice, 200 * time.Millisecond, []string{"the compiler was stopped: killed at the 200ms deadline; make the source cheaper"}},
		"depth": {
			c, "template <int N> struct F { static constexpr int v = F<N - 1>::v; };\nextern \"C\" __global__ void k(int* y) { *y = F<1>::v; }\n",
			time.Minute, []string{"k.cu:1: excessive recursion"},
		},
		"a device":  {&small, "#include \"/dev/zero\"\n", time.Minute, []string{"the compiler was stopped: "}},
		"constexpr": {c, "__device__ constexpr long f() { long s = 0; for (long i = 0; i < 1l << 50; i++) s ^= i; return s; }\nextern \"C\" __global__ void k(long* y) { constexpr long n = f(); *y = n; }\n", time.Minute, []string{"k.cu:2: expression must have a constant value"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{"k.cu": test.source})
			mustRefuseBuild(t, test.cuda, NVCCBuild{Dir: dir, Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89", Timeout: test.timeout}, test.want...)
		})
	}
}

func TestDynamicParallelismIsRefused(t *testing.T) {
	c := keptCUDA(t)
	for name, test := range map[string]struct{ source, want string }{
		"a launch": {
			"__global__ void child(int* y) { *y = 1; }\nextern \"C\" __global__ void k(int* y) { child<<<1, 1>>>(y); }\n",
			"a kernel must not launch kernels (dynamic parallelism)",
		},
		"the device runtime": {
			"extern \"C\" __global__ void k(int* y) { *y = cudaLaunchDeviceV2(y, 0); }\n",
			"",
		},
		// ptxas takes this for one of the driver's functions and lets it pass.
		"the driver's own function": {
			"extern \"C\" __device__ int cnpLaunchDeviceV2(void*, void*);\nextern \"C\" __global__ void k(int* y) { *y = cnpLaunchDeviceV2(y, y); }\n",
			"k.cu calls cnpLaunchDeviceV2, which it does not define: a kernel must not launch kernels",
		},
		"a made-up system call": {
			"extern \"C\" __device__ int __cuda_syscall_launch(void*);\nextern \"C\" __global__ void k(int* y) { *y = __cuda_syscall_launch(y); }\n",
			"k.cu calls __cuda_syscall_launch, which it does not define",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustRefuseBuild(t, c, NVCCBuild{Dir: folder(t, map[string]string{"k.cu": test.source}), Source: "k.cu", Entries: []string{"k"}, Arch: "sm_90a"}, test.want)
		})
	}
}

// A source can print lines that look like those of ptxas. That makes it look worse or is refused.
func TestForgedReports(t *testing.T) {
	c := keptCUDA(t)
	build := func(t *testing.T, message string) NVCCBuild {
		t.Parallel()
		return NVCCBuild{Dir: folder(t, map[string]string{"k.cu": "#pragma message \"" + message + "\"\n" + kernelText}), Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89"}
	}
	const entry = `\nptxas info    : Compiling entry function 'k' for 'sm_89'`
	t.Run("less", func(t *testing.T) {
		b := build(t, entry+`\nptxas info    : Used 1 registers\n`)
		if u := mustBuild(t, c, b).Kernels[0].Usage; *u.Registers < 4 {
			t.Errorf("%d registers", *u.Registers)
		}
	})
	t.Run("more", func(t *testing.T) {
		b := build(t, entry+`\nptxas info    : Used 250 registers\n`)
		if u := mustBuild(t, c, b).Kernels[0].Usage; *u.Registers != 250 {
			t.Errorf("%d registers", *u.Registers)
		}
	})
	t.Run("garbled", func(t *testing.T) {
		mustRefuseBuild(t, c, build(t, entry+`\nptxas info    : Used no registers\n`), "the compiler's resource report is garbled", "#pragma message")
	})
	t.Run("a fault of the runner", func(t *testing.T) {
		b := build(t, `\nnvcc fatal   : Unsupported gpu architecture 'compute_89'\n`)
		broken := strings.Replace(read(t, filepath.Join(b.Dir, "k.cu")), "*y = 1;", `asm volatile("nonsense;");`, 1)
		if err := os.WriteFile(filepath.Join(b.Dir, "k.cu"), []byte(broken), 0o644); err != nil {
			t.Fatal(err)
		}
		mustRefuseBuild(t, c, b)
	})
}
