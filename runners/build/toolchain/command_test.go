package toolchain

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// build.py assembles PTX by the toolkit's own ptxas, as any front end would.
const buildScript = `import json, os, subprocess
out = os.environ["OUT"]
subprocess.run(["ptxas", "--gpu-name", os.environ["ARCH"], "scale.ptx", "-o", out + "/kernel.cubin"], check=True)
with open(out + "/kernel.json", "w") as f:
    json.dump({"entry": "scale", "block": [int(os.environ["TOGGLE_THREADS"]), 2], "shared_memory": 64}, f)
`

func realCommand(t *testing.T) *Command {
	t.Helper()
	c, err := FindCommand(t.Context(), os.Getenv, realCUDA(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := foundPython(); err != nil {
		t.Skip(err)
	}
	return c
}

func commandBuild(t *testing.T, script, ptx string) CommandBuild {
	t.Helper()
	return CommandBuild{
		Dir: folder(t, map[string]string{"build.py": script, "scale.ptx": ptx}), Args: []string{"python3", "build.py"}, Source: "build.py", Entry: "scale", Arch: "sm_90",
		Toggles: map[string]int{"THREADS": 128}, Scratch: t.TempDir(),
	}
}

// A program of the repository makes the cubin and says how it is launched.
func TestCommand(t *testing.T) {
	ptx := read(t, "testdata/scale.ptx")
	c, b := realCommand(t), commandBuild(t, buildScript, ptx)
	cubin, err := c.Build(t.Context(), b)
	if err != nil {
		t.Fatal(err, logOf(err))
	}
	if diff := cmp.Diff(&Start{Block: [3]int{128, 2, 1}, Shared: 64}, cubin.Start); diff != "" {
		t.Errorf("it is launched so (-want +got):\n%s", diff)
	}
	k := cubin.Kernels[0]
	if k.Symbol != "scale" || len(k.Params) != 3 || *k.Usage.Registers < 4 || k.Usage.SpillStores != nil || cubin.Code == "" {
		t.Errorf("the kernel is told as %+v", k)
	}
	plain := mustBuild(t, realCUDA(t), NVCCBuild{Dir: b.Dir, Source: "scale.ptx", Entries: []string{"scale"}, Arch: "sm_90"})
	if *plain.Kernels[0].Usage.Registers != *k.Usage.Registers {
		t.Errorf("%d registers are told, and ptxas says %d", *k.Usage.Registers, *plain.Kernels[0].Usage.Registers)
	}
}

func TestCommandRefuses(t *testing.T) {
	c, ptx := realCommand(t), read(t, "testdata/scale.ptx")
	for name, test := range map[string]struct {
		from, to string
		want     string
	}{
		"fails":             {"import json", "import nothing_of_that_name, json", "No module named 'nothing_of_that_name'"},
		"no cubin":          {"kernel.cubin", "other.cubin", "made no kernel.cubin"},
		"no launch":         {"kernel.json", "other.json", "made no kernel.json"},
		"another kernel":    {`"entry": "scale"`, `"entry": "other"`, "a cubin without the kernel other: it has scale"},
		"an object instead": {`with open`, `open(out + "/kernel.cubin", "wb").write(open("/bin/true", "rb").read())` + "\nwith open", "not a well-formed cubin"},
		"reads a secret":    {"import json", "open('/etc/shadow')\nimport json", "No such file or directory: '/etc/shadow'"},
		"opens a socket":    {"import json", "import socket; socket.create_connection(('127.0.0.1', 22))\nimport json", "the build python3 build.py: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := strings.Replace(buildScript, test.from, test.to, 1)
			if script == buildScript {
				t.Fatal("the edit changed nothing")
			}
			b := commandBuild(t, script, ptx)
			_, err := c.Build(t.Context(), b)
			refusal := &output.CompileError{}
			if !errors.As(err, &refusal) || !strings.Contains(refusal.Summary, test.want) {
				t.Errorf("got %v\nwant …%s…", err, test.want)
			}
			if left, err := os.ReadDir(b.Scratch); err != nil || len(left) > 0 {
				t.Errorf("left in the scratch folder: %v, %v", left, err)
			}
		})
	}
}

// What a program says of the launch is held against what GPUs have.
func TestCommandSays(t *testing.T) {
	for name, test := range map[string]struct{ said, want string }{
		"another kernel":   {`{"entry": "other", "block": [128]}`, "a cubin without the kernel other: it has "},
		"too many threads": {`{"block": [128, 200]}`, "a block of 128 × 200 × 1 threads (1 to 1024 are possible)"},
		"overflow":         {`{"block": [128, 9223372036854775807, 9223372036854775807]}`, "threads (1 to 1024 are possible)"},
		"no block":         {`{"block": []}`, "a block of 0 axes (write one to three"},
		"another form":     {`{"blocks": [128]}`, "cannot be read"},
		"much scratch":     {`{"block": [128], "scratch": [` + strings.Repeat(`{"size": 1, "align": 1},`, 8) + `{"size": 1, "align": 1}]}`, "9 scratch memories"},
	} {
		c := &Cubin{Image: recordedCubins(t)["sm_90a"]}
		err := c.readCommand(CommandBuild{Source: "build.py", Entry: "scale", Arch: "sm_90"}, []byte(test.said))
		if refusal := new(output.CompileError); !errors.As(err, &refusal) || !strings.Contains(refusal.Summary, test.want) {
			t.Errorf("%s: got %v\nwant …%s…", name, err, test.want)
		}
	}
}

// No kernel.json makes the reader fall over, or lets through a launch that no GPU has.
func FuzzCommandSays(f *testing.F) {
	image, err := os.ReadFile("testdata/cubins/sm_89.cubin")
	if err != nil {
		f.Fatal(err)
	}
	file, err := readCubin(image)
	if err != nil {
		f.Fatal(err)
	}
	entry := file.entries()[0]
	f.Add(`{"block": [128], "shared_memory": 64, "scratch": [{"size": 8, "align": 8}]}`)
	f.Add(`{"entry": "other", "block": [1, 2, 3]}`)
	f.Add(`{"block": [-1]}{}`)
	f.Fuzz(func(t *testing.T, said string) {
		c := &Cubin{Image: image}
		if err := c.readCommand(CommandBuild{Source: "build.py", Entry: entry, Arch: "sm_89"}, []byte(said)); err != nil {
			if _, ok := err.(*output.CompileError); !ok {
				t.Fatalf("the machine is blamed: %v", err)
			}
			return
		}
		if n := c.Start.Block[0] * c.Start.Block[1] * c.Start.Block[2]; n < 1 || n > 1024 || c.Start.Shared < 0 || c.Start.Shared > maxBlockShared || len(c.Start.Scratch) > maxScratches {
			t.Fatalf("it would be launched as %+v", c.Start)
		}
	})
}
