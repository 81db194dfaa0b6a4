package toolchain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// PTX goes to ptxas alone, and what comes of it is told as of any other source.
func TestPTX(t *testing.T) {
	c := realCUDA(t)
	text := read(t, "testdata/scale.ptx")
	for _, arch := range []string{"sm_89", "sm_90"} {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			b := NVCCBuild{Dir: folder(t, map[string]string{"scale.ptx": text}), Source: "scale.ptx", Entries: []string{"scale"}, Arch: arch, Flags: []string{"-O3"}}
			cubin := mustBuild(t, c, b)
			k := cubin.Kernels[0]
			if k.Line != 6 || k.Usage.Registers == nil || *k.Usage.Registers < 4 || k.Usage.SpillStores == nil || *k.Usage.SpillStores != 0 || cubin.Code == "" || k.CodeSize == 0 {
				t.Errorf("the kernel is told as %+v", k)
			}
			if diff := cmp.Diff([]Param{{0, 8}, {8, 8}, {16, 4}}, k.Params); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
			b.Dir = folder(t, map[string]string{"scale.ptx": strings.Replace(text, "of which", "each of which", 1)})
			if again := mustBuild(t, c, b); again.Code != cubin.Code {
				t.Error("a comment makes other machine code")
			}
			b.Dir = folder(t, map[string]string{"scale.ptx": strings.Replace(text, "add.f32 %f2, %f1, %f1", "mul.f32 %f2, %f1, %f1", 1)})
			if other := mustBuild(t, c, b); other.Code == cubin.Code {
				t.Error("another instruction makes equal machine code")
			}
		})
	}
	for name, test := range map[string]struct{ from, to, want string }{
		"a mistake":         {"ld.global.f32 %f1", "ld.global.f32 %q1", "scale.ptx:28: "},
		"no such kernel":    {".entry scale", ".entry other", "scale.ptx has no kernel scale: write the entry as one of these, or define it: other"},
		"a foreign call":    {"\tret;", "\tcall foreign;\n\tret;", "foreign"},
		"a newer language":  {".version 8.0", ".version 99.0", "99.0"},
		"another GPU's":     {".target sm_80", ".target sm_121", "sm_121"},
		"a file of others'": {".version 8.0", ".version 8.0\n.include \"/etc/passwd\"", "scale.ptx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := strings.Replace(text, test.from, test.to, 1)
			if strings.Contains(test.to, "foreign") {
				changed = strings.Replace(changed, ".visible .entry", ".extern .func foreign ();\n.visible .entry", 1)
			}
			mustRefuseBuild(t, c, NVCCBuild{Dir: folder(t, map[string]string{"scale.ptx": changed}), Source: "scale.ptx", Entries: []string{"scale"}, Arch: "sm_89"}, test.want)
		})
	}
}
