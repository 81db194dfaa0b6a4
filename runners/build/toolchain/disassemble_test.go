package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// needsDisassembler skips where there is none, but not in CI.
func needsDisassembler(t *testing.T) *Disassembler {
	t.Helper()
	d, err := FindNVDisasm(t.Context(), os.Getenv, realCUDA(t))
	if err == nil {
		return d
	}
	if os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	t.Skip(err)
	return nil
}

// committed is a cubin that lies here.
func committed(t *testing.T, arch string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("testdata", "cubins", arch+".cubin"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Machine code of three generations is told apart by what it does, and what differs is shown with the source's lines.
func TestDisassemble(t *testing.T) {
	c, d := keptCUDA(t), needsDisassembler(t)
	d.Cache = c.Cache
	for _, arch := range []string{"sm_89", "sm_90a", "sm_120"} {
		all, err := d.disassemble(t.Context(), committed(t, arch))
		if err != nil {
			t.Fatal(err)
		}
		n := all["scale"].count()
		if n.Memory < 5 || n.Barrier < 1 || n.Tensor != 0 || n.Other < 20 || n.All() != len(all["scale"]) {
			t.Errorf("%s: %+v of %d instructions", arch, n, len(all["scale"]))
		}
	}
	build := func(text string) CodePlace {
		cubin, err := c.Build(t.Context(), NVCCBuild{Dir: folder(t, map[string]string{"k.cu": text}), Source: "k.cu", Entries: []string{"k"}, Arch: "sm_90a", Scratch: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		return CodePlace{cubin.Path, cubin.Kernels[0].Symbol}
	}
	const source = "extern \"C\" __global__ void k(float *x, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n)\n    x[i] = %s;\n}\n"
	m := d.Compare(t.Context(), []CodePair{{Kernel: "k", Baseline: build(fmt.Sprintf(source, "x[i] * 2")), Candidate: build(fmt.Sprintf(source, "__expf(x[i])"))}})
	if len(m.Changes) != 1 || m.Skipped != "" || !strings.HasPrefix(m.Tool, "nvdisasm 1") {
		t.Fatalf("%+v", m)
	}
	k := m.Changes[0]
	if k.Baseline.Special != 0 || k.Candidate.Special != 1 || k.Baseline.Memory != 2 || k.Candidate.Memory != 2 {
		t.Errorf("%+v → %+v", k.Baseline, k.Candidate)
	}
	if !strings.Contains(k.Diff, "\n+MUFU.EX2 ") || !strings.Contains(k.Diff, " k.cu:4\n") || strings.Contains(k.Diff, "/*") {
		t.Errorf("the diff is\n%s", k.Diff)
	}
}

// What a stranger's cubin does to the disassembler is told in its place, and costs nothing else.
func TestDisassemblerOfGarbage(t *testing.T) {
	d := needsDisassembler(t)
	image, err := os.ReadFile(committed(t, "sm_90a"))
	if err != nil {
		t.Fatal(err)
	}
	for name, garbage := range map[string][]byte{"cut off": image[:len(image)/2], "no ELF": []byte("hello"), "empty": {}} {
		file := filepath.Join(t.TempDir(), "kernel.cubin")
		if err := os.WriteFile(file, garbage, 0o644); err != nil {
			t.Fatal(err)
		}
		place := CodePlace{file, "scale"}
		if m := d.Compare(t.Context(), []CodePair{{Kernel: "k", Baseline: place, Candidate: place}}); !strings.Contains(m.Skipped, "cannot show the machine code") {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// A disassembly is made once.
func TestDisassemblyIsKept(t *testing.T) {
	d := needsDisassembler(t)
	kept := *d
	kept.Cache = &Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	file := committed(t, "sm_89")
	first, err := kept.disassemble(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	kept.Path = "/nowhere"
	again, err := kept.disassemble(t.Context(), file)
	if err != nil || !slices.Equal(first["scale"], again["scale"]) || len(again["scale"]) == 0 {
		t.Errorf("%d instructions, then %d (%v)", len(first["scale"]), len(again["scale"]), err)
	}
	if _, err := kept.disassemble(t.Context(), committed(t, "sm_90a")); err == nil {
		t.Error("another image has the same disassembly")
	}
}

func TestClasses(t *testing.T) {
	for word, want := range map[string]class{
		"HMMA": classTensor, "HGMMA": classTensor, "QGMMA": classTensor, "IMMA": classTensor, "DMMA": classTensor, "UTCHMMA": classTensor, "FFMA": classOther, "IMAD": classOther,
		"LDG": classMemory, "LDGSTS": classMemory, "STS": classMemory, "LDSM": classMemory, "ATOMG": classMemory, "REDG": classMemory, "UTMALDG": classMemory, "UBLKCP": classMemory, "LDC": classOther, "ULDC": classOther, "REDUX": classOther,
		"BAR": classBarrier, "WARPSYNC": classBarrier, "LDGDEPBAR": classBarrier, "DEPBAR": classBarrier, "SYNCS": classBarrier, "WARPGROUP": classBarrier, "MEMBAR": classBarrier, "UCGABAR_WAIT": classBarrier, "BRA": classOther, "MUFU": classSpecial,
	} {
		if got := sassClass(word); got != want {
			t.Errorf("%s is %d, want %d", word, got, want)
		}
	}
	for said, want := range map[string]class{
		"movss (%rdi),%xmm0": classMemory, "lea (%rdi,%rsi,4),%rax": classOther, "addss %xmm0,%xmm1": classOther, "vsqrtps %ymm0,%ymm1": classSpecial, "divsd %xmm0,%xmm1": classSpecial, "mfence": classBarrier,
		"tdpbf16ps %tmm0,%tmm1,%tmm2": classTensor, "ldr q0, [x1]": classMemory, "bfmmla v0.4s, v1.8h, v2.8h": classTensor, "fsqrt s0, s1": classSpecial, "dmb ish": classBarrier,
	} {
		word, operands, _ := strings.Cut(said, " ")
		if got := hostClass(word, operands); got != want {
			t.Errorf("%s is %d, want %d", said, got, want)
		}
	}
}

// Arithmetic on vectors counts, and arithmetic on scalars in the same registers does not.
func TestVectorArithmetic(t *testing.T) {
	for said, want := range map[string]bool{
		"addps %xmm0,%xmm1": true, "vfmadd231ps %ymm0,%ymm1,%ymm2": true, "vmulpd (%rdi),%zmm1,%zmm2": true, "vpaddd %ymm0,%ymm1,%ymm2": true, "pmaddwd %xmm0,%xmm1": true, "vpdpbusd %zmm0,%zmm1,%zmm2": true, "vdivps %ymm0,%ymm1,%ymm2": true,
		"addss %xmm0,%xmm1": false, "vfmadd231sd %xmm0,%xmm1,%xmm2": false, "movaps %xmm0,%xmm1": false, "xorps %xmm0,%xmm0": false, "unpcklps %xmm0,%xmm0": false, "cvtps2pd %xmm0,%xmm0": false, "pxor %xmm0,%xmm0": false, "vmovups %ymm0,(%rdi)": false, "add %rax,%rbx": false,
		"fmla v0.4s, v1.4s, v2.4s": true, "fmul z0.s, z1.s, z2.s": true, "fmad z0.s, p0/m, z1.s, z2.s": true, "vdpbf16ps %zmm0,%zmm1,%zmm2": true, "sdot v0.4s, v1.16b, v2.16b": true, "mul v0.4s, v1.4s, v2.4s": true,
		"fmul s0, s1, s2": false, "fmadd d0, d1, d2, d3": false, "mov v0.16b, v1.16b": false, "add x0, x1, x2": false, "ld1 {v0.4s}, [x0]": false,
	} {
		word, operands, _ := strings.Cut(said, " ")
		if got := onVectors(word, operands); got != want {
			t.Errorf("%s: %v", said, got)
		}
	}
}

// Hunks bear the line of their first change, on whichever side it is.
func TestCompareListings(t *testing.T) {
	list := func(text string) (l listing) {
		for i, s := range strings.Fields(text) {
			l = append(l, instruction{Text: s, File: "k.py", Line: i + 1})
		}
		return l
	}
	for _, c := range []struct{ before, after, want string }{
		{"a b c", "a b c", ""},
		{"a b c", "a x c", "@@ -1,3 +1,3 @@ k.py:2\n a\n-b\n+x\n c\n"},
		{"", "a", "@@ -0,0 +1,1 @@ k.py:1\n+a\n"},
		{"a", "", "@@ -1,1 +0,0 @@ k.py:1\n-a\n"},
		{"a b c d e f g h", "a b c d e f g x h", "@@ -5,4 +5,5 @@ k.py:8\n e\n f\n g\n+x\n h\n"},
	} {
		if got := compareListings(list(c.before), list(c.after)); got != c.want {
			t.Errorf("%q to %q:\n%s\nwant\n%s", c.before, c.after, got, c.want)
		}
	}
}

// Whatever a disassembler prints, what is read of it fits evidence.
func FuzzDisassembly(f *testing.F) {
	f.Add("\t.section\t.text.k,\"ax\",@progbits\n\t//## File \"/a/k.cu\", line 12\n        /*0000*/              @!P0 BRA `(.L_x_0) ;\n", "")
	f.Add("   0:\ttest   %esi,%esi\n/tmp/k.c:12 (discriminator 3)\n  10:\tjne 10 <f+0x10>\n", "x")
	f.Add("\t.section\t.text.k,\"ax\",\n.L_x_0:\n/*0000*/ LDG R1 ;\n/*0010*/ BRA `(.L_x_0) ;\n", "\t.section\t.text.k,\"ax\",\n.L_x_0:\n/*0000*/ STG R1 ;\n/*0010*/ BRA `(.L_x_0) ;\n")
	f.Add("\t.section\t.text.k,\n/*0000*/ "+strings.Repeat("A", 400)+" ;", "\xff")
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, parse := range []func(string) map[string]listing{parseSASS, parseObjdump} {
			a, b := parse(before), parse(after)
			for name := range a {
				all, found := compareFromHottest(a[name], b[name], map[int]int{16: 1}, nil)
				if found != nil && (found.Baseline.First < 1 || found.Baseline.Last > len(a[name]) || found.Candidate.Last > len(b[name])) {
					t.Errorf("%+v in %d and %d instructions", found, len(a[name]), len(b[name]))
				}
				diff, cut := gates.ClipDiff(all, diffLines)
				if n := a[name].count().All(); n != len(a[name]) || n > strings.Count(before, "\n")+1 {
					t.Errorf("%d of %d instructions", n, len(a[name]))
				}
				if len(diff) > gates.MaxCodeDiff || cut < 0 || strings.Count(diff, "\n") >= diffLines {
					t.Errorf("a diff of %d bytes, %d left out", len(diff), cut)
				}
				for _, i := range a[name] {
					if strings.ContainsAny(i.Text, "\n\r") || len(i.Text) > maxInstruction+len("…") {
						t.Errorf("%q is no line", i.Text)
					}
				}
			}
		}
	})
}
