package toolchain

import (
	"slices"
	"strings"
	"testing"
)

// State is what a kernel can write: no constant table, no object of the standard library, no text that is printed.
func TestStateIsWhatIsWritten(t *testing.T) {
	c := keptCUDA(t)
	b := NVCCBuild{Dir: folder(t, map[string]string{"state.cu": read(t, "testdata/state.cu")}), Source: "state.cu", Entries: []string{"k"}, Arch: "sm_90"}
	cubin := mustBuild(t, c, b)
	var written, others []string
	for _, g := range cubin.Globals {
		if g.Written {
			written = append(written, g.Name)
		} else {
			others = append(others, g.Name)
		}
	}
	slices.Sort(written)
	if got := strings.Join(written, " "); got != "buffer counter given hidden lent" {
		t.Errorf("written: %s", got)
	}
	for _, name := range []string{"table", "readonly", "_ZZ1kE5local", "unused", "where", "$str", "__cudart_i2opi_f"} {
		if !slices.Contains(others, name) {
			t.Errorf("%s is not among those that are not written, %q", name, others)
		}
	}
	if !slices.ContainsFunc(others, func(n string) bool { return strings.Contains(n, "cuda3std") }) {
		t.Errorf("no object of the standard library is among %q", others)
	}
}

func TestPTXThatWrites(t *testing.T) {
	const head = ".version 9.0\n.target sm_90\n.global .align 4 .u32 v;\n.global .align 4 .b8 w[16] = {1, 2};\n.visible .entry k(\n.param .u64 k_param_0\n)\n{\n.reg .b64 %rd<9>;\n"
	for name, test := range map[string]struct{ code, want string }{
		"nothing":             {"ret;", ""},
		"a load":              {"ld.global.u32 %r1, [v];", ""},
		"a store":             {"st.global.u32 [v+4], %r1;", "v"},
		"by a register":       {"mov.u64 %rd1, v;\nadd.s64 %rd2, %rd1, 8;\n@%p1 st.global.u32 [%rd2+-4], %r1;", "v"},
		"of a vector":         {"mov.u64 %rd1, w;\nst.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};", "w"},
		"as a value":          {"mov.u64 %rd1, v;\nst.global.u64 [%rd3], %rd1;", "v"},
		"an atomic":           {"{ atom.add.release.gpu.u32 %r1,[v],%r2; }", "v"},
		"in a loop":           {"$L1:\nst.global.u32 [%rd2], %r1;\nmov.u64 %rd2, %rd1;\nmov.u64 %rd1, v;\n@%p1 bra $L1;", "v"},
		"unknown instruction": {"mov.u64 %rd1, w;\nmbarrier.init.b64 [%rd1], 1;", "w"},
		"a copy from it":      {"mov.u64 %rd1, w;\ncp.async.cg.shared.global [%r1], [%rd1], 16;", ""},
		"a copy to it":        {"mov.u64 %rd1, w;\ncp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;", "w"},
		"an unknown function": {"mov.u64 %rd1, v;\n{ .param .b64 param0; st.param.b64 [param0+0], %rd1;\ncall.uni elsewhere, (param0); }", "v"},
		"an indirect call":    {"mov.u64 %rd1, v;\n{ .param .b64 param0; st.param.b64 [param0+0], %rd1;\ncall.uni (retval0), %rd7, (param0), prototype_0; }", "v"},
		"chosen":              {"mov.u64 %rd1, v;\nselp.b64 %rd2, %rd1, %rd3, %p1;\nred.global.add.u32 [%rd2], 1;", "v"},
	} {
		t.Run(name, func(t *testing.T) {
			written, told := ptxWritten(head + test.code + "\n}\n")
			var names []string
			for n := range written {
				if !strings.Contains(n, "/") {
					names = append(names, n)
				}
			}
			if got := strings.Join(names, " "); !told || got != test.want {
				t.Errorf("written %q (told: %v), want %q", got, told, test.want)
			}
		})
	}
	if _, told := ptxWritten("not PTX"); told {
		t.Error("what is no PTX tells something")
	}
}

func FuzzPTXWritten(f *testing.F) {
	f.Add(".global .u32 v;\n.entry k(.param .u64 p)\n{\nmov.u64 %rd1, v;\nst.global.u32 [%rd1], {%r1};\n}\n")
	f.Fuzz(func(t *testing.T, text string) { ptxWritten(text) })
}
