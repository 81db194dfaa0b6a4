package inspect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/internal/runnable"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// fakeSanitizer is a compute-sanitizer that follows a script: $log is the tool's log, and "$@" is
// the program that it is given.
func fakeSanitizer(t *testing.T, script string) Compute {
	t.Helper()
	path := filepath.Join(t.TempDir(), program)
	text := `#!/bin/sh
if [ "$1" = --version ]; then printf 'NVIDIA (R) Compute Sanitizer\nVersion 2025.3.1.0 (build 36400806) (public-release)\n'; exit; fi
options=$*
while [ "${1#--}" != "$1" ]; do [ "$1" = --log-file ] && log=$2; shift 2; done
say() { printf '========= %s\n' "$1" >>"$log"; }
` + script + "\n"
	if err := runnable.Write(path, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return Compute{Path: path, Version: "2025.3.1.0"}
}

func TestSanitizerRun(t *testing.T) {
	const clean = "say COMPUTE-SANITIZER\n\"$@\"\nstatus=$?\nsay 'ERROR SUMMARY: 0 errors'\nexit $status"
	for _, c := range []struct {
		name, script string
		args         []string
		found        string
		trouble      string
	}{
		{name: "clean", script: clean, args: []string{"true"}},
		{name: "a race", script: "say 'Error: Race reported between Write access at f()+0x1 in k.cu:3'\nsay '    and Read access at f()+0x2 in k.cu:4 [7 hazards]'\nsay 'RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)'\nexit 99",
			args: []string{"true"}, found: "race: a race between write and read of shared memory in k.cu:3 and :4 (7 hazards)"},
		{name: "a kernel that prints a clean bill", script: `"$@"`, args: []string{"echo", "========= ERROR SUMMARY: 0 errors"},
			trouble: "it ended without a summary: ========= ERROR SUMMARY: 0 errors"},
		{name: "a kernel that prints a race", script: clean, args: []string{"echo", "========= Error: Race reported between Write access at f()+0x1 in k.cu:3"}},
		{name: "a program that fails", script: clean, args: []string{"sh", "-c", "echo 'the kernel failed on the GPU' >&2; exit 1"},
			trouble: "the program under it failed (exit status 1): the kernel failed on the GPU"},
		{name: "a status without a word", script: "say 'ERROR SUMMARY: 0 errors'\nexit 99", args: []string{"true"}, trouble: "it found something and did not say what"},
		{name: "an option that it does not know", script: "echo 'Error: Unrecognised option'; exit 1", args: []string{"true"}, trouble: "Unrecognised option"},
		{name: "untracked launches", script: "say 'Internal Sanitizer Error: it did not track the launch'\nsay 'ERROR SUMMARY: 0 errors'", args: []string{"true"}, trouble: "did not track the launch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := fakeSanitizer(t, c.script).Run(t.Context(), SanitizeRequest{
				Tool: policy.Memcheck, Args: c.args, Env: []string{"PATH=/usr/bin:/bin"}, Files: sources(t, "k.cu"), Dir: t.TempDir(),
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(lines(r), "; "); got != c.found || r.Found() != (c.found != "") {
				t.Errorf("found %q, want %q", got, c.found)
			}
			if !strings.Contains(r.Trouble, c.trouble) || (r.Trouble != "") != (c.trouble != "") {
				t.Errorf("trouble %q, want %q", r.Trouble, c.trouble)
			}
		})
	}
}

// TestSanitizerEnds checks that a tool that does not end is killed with the program under it, and
// leaves nothing behind.
func TestSanitizerEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := fakeSanitizer(t, `"$@"`).Run(ctx, SanitizeRequest{Tool: policy.Racecheck, Args: []string{"sleep", "600"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: dir})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestOptions(t *testing.T) {
	for _, tool := range []policy.Sanitizer{policy.Memcheck, policy.Racecheck, policy.Initcheck, policy.Synccheck} {
		got := strings.Join(options(tool, "/tmp/log"), " ")
		want := "--tool " + string(tool) + " --log-file /tmp/log --print-limit 200 --show-backtrace device --error-exitcode 99"
		if tool == policy.Memcheck {
			want += " --report-api-errors no"
		}
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		// The recorded version knows every option.
		help, err := os.ReadFile("testdata/compute/help.txt")
		if err != nil {
			t.Fatal(err)
		}
		for word := range strings.FieldsSeq(got) {
			if strings.HasPrefix(word, "--") && !strings.Contains(string(help), word+" ") {
				t.Errorf("compute-sanitizer 2025.3.1 has no option %s", word)
			}
		}
	}
}

func TestFindSanitizer(t *testing.T) {
	right := fakeSanitizer(t, "exit 1").Path
	impostor := filepath.Join(t.TempDir(), program)
	if err := runnable.Write(impostor, []byte("#!/bin/sh\necho 'Version 1'\n")); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, c := range []struct {
		name string
		env  map[string]string
		want string
		says string
	}{
		{"on PATH", map[string]string{"PATH": "/nowhere:" + filepath.Dir(right)}, right, ""},
		{"behind another of its name", map[string]string{"PATH": filepath.Dir(impostor) + ":" + filepath.Dir(right)}, right, ""},
		{"by name", map[string]string{"KERNELGATE_COMPUTE_SANITIZER": right, "PATH": filepath.Dir(impostor)}, right, ""},
		{"not in a relative folder", map[string]string{"PATH": "."}, "", "compute-sanitizer was not found: install compute-sanitizer"},
		{"nowhere", nil, "", "compute-sanitizer was not found: install compute-sanitizer"},
		{"an impostor alone", map[string]string{"PATH": filepath.Dir(impostor)}, "", "is not NVIDIA's compute-sanitizer"},
	} {
		found, err := findSanitizer(t.Context(), func(name string) string { return c.env[name] }, root)
		if found.Path != c.want || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !errors.Is(err, ErrNoSanitizer)) {
			t.Errorf("%s: %+v, %v", c.name, found, err)
		}
		if c.want != "" && found.Version != "2025.3.1.0" {
			t.Errorf("%s: version %q", c.name, found.Version)
		}
	}
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(right, filepath.Join(home, program, program)); err != nil {
		t.Fatal(err)
	}
	if found, err := findSanitizer(t.Context(), func(name string) string { return map[string]string{"CUDA_HOME": home}[name] }, root); err != nil || found.Version == "" {
		t.Errorf("in CUDA_HOME: %+v, %v", found, err)
	}
}
