package toolchain

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The two tools describe the same cubins: what both print must be the same.
func TestToolsAgreeOnRecordedCubins(t *testing.T) {
	compared := 0
	for path, out := range recorded(t, "usage") {
		name := strings.TrimSuffix(filepath.Base(path), ".usage.log")
		if strings.HasSuffix(path, "_handmade.log") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			report := parsePTXAS(t, readLog(t, name+".ptxas.log"))
			functions, err := parseResourceUsage(out)
			if err != nil {
				t.Fatal(err)
			}
			compared += compareTools(t, report, functions)
		})
	}
	if compared < 50 {
		t.Errorf("only %d entries compared", compared)
	}
}

// compareTools checks what must be equal, and returns how many entries it found in both.
func compareTools(t *testing.T, report ptxasReport, functions []FunctionUsage) int {
	t.Helper()
	type key struct{ name, arch string }
	byName := map[key]FunctionUsage{}
	for _, f := range functions {
		byName[key{f.Name, f.Arch}] = f
	}
	for _, e := range report.Entries {
		f, ok := byName[key{e.Name, e.Arch}]
		if !ok {
			// A plain cubin's dump does not say the architecture.
			f, ok = byName[key{e.Name, ""}]
		}
		if !ok || e.Registers == nil || f.Registers == nil {
			t.Errorf("%s: not in both outputs with its registers", e.Name)
			continue
		}
		if *e.Registers != *f.Registers {
			t.Errorf("%s: ptxas says %d registers, cuobjdump %d", e.Name, *e.Registers, *f.Registers)
		}
		const reserved = 1024
		if e.StaticShared != nil && *f.StaticShared != *e.StaticShared && *f.StaticShared != *e.StaticShared+reserved {
			t.Errorf("%s: ptxas says %d bytes of shared memory, cuobjdump %d", e.Name, *e.StaticShared, *f.StaticShared)
		}
	}
	return len(report.Entries)
}

func TestResourceUsage(t *testing.T) {
	of := func(n int) *int { return &n }
	for _, test := range []struct {
		name, out string
		want      []FunctionUsage
	}{
		{"a function without figures", " Function k:\n", []FunctionUsage{{Name: "k"}}},
		{
			"the common block belongs to no function",
			" Function k:\n  REG:8\n Common:\n  GLOBAL:0 CONSTANT[3]:64\n",
			[]FunctionUsage{{Name: "k", Registers: of(8)}},
		},
		{
			"unknown fields and banks",
			" Function k:\n  REG:8 WARP:x CONSTANT[PIC]:9 CONSTANT[1]:4 LOCAL:2\n",
			[]FunctionUsage{{Name: "k", Registers: of(8)}},
		},
		{
			"a stack that nobody knows",
			" Function k:\n  REG:8 STACK:UNKNOWN\n",
			[]FunctionUsage{{Name: "k", Registers: of(8)}},
		},
		{
			"two architectures",
			"arch = sm_80\n\n Function k:\n  REG:8\n\narch = sm_90\n\n Function k:\n  REG:9\n",
			[]FunctionUsage{
				{Name: "k", Arch: "sm_80", Registers: of(8)},
				{Name: "k", Arch: "sm_90", Registers: of(9)},
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseResourceUsage(test.out)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestCuobjdumpErrors(t *testing.T) {
	usage := func(s string) error { _, err := parseResourceUsage(s); return err }
	for _, test := range []struct {
		name  string
		parse func(string) error
		out   string
		want  string
	}{
		{"usage: empty", usage, "", "--dump-resource-usage output was expected"},
		{"usage: register count", usage, "\n Function k:\n  REG:x\n", `cuobjdump output line 3: "REG:x"`},
		{"usage: negative", usage, " Function k:\n  SHARED:-4\n", "cuobjdump output line 2: "},
		{"usage: no number", usage, " Function k:\n  REG:8 STACK:\n", "cuobjdump output line 2: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.parse(test.out)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}
