package checkout

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// repository makes a repository with one commit on main and a branch that changes, adds and removes
// files.
func repository(t *testing.T) *Repo {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q", "-b", "main")
	write("k/one/kernel.yaml", "name: one")
	write("k/one/one.c", "old")
	write("k/one/gone.c", "gone")
	write("k/oneself/kernel.yaml", "name: oneself")
	write(".gitignore", "*.o\n")
	if err := os.Chmod(filepath.Join(dir, "k/one/one.c"), 0o755); err != nil {
		t.Fatal(err)
	}
	git("add", "-A")
	git("commit", "-qm", "first")
	git("switch", "-qc", "topic")
	write("k/one/one.c", "new")
	git("rm", "-q", "k/one/gone.c")
	git("commit", "-qam", "second")
	write("k/one/sub/ümlaut.c", "untracked")
	write("k/one/one.o", "ignored")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "k/one/link.c")); err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), filepath.Join(dir, "k"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestChanged(t *testing.T) {
	r := repository(t)
	base, err := r.MergeBase(t.Context(), "main", workTree)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		head string
		want []string
	}{
		{"topic", []string{"k/one/gone.c", "k/one/one.c"}},
		{workTree, []string{"k/one/gone.c", "k/one/link.c", "k/one/one.c", "k/one/sub/ümlaut.c"}},
	} {
		got, err := r.Changed(t.Context(), base, c.head)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("head %q: got %q, %v; want %q", c.head, got, err, c.want)
		}
	}
}

// TestRoot checks that all branches that left main have main's first commit.
func TestRoot(t *testing.T) {
	r := repository(t)
	root, err := r.Root(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	for _, rev := range []string{"topic", root} {
		if got, err := r.Root(t.Context(), rev); got != root || err != nil {
			t.Errorf("the first commit of %s is %q, %v; want %q", rev, got, err, root)
		}
	}
	if base, err := r.MergeBase(t.Context(), root, "topic"); base != root || err != nil {
		t.Errorf("topic does not stand on %s: %q, %v", root, base, err)
	}
	if _, err := r.Root(t.Context(), "nowhere"); err == nil {
		t.Error("a branch that is not there has a first commit")
	}
}

func TestExport(t *testing.T) {
	r := repository(t)
	for _, c := range []struct {
		rev  string
		want map[string]string
	}{
		{"main", map[string]string{"one.c": "old", "gone.c": "gone", "kernel.yaml": "name: one"}},
		{"topic", map[string]string{"one.c": "new", "kernel.yaml": "name: one"}},
	} {
		t.Run(c.rev, func(t *testing.T) {
			checkExport(t, r, c.rev, c.want)
		})
	}
	t.Run("work tree, without the link", func(t *testing.T) {
		if err := os.Remove(filepath.Join(r.Dir(), "k/one/link.c")); err != nil {
			t.Fatal(err)
		}
		checkExport(t, r, workTree, map[string]string{"one.c": "new", "kernel.yaml": "name: one", "sub/ümlaut.c": "untracked"})
	})
}

func checkExport(t *testing.T, r *Repo, rev string, want map[string]string) {
	t.Helper()
	to := t.TempDir()
	if err := r.Export(t.Context(), rev, "k/one", to, func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(to, path)
		got[rel] = string(text)
		return err
	})
	if err != nil || len(got) != len(want) {
		t.Fatalf("got %v, %v; want %v", got, err, want)
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s is %q, want %q", name, got[name], text)
		}
	}
	if info, err := os.Stat(filepath.Join(to, "one.c")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("a file that may be executed is exported as %v, %v", info.Mode(), err)
	}
}

// TestLinksAreLeftOut checks that a link is not a source: it could lead to any file of the host.
func TestLinksAreLeftOut(t *testing.T) {
	r := repository(t)
	for _, rev := range []string{workTree, "main"} {
		to := t.TempDir()
		err := r.Export(t.Context(), rev, "k/one", to, func(string) bool { return true })
		if _, link := os.Lstat(filepath.Join(to, "link.c")); err != nil || !errors.Is(link, fs.ErrNotExist) {
			t.Errorf("rev %q: %v, the link %v", rev, err, link)
		}
		if _, err := os.Lstat(filepath.Join(to, "one.c")); err != nil {
			t.Errorf("rev %q: %v", rev, err)
		}
	}
	if _, err := r.Read(t.Context(), workTree, "k/one/link.c"); err == nil || !strings.Contains(err.Error(), "k/one/link.c: it is not a regular file") {
		t.Errorf("got %v", err)
	}
}

func TestKernelsAndRead(t *testing.T) {
	r := repository(t)
	for _, rev := range []string{workTree, "main"} {
		got, err := r.Kernels(t.Context(), rev)
		if want := []string{"k/one", "k/oneself"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("rev %q: got %q, %v; want %q", rev, got, err, want)
		}
		if _, err := r.Read(t.Context(), rev, "k/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("rev %q: reading what is not there gave %v", rev, err)
		}
	}
	// A failed query does not mean that there is no such file.
	if _, err := r.Read(t.Context(), "absent", "k/one/kernel.yaml"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading at a revision that is not there gave %v", err)
	}
	c, err := r.Describe(t.Context(), workTree)
	if err != nil || c.Branch != "topic" || !c.Dirty || len(c.SHA) != 40 {
		t.Errorf("got %+v, %v", c, err)
	}
	if base, err := r.DefaultBase(t.Context()); err != nil || base != "main" {
		t.Errorf("got %q, %v", base, err)
	}
}

func TestObjects(t *testing.T) {
	r := repository(t)
	objects := func(rev string, names ...string) string {
		t.Helper()
		text, err := r.Objects(t.Context(), rev, names...)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if a, b := objects("main", "k/one"), objects("topic", "k/one"); a == "" || a == b {
		t.Errorf("a folder that changed is %q before and after", a)
	}
	if a, b := objects("main", "k/oneself", "absent"), objects("topic", "k/oneself"); a == "" || a != b {
		t.Errorf("a folder that did not change is %q, then %q", a, b)
	}
	if _, err := r.Objects(t.Context(), "absent", "k/one"); err == nil {
		t.Error("a revision that is not there has objects")
	}
}

func TestReadAll(t *testing.T) {
	r := repository(t)
	got, err := r.ReadAll(t.Context(), "topic", []string{"k/one/one.c", "k/one/gone.c", "k/oneself/kernel.yaml"})
	if err != nil || len(got) != 2 || string(got["k/one/one.c"]) != "new" || string(got["k/oneself/kernel.yaml"]) != "name: oneself" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := r.ReadAll(t.Context(), "topic", nil); err != nil || len(got) != 0 {
		t.Errorf("of no files: %q, %v", got, err)
	}
	if _, err := r.ReadAll(t.Context(), "absent", []string{"k/one/one.c"}); err == nil {
		t.Error("a revision that is not there has files")
	}
}

func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct{ out, want, fault string }{
		"plain":     {"aa blob 3\nabc\n", "blob abc", ""},
		"empty":     {"aa blob 0\n\n", "blob ", ""},
		"a tree":    {"aa tree 3\nabc\n", "tree abc", ""},
		"gone":      {"aa missing\n", "gone", ""},
		"not asked": {"bb missing\n", "", `says "bb missing"`},
		"two":       {"aa ambiguous\n", "", `says "aa ambiguous"`},
		"negative":  {"aa blob -1\n", "", "says"},
		"no number": {"aa blob x\n", "", "says"},
		"cut short": {"aa blob 9\nabc\n", "", "ended early"},
		"no end":    {"aa blob 3\nabc", "", "ended early"},
		"nothing":   {"", "", "ended early"},
	} {
		rd, got := &reader{in: nowhere{io.Discard}, out: bufio.NewReader(strings.NewReader(c.out))}, ""
		err := rd.each([]string{"aa"}, func(_ int, a answer) error {
			if a.id == "" {
				got = "gone"
				return nil
			}
			return rd.content(a, func(content io.Reader) error {
				data, err := io.ReadAll(content)
				got = a.kind + " " + string(data)
				return err
			})
		})
		if fault := fmt.Sprint(err); c.fault == "" && got != c.want || (c.fault == "") != (err == nil) || !strings.Contains(fault, c.fault) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

type nowhere struct{ io.Writer }

func (nowhere) Close() error { return nil }

// BenchmarkExport compares with starting one or two processes for each file.
func BenchmarkExport(b *testing.B) {
	dir := b.TempDir()
	for i := range 60 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.c", i)), bytes.Repeat([]byte("x"), 1000*i), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-qm", "x"}} {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	r, to := &Repo{dir: dir}, b.TempDir()
	var each, all time.Duration
	for b.Loop() {
		start := time.Now()
		for i := range 60 {
			if _, err := r.Read(b.Context(), "main", fmt.Sprintf("f%d.c", i)); err != nil {
				b.Fatal(err)
			}
		}
		each += time.Since(start)
		start = time.Now()
		if err := r.Export(b.Context(), "main", ".", to, func(string) bool { return true }); err != nil {
			b.Fatal(err)
		}
		all += time.Since(start)
	}
	b.ReportMetric(float64(each)/float64(all), "x-faster")
}
