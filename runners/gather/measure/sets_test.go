package measure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
)

const including = `version: 1
name: scale
mode: cpu
entry: scale
source: scale.c
include: [<lib>]
arguments:
  - {name: y, dtype: f32, access: out, shape: [N]}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 0.1}
shapes: {one: {N: 10}}
`

func write(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func job(t *testing.T) runners.Job {
	t.Helper()
	m, err := manifest.Parse("k/kernel.yaml", []byte(including))
	if err != nil {
		t.Fatal(err)
	}
	return runners.Job{Key: "k", Manifest: m, Candidate: runners.Side{Dir: t.TempDir(), Variant: "default"}, Baseline: &runners.Side{Dir: t.TempDir(), Variant: "default"}}
}

// TestLayIn checks that both sides get the headers, and that the record says which ones they were.
func TestLayIn(t *testing.T) {
	j := job(t)
	lib := write(t, t.TempDir(), map[string]string{"include/lib/a.h": "// a\n", "include/b.h": "// b\n", "VERSION": "4.2.1\n"})
	if err := os.Symlink("lib/a.h", filepath.Join(lib, "include/alias.h")); err != nil {
		t.Fatal(err)
	}
	write(t, j.Baseline.Dir, map[string]string{".sets/lib/b.h": "// the base's own, which is nobody's set\n"})
	sets := IncludeSets{"lib": filepath.Join(lib, "include")}
	first, err := sets.layIn(j, "the runner gpu1")
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []runners.Side{j.Candidate, *j.Baseline} {
		for name, want := range map[string]string{"lib/a.h": "// a\n", "b.h": "// b\n", "alias.h": "// a\n"} {
			file := filepath.Join(side.Dir, ".sets/lib", name)
			text, err := os.ReadFile(file)
			if err != nil || string(text) != want {
				t.Errorf("%s is %q (%v)", name, text, err)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("%s: %v (%v)", name, info.Mode(), err)
			}
		}
	}
	if !strings.HasPrefix(first["<lib>"], "4.2.1, sha256 ") || len(first) != 1 {
		t.Errorf("it was %v", first)
	}
	alike := j
	alike.Baseline = &runners.Side{Dir: j.Candidate.Dir, Variant: "default"}
	if same, err := sets.layIn(alike, ""); err != nil || same["<lib>"] != first["<lib>"] {
		t.Errorf("two variants of one folder: %v (%v)", same, err)
	}
	again, err := sets.layIn(j, "")
	if err != nil || again["<lib>"] != first["<lib>"] {
		t.Errorf("%v, then %v (%v)", first, again, err)
	}
	write(t, lib, map[string]string{"include/lib/a.h": "// another\n"})
	if other, err := sets.layIn(j, ""); err != nil || other["<lib>"] == first["<lib>"] {
		t.Errorf("another header is the same set: %v (%v)", other, err)
	}
}

// TestSetsThatCannotBeHad checks that a runner without the set reports the set, its own name and
// what to add, and that nothing leads out of a set.
func TestSetsThatCannotBeHad(t *testing.T) {
	j := job(t)
	_, err := IncludeSets{"other": "/opt/other"}.layIn(j, "the runner gpu1")
	want := "k/kernel.yaml includes the set <lib>, which the runner gpu1 does not have (it has other): install the headers there and add --include lib=FOLDER to its command, or in the bot's configuration runner: {includes: {lib: FOLDER}}"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	secret := write(t, t.TempDir(), map[string]string{"secret.h": "// secret\n", "deep/x.h": "// x\n"})
	for name, link := range map[string]string{"a file": secret + "/secret.h", "up": "../../../../../../../../etc/passwd", "a folder": secret + "/deep"} {
		lib := write(t, t.TempDir(), map[string]string{"a.h": "// a\n"})
		if err := os.Symlink(link, filepath.Join(lib, "link.h")); err != nil {
			t.Fatal(err)
		}
		if _, err := (IncludeSets{"lib": lib}).layIn(j, "x"); err == nil || !strings.Contains(err.Error(), "link.h") {
			t.Errorf("%s: a link out of the set is followed (%v)", name, err)
		}
	}
	if _, err := (IncludeSets{"lib": t.TempDir()}).layIn(j, "x"); err == nil || !strings.Contains(err.Error(), "the folder is empty") {
		t.Errorf("an empty set: %v", err)
	}
	for name, sets := range map[string]IncludeSets{"no folder": {"lib": "/nowhere/at/all"}, "a path from here": {"lib": "include"}, "a name with steps": {"../lib": "/tmp"}, "a file": {"lib": secret + "/secret.h"}} {
		if err := sets.Check(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestIncludeSetVersions checks that a set without a version has none, and that git's version
// counts if there is no file.
func TestIncludeSetVersions(t *testing.T) {
	bare := write(t, t.TempDir(), map[string]string{"include/a.h": "// a\n"})
	if set, err := ReadIncludeSet(filepath.Join(bare, "include")); err != nil || set.Version != "" || !strings.HasPrefix(set.String(), "sha256 ") || set.Files != 1 {
		t.Errorf("%+v (%v)", set, err)
	}
	odd := write(t, t.TempDir(), map[string]string{"a.h": "// a\n", "VERSION": "\x1b[31m1\n"})
	if set, err := ReadIncludeSet(odd); err != nil || set.Version != "" {
		t.Errorf("%+v (%v)", set, err)
	}
}
