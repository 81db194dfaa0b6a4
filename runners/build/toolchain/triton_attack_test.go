package toolchain

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// hostile is Python that runs when the kernel is imported, in one process with the compiler. What succeeds and must not, it tells by
// failing.
const hostile = `
import os, socket, subprocess, sys

def must_fail(what, attempt):
    try:
        got = attempt()
    except BaseException as error:
        return
    raise RuntimeError("BREACH: " + what + " " + repr(got)[:100])

for path in ["/etc/passwd", "/etc/shadow", "SECRET", "CACHE", "/proc/1/environ", "/root/.ssh", "/dev/nvidiactl", "/dev/nvidia0"]:
    must_fail("read " + path, lambda: open(path, "rb").read(10))
must_fail("list the home", lambda: os.listdir("HOME"))
must_fail("write beside the source", lambda: open("kernel2.py", "w").write("x"))
must_fail("write to Triton", lambda: open(os.path.join(os.path.dirname(__import__("triton").__file__), "x"), "w"))
must_fail("connect", lambda: socket.create_connection(("127.0.0.1", PORT), 1))
must_fail("resolve", lambda: socket.getaddrinfo("example.com", 80))
must_fail("bind a packet socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
must_fail("trace", lambda: subprocess.run(["/usr/bin/strace", "-p", "1"], check=True))
must_fail("signal", lambda: os.kill(PARENT, 0))
must_fail("mount", lambda: subprocess.run(["mount", "-t", "tmpfs", "none", "/mnt"], check=True, capture_output=True))
if any(name.startswith("KERNELGATE") for name in os.environ):
    raise RuntimeError("BREACH: the environment")
if os.fork() == 0:
    os.setsid()
    import time
    time.sleep(1000)
print("ptxas info    : 0 bytes gmem")
print("ptxas info    : Compiling entry function 'softmax_kernel' for 'sm_90a'")
print("ptxas info    : Function properties for softmax_kernel\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads")
print("ptxas info    : Used 1 registers, used 0 barriers", file=sys.stderr)
`

// A kernel's Python reaches nothing, leaves nothing running, and what it prints is nobody's report.
func TestTritonKernelReachesNothing(t *testing.T) {
	c := realTritons(t)[0]
	t.Setenv("KERNELGATE_TEST_SECRET", "correct-horse-battery-staple")
	home := folder(t, map[string]string{"id_rsa": "secret"})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	cache := &Cache{Dir: folder(t, map[string]string{"entry": "forged"})}
	text := strings.NewReplacer("SECRET", filepath.Join(home, "id_rsa"), "CACHE", filepath.Join(cache.Dir, "entry"), "HOME", home,
		"PORT", fmt.Sprint(listener.Addr().(*net.TCPAddr).Port), "PARENT", fmt.Sprint(os.Getpid())).Replace(hostile)
	private := *c
	private.Cache = cache
	attack := mustBuildTriton(t, &private, softmax(t, text+read(t, "testdata/triton/softmax.py")))[0]
	plain := mustBuildTriton(t, cached(t, c), softmax(t, ""))[0]
	if attack.Code != plain.Code {
		t.Error("the kernel has other code than without the attack")
	}
	if got, want := *attack.Kernels[0].Usage.Registers, *plain.Kernels[0].Usage.Registers; got != want || attack.Kernels[0].Usage.SpillStores == nil {
		t.Errorf("%d registers are told, want %d", got, want)
	}
}

// around replaces triton.compile for what follows.
const replaced = `
import triton
real = triton.compile
def forged(*args, **more):
    made = real(*args, **more)
    made.asm = dict(made.asm)
    FORGE
    return made
triton.compile = forged
`

// A compiler that the kernel has replaced gives a cubin like any other: one that the launch does not fit is refused, and figures
// of other code are not taken for its own.
func TestTritonReplaced(t *testing.T) {
	c := realTritons(t)[0]
	text := read(t, "testdata/triton/softmax.py")
	build := func(forge string) TritonBuild {
		b := softmax(t, strings.Replace(replaced, "FORGE", forge, 1)+text)
		if err := os.WriteFile(filepath.Join(b.Dir, "other.ptx"), []byte(strings.Replace(read(t, "testdata/scale.ptx"), "entry scale", "entry softmax_kernel", 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		return b
	}
	kept := cached(t, c) // of builds that came to their end
	t.Run("another kernel", func(t *testing.T) {
		t.Parallel()
		b := build(`
    import subprocess, os
    ptxas = os.path.join(os.path.dirname(triton.__file__), "backends/nvidia/bin/ptxas")
    subprocess.run([ptxas, "--gpu-name", "sm_90a", "other.ptx", "-o", "/tmp/other.cubin"], check=True)
    made.asm["cubin"] = open("/tmp/other.cubin", "rb").read()`)
		mustRefuseTriton(t, kept, b, "softmax.py would be launched as its machine code does not allow: the build says 6 parameters", "and the code takes 3 of 8 8 4 bytes")
	})
	t.Run("the figures of another", func(t *testing.T) {
		t.Parallel()
		cubin := mustBuildTriton(t, kept, build(`made.asm["ptx"] = open("other.ptx").read()`))[0]
		if u := cubin.Kernels[0].Usage; u.SpillStores != nil || u.Registers == nil || *u.Registers < 16 {
			t.Errorf("figures are told that are not the code's: %+v", u)
		}
	})
	t.Run("files of others", func(t *testing.T) {
		t.Parallel()
		b := softmax(t, "import os, sys\nos.symlink('/etc/shadow', sys.argv[2] + '/0.cubin')\nos._exit(0)\n"+text)
		mustRefuseTriton(t, c, b, "made no 0.cubin of it")
	})
	t.Run("forks without end", func(t *testing.T) {
		long.Test(t)
		t.Parallel()
		b := softmax(t, "import os, time\nfor _ in range(1000):\n    if os.fork() == 0: time.sleep(1000)\n"+text)
		mustRefuseTriton(t, c, b, "softmax.py:3: BlockingIOError")
	})
	t.Run("without an end", func(t *testing.T) {
		long.Test(t)
		t.Parallel()
		b := softmax(t, "import os\nwhile True: os.write(1, b'x' * 65536)\n"+text)
		mustRefuseTriton(t, c, b, "output cut at")
	})
}

// Whatever is said of a launch is held against the code, and against what GPUs allow.
func TestTritonSays(t *testing.T) {
	c := realTritons(t)[0]
	b := softmax(t, "")
	made, _, err := cached(t, c).outputs(t.Context(), b)
	if err != nil || made[0].Refusal != "" {
		t.Fatal(err, made)
	}
	for name, test := range map[string]struct {
		from, to string
		want     string
	}{
		"more threads":       {`"warps": 4`, `"warps": 8`, "256 × 1 × 1 threads a block, and the code is made for 128 × 1 × 1"},
		"very many threads":  {`"warps": 4`, `"warps": 9223372036854775807`, "a block of 32768 × 1 × 1 threads"},
		"no threads":         {`"warps": 4`, `"warps": -1`, "a block of 0 × 1 × 1 threads"},
		"shared memory":      {`"shared": 16`, `"shared": 999999`, "999999 bytes of shared memory"},
		"negative memory":    {`"shared": 16`, `"shared": -16`, "-16 bytes of shared memory"},
		"a cluster":          {`"ctas": 1`, `"ctas": 99`, "a cluster of 99 blocks"},
		"much scratch":       {`"scratch": [{"size": 0`, `"scratch": [{"size": 99999999`, "scratch memory of 99999999 bytes a block"},
		"odd scratch":        {`"align": 1}`, `"align": 3}`, "multiples of 3"},
		"an argument less":   {`{"argument": 3, "type": "i32"}`, `{"argument": 3, "type": "i64"}`, "6 parameters of *fp32 (8), *fp32 (8), i32 (4), i64 (8)"},
		"a number as array":  {`{"argument": 1, "type": "*fp32"}`, `{"argument": 1, "type": "i64"}`, "takes the argument y as i64, and the manifest passes *fp32"},
		"an array as number": {`{"argument": 2, "type": "i32"}, {"argument": 3, "type": "i32"}`, `{"argument": 2, "type": "*i32"}`, "5 parameters"},
		"an argument twice":  {`{"argument": 1,`, `{"argument": 0,`, "argument 0 of 4 in a place where it cannot be"},
		"no argument":        {`{"argument": 3,`, `{"argument": 77,`, "argument 77 of 4"},
		"an odd type":        {`"type": "i32"`, `"type": "struct"`, "which cannot be passed"},
		"another kernel":     {`"symbol": "softmax_kernel"`, `"symbol": "other"`, "a cubin without the kernel other"},
		"another form":       {`"warps"`, `"gifts"`, "cannot be read"},
		"two of them":        {"{", "{}{", "cannot be read"},
		"nothing":            {"{", "", "cannot be read"},
		"another launch":     {`"unmet": []`, `"unmet": ["launch_pdl"]`, "needs what kernelgate cannot launch with yet: launch_pdl"},
	} {
		t.Run(name, func(t *testing.T) {
			o := made[0]
			if o.Usage = strings.Replace(o.Usage, test.from, test.to, 1); o.Usage == made[0].Usage {
				t.Fatalf("%q is not in %s", test.from, o.Usage)
			}
			_, err := o.readTriton(b, b.Kinds[0])
			if _, ok := err.(*output.CompileError); !ok || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant …%s…", err, test.want)
			}
		})
	}
}

// No word about a launch, and no cubin with it, makes the reader fall over, or lets through what check would refuse.
func FuzzTritonSays(f *testing.F) {
	genuine := said{Symbol: "k", Warps: 4, CTAs: 1, Shared: 16, Scratch: []Scratch{{0, 1}, {128, 128}}, Passed: []Passed{{Argument: 0, Type: "*fp32"}, {Argument: 1, Type: "i32"}}}
	text, err := json.Marshal(genuine)
	if err != nil {
		f.Fatal(err)
	}
	image, err := os.ReadFile("testdata/cubins/" + firstCubin(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text), image)
	f.Add("{}", image)
	f.Add(`{"symbol":"scale","warps":1,"ctas":1,"passed":[{"argument":0,"type":"*fp32"}],"scratch":[]}`, []byte("\x7fELF"))
	f.Add(`{"symbol":"scale","warps":1,"ctas":1,"passed":[{"argument":0,"type":"tensordesc<fp16[64, 64]>","descriptor":{"axes":-1,"flags":-5}}],"flags":2,"scratch":[]}`, image)
	f.Add(`{"symbol":"scale","warps":1,"ctas":1,"passed":[{"argument":0,"type":"tensordesc<fp16[64, 64]>"}],"tensors":[{"swizzle":3,"elem_size":2,"elem_type":6,"block_size":[64,64],"fp4_padded":false}],"scratch":[]}`, image)
	b := TritonBuild{Source: "k.py", Arch: "sm_90", Kinds: []manifest.Special{special(nil, 4, "x:*fp32/16 n:i32"), descriptors()}}
	f.Fuzz(func(t *testing.T, said string, image []byte) {
		for _, kind := range b.Kinds {
			cubin, err := nvccOutput{Image: image, Usage: said}.readTriton(b, kind)
			if err != nil {
				if _, ok := err.(*output.CompileError); !ok {
					t.Fatalf("the machine is blamed: %v", err)
				}
				continue
			}
			s := cubin.Start
			if s.Block[0]*s.Block[1]*s.Block[2] < 1 || s.Block[0]*s.Block[1]*s.Block[2] > 1024 || s.Shared < 0 || s.Shared > maxBlockShared || len(s.sizes()) != len(cubin.Kernels[0].Params) {
				t.Fatalf("it would be launched as %+v", s)
			}
			for _, p := range s.Passed {
				if a := kind.Arguments[p.Argument]; (p.Descriptor != nil) != (a.Block != nil) || a.Block != nil && p.Type != a.Type {
					t.Fatalf("%+v would be passed as %+v", a, p)
				}
			}
		}
	})
}

func firstCubin(f *testing.F) string {
	f.Helper()
	all, err := filepath.Glob("testdata/cubins/*")
	if err != nil || len(all) == 0 {
		f.Fatal("no cubin is kept", err)
	}
	return filepath.Base(all[0])
}

// A program can see whether its own file is executable, so chmod +x alone makes another build: it must not get the first one from
// the cache.
func TestTritonCacheKeySeesTheExecutableBit(t *testing.T) {
	c := Triton{Version: "3.9.0", PythonVersion: "3.11.7", Folder: folder(t, map[string]string{"_C/libtriton.so": ""})}
	b := TritonBuild{Dir: folder(t, map[string]string{"k.py": "FACTOR = 3 if os.access(__file__, os.X_OK) else 2\n"}), Source: "k.py", Entry: "k", Arch: "sm_90"}
	before, err := c.cacheKey(b, manifest.Special{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(b.Dir, "k.py"), 0o755); err != nil {
		t.Fatal(err)
	}
	if after, err := c.cacheKey(b, manifest.Special{}); err != nil || after == before {
		t.Errorf("both builds have one key (%v)", err)
	}
}
