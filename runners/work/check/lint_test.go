package check_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/work/check"
)

const lintManifest = `version: 1
name: scale
mode: cpu
arguments: [{name: y, dtype: f32, access: out, shape: [N]}]
reference: {source: reference.c, entry: truth}
tolerance: {abs: 1}
shapes: {small: {N: 10}}
source: scale.c
entry: scale
`

const lintPolicy = `version: 1
gates:
  correctness: {shapes: [small], norm_error: "<= 1%"}
  performance: {guard: {shapes: [small], speedup: ">= -2%"}}
rules: [{name: default}]
`

// TestLintAcross checks that missing references between files are reported with file, line and
// field, whatever the files are called.
func TestLintAcross(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{".git", "csrc"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	lint := func(manifest, policy string) (string, error) {
		for name, text := range map[string]string{"scale.yaml": manifest, "rules.yaml": policy, "scale.c": "", "reference.c": "", "csrc/far.c": ""} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		err := check.Lint(&out, []string{filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "scale.yaml")})
		return strings.ReplaceAll(out.String(), dir+"/", ""), err
	}
	out, err := lint(lintManifest, lintPolicy)
	if want := "scale.yaml: ok: kernel scale, cpu, shapes small, variants default\nrules.yaml: ok: policy with the rules default\n"; err != nil || out != want {
		t.Errorf("%v\n%s", err, out)
	}
	// A warning is no mistake.
	out, err = lint(strings.Replace(lintManifest, "source: scale", "limits: {N: 1..1000000}\nsecret: {N: 1..3000}\nsource: scale", 1), lintPolicy)
	if want := "scale.yaml:9:13: warning: secret.N: covers 57% of limits.N 1..1000000, and 67% is required: "; err != nil || !strings.HasPrefix(out, want) || !strings.Contains(out, "scale.yaml: ok:") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := lint(strings.Replace(lintManifest, "source: scale.c", "source: far.c\nroot: csrc", 1), lintPolicy); err != nil {
		t.Errorf("with its source elsewhere: %v", err)
	}
	for name, c := range map[string]struct{ manifest, policy, want string }{
		"a source elsewhere": {strings.Replace(lintManifest, "source: scale.c", "source: near.c\nroot: csrc", 1), lintPolicy, "scale.yaml:8:9: source: there is no file near.c in csrc (write its name, or add it)"},
		"a source":           {strings.Replace(lintManifest, "source: scale.c", "source: skale.c", 1), lintPolicy, "scale.yaml:8:9: source: there is no file skale.c beside the manifest (write its name, or add it)"},
		"a reference":        {strings.Replace(lintManifest, "reference.c", "truth.c", 1), lintPolicy, "scale.yaml:5:21: reference.source: there is no file truth.c beside the manifest (write its name, or add it)"},
		"a shape":            {lintManifest, strings.Replace(lintPolicy, "correctness: {shapes: [small]", "correctness: {shapes: [smal]", 1), `rules.yaml:3:25: gates.correctness.shapes: no manifest has the shape "smal" (they have small)`},
		"a timed shape":      {lintManifest, strings.Replace(lintPolicy, "guard: {shapes: [small]", "guard: {shapes: [large]", 1), `rules.yaml:4:33: gates.performance.guard.shapes: no manifest has the shape "large" (they have small)`},
		"a shape of a variant that nothing is gated by": {
			strings.NewReplacer("small: {N: 10}", "small: {N: 10}, large: {N: 64}", "source: scale.c", "variants: {tight: {source: scale.c, limits: {N: 1..20}}, any: {source: scale.c}}\ndefault_variant: tight").Replace(lintManifest),
			strings.Replace(lintPolicy, "guard: {shapes: [small]", "guard: {shapes: [small, large]", 1),
			`rules.yaml:4:33: gates.performance.guard.shapes: the shape "large" is outside the limits of the variant tight of scale, which a change is gated by (name other shapes, or widen its limits)`,
		},
	} {
		if _, err := lint(c.manifest, c.policy); err == nil || strings.ReplaceAll(err.Error(), dir+"/", "") != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestLintTopFolder checks that lint reports a manifest in the repository's top folder, which gates
// nothing.
func TestLintTopFolder(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{".git", "k"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"kernel.yaml", "k/kernel.yaml", "scale.c", "k/scale.c", "reference.c", "k/reference.c"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(lintManifest), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := check.Lint(io.Discard, []string{filepath.Join(dir, "k")}); err != nil {
		t.Errorf("in a folder: %v", err)
	}
	err := check.Lint(io.Discard, []string{dir})
	if want := "kernel.yaml:1:1: a manifest in the repository's top folder gates no kernel"; err == nil || !strings.HasPrefix(err.Error(), dir+"/"+want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLintSwapped checks that arguments in a different order than the kernel's parameters are found by their names.
func TestLintSwapped(t *testing.T) {
	const manifest = `version: 1
name: scale
mode: cpu
arguments:
  - {name: y, dtype: f32, access: out, shape: [R, C]}
  - {name: rows, dtype: i32, access: scalar, value: R}
  - {name: cols, dtype: i32, access: scalar, value: C}
reference: {source: reference.c, entry: truth}
tolerance: {abs: 1}
shapes: {small: {R: 10, C: 20}}
source: scale.c
entry: scale
`
	for _, c := range []struct{ name, source, want string }{
		{"the same order", "void scale(float *y, int rows, int cols) { y[0] = rows; }", ""},
		{"the other order", "static int one(int cols) { return 1; }\nvoid\nscale(float *y, int cols, int rows) { y[0] = rows; }",
			"kernel.yaml:5:3: arguments[1].name: rows is parameter 3 of scale in scale.c, and the manifest passes it as number 2 (write the arguments in this order: y, cols, rows)"},
		{"other names", "void scale(float *out, int r, int c) { out[0] = r; }", ""},
		{"another number", "void scale(float *y, int cols) { y[0] = cols; }", ""},
		{"nothing to compare with", "#include \"scale.inc\"", ""},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"kernel.yaml": manifest, "scale.c": c.source, "reference.c": ""} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		if err := check.Lint(io.Discard, []string{filepath.Join(dir, "kernel.yaml")}); err != nil {
			got = strings.ReplaceAll(err.Error(), dir+"/", "")
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
