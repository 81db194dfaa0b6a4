package toolchain

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/entryname"
)

func readLog(tb testing.TB, name string) string {
	tb.Helper()
	log, err := os.ReadFile("testdata/logs/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(log)
}

func parsePTXAS(t *testing.T, log string) ptxasReport {
	t.Helper()
	report, err := readPTXAS(log)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// entry finds the only entry of that short name.
func entry(t *testing.T, report ptxasReport, short string) FunctionUsage {
	t.Helper()
	var found []FunctionUsage
	for _, e := range report.Entries {
		if entryname.Parse(e.Name).Bare == short {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d entries called %s, want 1", len(found), short)
	}
	return found[0]
}

func TestSpillsOfCalleesCountForTheirCallers(t *testing.T) {
	for _, release := range []string{"cuda11.8", "cuda12.0", "cuda12.4", "cuda12.9", "cuda13.0"} {
		t.Run(release, func(t *testing.T) {
			report := parsePTXAS(t, readLog(t, release+"-sm_89.ptxas.log"))
			for _, name := range []string{"caller", "twice", "spill"} {
				e := entry(t, report, name)
				if e.SpillStores == nil || *e.SpillStores == 0 || e.SpillLoads == nil || *e.SpillLoads == 0 {
					t.Errorf("%s: no spills", name)
				}
			}
			e := entry(t, report, "bystander")
			if *e.SpillStores != 0 || *e.SpillLoads != 0 {
				t.Errorf("bystander inherited what it does not call: %d stores, %d loads", *e.SpillStores, *e.SpillLoads)
			}
		})
	}
}

func TestForgedLinesDoNotLowerFigures(t *testing.T) {
	log := readLog(t, "cuda13.0-forged.ptxas.log")
	if !strings.Contains(log, "Used 1 registers") {
		t.Fatal("the recorded log no longer holds the forged line")
	}
	if e := entry(t, parsePTXAS(t, log), "forged"); *e.Registers != 16 {
		t.Errorf("registers = %d, want the 16 that ptxas printed", *e.Registers)
	}
}

func TestFigures(t *testing.T) {
	of := func(n int) *int { return &n }
	const title = "ptxas info    : Compiling entry function 'k' for 'sm_89'\n"
	const properties = "ptxas info    : Function properties for "
	k := FunctionUsage{Name: "k", Arch: "sm_89"}
	with := func(change func(*FunctionUsage)) FunctionUsage {
		u := k
		change(&u)
		return u
	}
	for _, test := range []struct {
		name, log string
		want      FunctionUsage
	}{
		{"nothing printed", title, k},
		{
			"everything on one line", title + "ptxas info    : Used 87 registers, used 1 barriers, 128 bytes cumulative stack size, 30976 bytes smem, 4 bytes lmem, 428 bytes cmem[0], 8 bytes cmem[2], 3 textures\n",
			with(func(u *FunctionUsage) {
				u.Registers, u.Stack, u.StaticShared = of(87), of(128), of(30976)
			}),
		},
		{
			"the maximum of two blocks, field by field",
			title + properties + "k\n    128 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads\n" +
				properties + "f\n    64 bytes stack frame, 0 bytes spill stores, 8 bytes spill loads\n",
			with(func(u *FunctionUsage) { u.Stack, u.SpillStores, u.SpillLoads = of(128), of(4), of(8) }),
		},
		{
			"functions above the first entry count for it",
			"ptxas info    : 0 bytes gmem\n" + properties + "f\n    64 bytes stack frame, 0 bytes spill stores, 8 bytes spill loads\n" + title,
			with(func(u *FunctionUsage) { u.Stack, u.SpillStores, u.SpillLoads = of(64), of(0), of(8) }),
		},
		{
			"an echoed source comment is no figure",
			title + "    int x; // was 96 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n",
			k,
		},
		{"own bytes and the system's", title + "ptxas info    : Used 2 registers, 8228+16 bytes smem\n",
			with(func(u *FunctionUsage) { u.Registers, u.StaticShared = of(2), of(8244) })},
		{"Windows line ends", strings.ReplaceAll(title+"ptxas info    : Used 2 registers\n", "\n", "\r\n"),
			with(func(u *FunctionUsage) { u.Registers = of(2) })},
		{"a title cut short", title + "ptxas info    : Function properties for\n", k},
		{
			"functions of one source do not count for the next",
			"ptxas info    : 0 bytes gmem\n" + properties + "f\n    64 bytes stack frame, 0 bytes spill stores, 8 bytes spill loads\n" + "ptxas info    : 0 bytes gmem\n" + title,
			k,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := parsePTXAS(t, test.log)
			if diff := cmp.Diff([]FunctionUsage{test.want}, report.Entries); diff != "" {
				t.Errorf("entries (-want +got)\n%s", diff)
			}
		})
	}
}

func TestPTXASErrors(t *testing.T) {
	const title = "nvcc said something\nptxas info    : Compiling entry function 'k' for 'sm_89'\n"
	for _, test := range []struct{ name, log, want string }{
		{"empty", "", "-Xptxas -v output was expected"},
		{"something else", "make: Nothing to be done\n", "no entry function in 1 lines"},
		{"not a number", title + "ptxas info    : Used many registers\n", `ptxas output line 3: "many registers"`},
		{"no number", title + "ptxas info    : Used registers\n", "ptxas output line 3: "},
		{"negative", title + "ptxas info    : Used 8 registers, -4 bytes smem\n", "ptxas output line 3: "},
		{"too large", title + "ptxas info    : Used 8 registers, 99999999999999999999 bytes smem\n", "out of range"},
		{"spills", title + "ptxas info    : Function properties for k\n    0 bytes stack frame, 4x bytes spill stores\n", "ptxas output line 4: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := readPTXAS(test.log)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestPTXASWarnings(t *testing.T) {
	const log = "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async\nptxas info    : Compiling entry function 'k' for 'sm_89'\n" +
		"ptxas warning : Stack size for entry function 'k' cannot be statically determined\n"
	want := []string{"(C7511) Potential Performance Loss: wgmma.mma_async", "Stack size for entry function 'k' cannot be statically determined"}
	if diff := cmp.Diff(want, parsePTXAS(t, log).Warnings); diff != "" {
		t.Errorf("warnings (-want +got)\n%s", diff)
	}
}
