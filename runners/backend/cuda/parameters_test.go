package cuda

import (
	"os"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// manifestWith is the test's manifest with some words replaced by others, in pairs.
func manifestWith(t *testing.T, words ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer(words...).Replace(string(text))
	if changed == string(text) {
		t.Fatalf("nothing of %q is in the manifest", words)
	}
	return changed
}

const onlyBuilt = "version: 1\ngates:\n  ptxas: {registers: \"<= 32\"}\nrules:\n  - name: default\n"

// What would be launched with other parameters than it has is not launched: it does not count as built.
func TestParametersAreThoseOfTheCode(t *testing.T) {
	needsCompiler(t)
	const count = "  - {name: N, dtype: i32, access: scalar, value: N}\n"
	for name, test := range map[string]struct {
		words []string
		want  string
		table string
	}{
		"an argument is missing": {
			[]string{count, ""},
			"the kernel scale takes 3 parameters and the manifest passes 2: parameter 2 is 4 bytes at offset 16 in the code, none in the manifest; compare the manifest's arguments with the kernel's declaration",
			"parameter 2: in the code 4 bytes at offset 16; in the manifest none",
		},
		"one too many": {
			[]string{count, count + strings.Replace(count, "name: N", "name: M", 1)},
			"the kernel scale takes 3 parameters and the manifest passes 4: parameter 3 is none in the code, M (i32): 4 bytes at offset 20 in the manifest",
			"parameter 3: in the code none; in the manifest M (i32): 4 bytes at offset 20",
		},
		"another size": {
			[]string{"dtype: i32", "dtype: i64"},
			"the kernel scale takes 3 parameters and the manifest passes 3: parameter 2 is 4 bytes at offset 16 in the code, N (i64): 8 bytes at offset 16 in the manifest",
			"parameter 2: in the code 4 bytes at offset 16; in the manifest N (i64): 8 bytes at offset 16",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, v := trial{manifest: manifestWith(t, test.words...), policy: onlyBuilt, baseline: around(baselineBody), candidate: around(fasterBody), arch: "sm_90"}.gather(t)
			if v.Outcome == gates.Pass || !strings.Contains(e.Candidate.Error, test.want) || e.Candidate.OK {
				t.Fatalf("%s (%s): %s\n%s", v.Outcome, v.Reason, v.Summary, e.Candidate.Error)
			}
			d := e.Candidate.Diagnostics
			if len(d) < 3 || d[0].Severity != "note" || d[0].File != "scale.cu" || d[0].Line != 1 || d[len(d)-1].Severity != "error" || d[len(d)-1].Message != test.table {
				t.Errorf("the table is %+v", d)
			}
		})
	}
}

// A template that nothing instantiates goes through the build by its C++ name, and the symbol that was found is launched.
func TestEntryOfATemplate(t *testing.T) {
	needsCompiler(t)
	source := "namespace ns { template <int By, typename T> __global__ void scale(const T *x, T *y, int N) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < N) y[i] = By * x[i]; } }\n"
	e, v := trial{
		manifest: manifestWith(t, "entry: scale\n", "entry: ns::scale<2, float>\n"), policy: onlyBuilt,
		baseline: source, candidate: strings.Replace(source, "By * x[i]", "x[i] * By + 0", 1), arch: "sm_89",
	}.gather(t)
	if v.Outcome != gates.Pass || !e.Candidate.OK || e.Candidate.EntryLine != 1 || *e.Candidate.Resources.CodeSize == 0 {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}
