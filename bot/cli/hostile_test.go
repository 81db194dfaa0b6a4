package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/kernelgate/kernelgate/gates"
)

const sent = "kernels/sdpa_fp8/evidence/stage4.json"

func put(t *testing.T, data []byte, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func slurp(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// said returns the exit status and the output of the program.
func said(args ...string) (int, string) {
	var out bytes.Buffer
	return Run(args, &out, &out), out.String()
}

// TestHostileFiles checks that results from a stranger that are links to an endless file are
// refused without being read.
func TestHostileFiles(t *testing.T) {
	dir := t.TempDir()
	link := func(path ...string) {
		put(t, nil, append([]string{dir}, path...)...)
		file := filepath.Join(append([]string{dir}, path...)...)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/dev/zero", file); err != nil {
			t.Fatal(err)
		}
	}
	link("zero", "evidence.json")
	put(t, slurp(t, sent), dir, "verdict", "evidence.json")
	link("verdict", "verdict.json")
	for _, c := range [][]string{
		{"judge", dir + "/zero/evidence.json", "--policy", "h200"},
		{"judge", "/dev/zero", "--policy", "h200"},
		{"judge", sent, "--policy", "/dev/zero"},
		{"compare", dir + "/verdict", dir + "/verdict"},
		{"compare", dir + "/zero", dir + "/zero", "--policy", "h200"},
		{"open", dir + "/verdict"},
		{"open", dir + "/zero"},
		{"replay", dir + "/zero#1"},
	} {
		if status, text := said(c...); status != exitInput || len(text) > 2000 {
			t.Errorf("%v: status %d: %.500s", c, status, text)
		}
	}
}

// TestHostileText checks that results from a stranger cannot send control sequences to the
// terminal.
func TestHostileText(t *testing.T) {
	const evil = "\x1b]0;title\x07\u009b2J\r"
	dir := t.TempDir()
	for _, stage := range []string{"stage4", "stage5"} {
		evidence := slurp(t, "kernels/sdpa_fp8/evidence/"+stage+".json")
		put(t, evidence, dir, stage, "evidence.json")
		_, text := said("judge", "kernels/sdpa_fp8/evidence/"+stage+".json", "--policy", "h200", "--format", "json")
		var v gates.Verdict
		if err := json.Unmarshal([]byte(text), &v); err != nil || len(v.Resources) == 0 {
			t.Fatalf("%v: %.200s", err, text)
		}
		for i := range v.Resources {
			v.Resources[i].Unit = "B" + evil
		}
		verdict, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		put(t, verdict, dir, stage, "verdict.json")
	}
	put(t, []byte("{"), dir, "names", "a"+evil, "evidence.json")
	for _, c := range [][]string{
		{"compare", dir + "/stage4", dir + "/stage5"},
		{"open", dir + "/names"},
		{"judge", dir + "/names/a" + evil + "/evidence.json", "--policy", "h200"},
		{"judge", sent, "--policy", "none" + evil},
		{"replay", dir + "/names/a" + evil + "#1"},
		{evil},
	} {
		_, text := said(c...)
		if text == "" || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			t.Errorf("%q prints %q", c, text)
		}
	}
}

// TestHostilePolicyName checks that the policy name in evidence cannot make the program read an
// arbitrary file of the host.
func TestHostilePolicyName(t *testing.T) {
	dir := t.TempDir()
	put(t, []byte("void k(const float *x, float *y, int N) {}\n"), dir, "kernels", "k", "k.c")
	put(t, []byte("void k_reference(const double *x, double *y, int N) {}\n"), dir, "kernels", "k", "reference.c")
	put(t, []byte(`version: 1
name: k
mode: cpu
arguments: [{name: x, dtype: f32, access: in, shape: [N]}, {name: y, dtype: f32, access: out, shape: [N]}, {name: N, dtype: i32, access: scalar, value: N}]
reference: {source: reference.c, entry: k_reference}
tolerance: {abs: 0.001}
shapes: {small: {N: 1000}}
source: k.c
entry: k
`), dir, "kernels", "k", "kernel.yaml")
	put(t, []byte("secret: words\n"), dir, "..", filepath.Base(dir)+"-outside.yaml")
	if err := os.Symlink("../"+filepath.Base(dir)+"-outside.yaml", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	put(t, []byte("secret: inside\n"), dir, "inside.yaml")
	git := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@x"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("add", "kernels")
	git("commit", "-q", "-m", "x")
	commit := git("rev-parse", "HEAD")
	for _, c := range []struct{ policy, commit, want string }{
		{"/etc/passwd", commit, "no YAML file of this repository"},
		{"/dev/zero", commit, "no YAML file of this repository"},
		{dir + "/inside.yaml", commit, "no YAML file of this repository"},
		{"../" + filepath.Base(dir) + "-outside.yaml", commit, "no YAML file of this repository"},
		{".git/config", commit, "no YAML file of this repository"},
		{"link.yaml", commit, "escapes"},
		{"inside.yaml", commit, "secret"}, // it is read, and its errors are reported
		{"cpu", "--output=/tmp/x", "is no commit"},
	} {
		var e map[string]any
		if err := json.Unmarshal(slurp(t, "kernels/sdpa_fp8/evidence/broken.json"), &e); err != nil {
			t.Fatal(err)
		}
		at := e["provenance"].(map[string]any)
		at["command"] = "kernelgate check --policy " + c.policy + " k"
		at["base"], at["head"] = map[string]any{"sha": c.commit}, map[string]any{"sha": c.commit}
		e["kernel"] = "k"
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		status, text := said("replay", put(t, data, dir, "sent.json")+"#1", "--dir", dir)
		if status != exitInput || !strings.Contains(text, c.want) || strings.Contains(text, "words") || strings.Contains(text, "root:") {
			t.Errorf("%s at %s: status %d: %.500s", c.policy, c.commit, status, text)
		}
	}
}
