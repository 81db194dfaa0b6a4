package checkout

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// A forge makes objects that no git user would make.
type forge struct {
	*testing.T
	dir string
}

func newForge(t *testing.T) forge {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	f := forge{t, t.TempDir()}
	f.git(nil, "init", "-q", "--bare")
	return f
}

func (f forge) git(stdin []byte, args ...string) string {
	f.Helper()
	cmd := exec.CommandContext(f.Context(), "git", append([]string{"-C", f.dir, "-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// object stores an object without git, which would check it and takes longer.
func (f forge) object(kind string, data []byte) string {
	f.Helper()
	whole := append(fmt.Appendf(nil, "%s %d\x00", kind, len(data)), data...)
	sum := sha1.Sum(whole)
	id := hex.EncodeToString(sum[:])
	var packed bytes.Buffer
	zip, err := zlib.NewWriterLevel(&packed, zlib.BestSpeed)
	if err != nil {
		f.Fatal(err)
	}
	_, err = zip.Write(whole)
	file := filepath.Join(f.dir, "objects", id[:2], id[2:])
	if err := errors.Join(err, zip.Close(), os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, packed.Bytes(), 0o644)); err != nil {
		f.Fatal(err)
	}
	return id
}

func (f forge) blob(text string) string {
	f.Helper()
	return f.object("blob", []byte(text))
}

// tree makes a folder from lines such as "100644 <object> name", whatever they say.
func (f forge) tree(lines ...string) string {
	f.Helper()
	var data []byte
	for _, line := range lines {
		words := strings.SplitN(line, " ", 3)
		id, err := hex.DecodeString(words[1])
		if err != nil {
			f.Fatal(err)
		}
		data = append(fmt.Appendf(data, "%s %s\x00", words[0], words[2]), id...)
	}
	return f.object("tree", data)
}

// nested makes a folder of ten equal folders, and so on: 10^depth of the innermost's entries.
func (f forge) nested(innermost string, depth int) string {
	f.Helper()
	tree := innermost
	for range depth {
		var lines []string
		for i := range 10 {
			lines = append(lines, fmt.Sprintf("40000 %s d%d", tree, i))
		}
		tree = f.tree(lines...)
	}
	return tree
}

func (f forge) commit(tree string) string {
	f.Helper()
	return f.git([]byte("x"), "commit-tree", tree)
}

func refusal(t *testing.T, what string, err error, words string) {
	t.Helper()
	var refused Refused
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %v, want a refusal with %q", what, err, words)
	}
}

// TestNestedFolders checks that a few objects that represent a billion files are refused at the
// limits, and not read to the end.
func TestNestedFolders(t *testing.T) {
	f := newForge(t)
	one, manifest := f.blob("x"), f.blob("name: x")
	base := f.commit(f.tree("100644 " + one + " a"))
	files := f.commit(f.nested(f.tree("100644 "+one+" a"), 9))
	empty := f.commit(f.nested(f.tree(), 9))
	kernels := f.commit(f.nested(f.tree("100644 "+manifest+" kernel.yaml"), 9))
	deep := f.tree("100644 " + manifest + " kernel.yaml")
	for range 110 {
		deep = f.tree("40000 " + deep + " d")
	}
	deep = f.commit(deep)
	r := OpenBare(f.dir)
	r.limits.Entries, r.limits.Changed = 100_000, 20_000 // to shorten the test

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := r.Changed(t.Context(), base, files)
	refusal(t, "a billion files", err, "the change touches more than 20000 files")
	long := f.tree("100644 " + one + " a")
	for range 4 {
		long = f.tree("40000 " + long + " " + strings.Repeat("d", 250))
	}
	_, err = r.Changed(t.Context(), base, f.commit(f.nested(long, 4)))
	refusal(t, "long names", err, "their names have more than 8 MiB")
	for range 60 {
		long = f.tree("40000 " + long + " " + strings.Repeat("d", 250))
	}
	_, err = r.Files(t.Context(), f.commit(f.nested(long, 6)), "")
	refusal(t, "a list of long names", err, "longer than 128 MiB")
	_, err = r.Changed(t.Context(), base, empty)
	refusal(t, "a billion empty folders", err, "more than 100000 files and folders")
	_, err = r.Files(t.Context(), files, "")
	refusal(t, "their list", err, "more than 100000 files and folders")
	_, err = r.Changed(t.Context(), base, deep)
	refusal(t, "a change far down", err, "more than 100 deep")
	_, err = r.Kernels(t.Context(), deep)
	refusal(t, "a kernel far down", err, "more than 100 deep")
	_, err = r.Kernels(t.Context(), kernels)
	refusal(t, "a billion kernels", err, "more than 2000 manifests")
	if found, err := r.Kernels(t.Context(), files); err != nil || len(found) > 0 {
		t.Errorf("no kernel among a billion files: %v, %v", found, err)
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 1024 {
		t.Errorf("%d MiB were taken for it", got)
	}
}

// TestLargeFolders checks that nothing of a folder that is too large is written.
func TestLargeFolders(t *testing.T) {
	f := newForge(t)
	zeros := f.blob(strings.Repeat("\x00", 8<<20))
	var many, large []string
	for i := range 40 {
		large = append(large, fmt.Sprintf("100644 %s z%02d.h", zeros, i))
	}
	one := f.blob("x")
	for i := range 20_001 {
		many = append(many, fmt.Sprintf("100644 %s f%05d.h", one, i))
	}
	for name, c := range map[string]struct{ tree, want string }{
		"one file under many names": {f.tree(large...), "k/z32.h: up to here the folder has 33 files and 264 MiB"},
		"many files":                {f.tree(many...), "k/f20000.h: up to here the folder has 20001 files"},
		"a long name":               {f.tree("100644 " + one + " " + strings.Repeat("n", 300)), "a name in it is 300 bytes long"},
	} {
		r, to := OpenBare(f.dir), t.TempDir()
		err := r.Export(t.Context(), f.commit(f.tree("40000 "+c.tree+" k")), "k", to, func(string) bool { return true })
		refusal(t, name, err, c.want)
		if left, _ := os.ReadDir(to); len(left) > 0 {
			t.Errorf("%s: %d files were written first", name, len(left))
		}
	}
	long := f.tree("100644 " + one + " x")
	for range 20 {
		long = f.tree("40000 " + long + " " + strings.Repeat("d", 60))
	}
	r := OpenBare(f.dir)
	refusal(t, "a long path", r.Export(t.Context(), f.commit(long), ".", t.TempDir(), func(string) bool { return true }), "the path is 1")
	rev := f.commit(f.tree("40000 " + f.tree("100644 "+f.blob(strings.Repeat("\x00", 3<<20))+" z.h") + " k"))
	r.limits.Written = 8 << 20
	for i, want := range []bool{true, true, false} {
		if err := r.Export(t.Context(), rev, "k", t.TempDir(), func(string) bool { return true }); (err == nil) != want {
			t.Errorf("export %d of 3 MiB: %v", i+1, err)
		}
	}
	// A file that a parser would refuse anyway is not read.
	rev = f.commit(f.tree("100644 " + f.blob(strings.Repeat("#", 17<<20)) + " kernel.yaml"))
	_, err := OpenBare(f.dir).Read(t.Context(), rev, "kernel.yaml")
	refusal(t, "a large manifest", err, "kernel.yaml: it is 17825792 bytes long")
}

// TestFileAndFolder checks that a name that is a file in one commit and a folder in the other is
// reported as a fault of the change, not of the disk.
func TestFileAndFolder(t *testing.T) {
	f := newForge(t)
	one := f.blob("x")
	file := f.commit(f.tree("100644 " + one + " a"))
	folder := f.commit(f.tree("40000 " + f.tree("100644 "+one+" b.c") + " a"))
	for _, c := range [][2]string{{file, folder}, {folder, file}} {
		r, to := OpenBare(f.dir), t.TempDir()
		all := func(string) bool { return true }
		if err := r.Export(t.Context(), c[0], ".", to, all); err != nil {
			t.Fatal(err)
		}
		refusal(t, "over another", r.Export(t.Context(), c[1], ".", to, all), "a file on one side and a folder on the other")
	}
}

// TestForgedFolders checks that folders that git itself would not make are refused: they could lead
// to a different file than the one that was compared.
func TestForgedFolders(t *testing.T) {
	f := newForge(t)
	one, two := f.blob("x"), f.blob("y")
	base := f.commit(f.tree("100644 " + one + " a"))
	for name, lines := range map[string][]string{
		"twice":    {"100644 " + one + " a", "100644 " + two + " a"},
		"up":       {"40000 " + f.tree("100644 "+one+" a") + " .."},
		"a path":   {"100644 " + one + " ../../a"},
		"no name":  {"100644 " + one + " "},
		"the same": {"40000 " + f.tree("100644 "+one+" a") + " ."},
	} {
		r := OpenBare(f.dir)
		head := f.commit(f.tree(lines...))
		_, err := r.Changed(t.Context(), base, head)
		refusal(t, name, err, "or has it twice")
		refusal(t, name, r.Export(t.Context(), head, ".", t.TempDir(), func(string) bool { return true }), "or has it twice")
	}
}

// TestChangedIsGits checks that Changed agrees with git on random trees.
func TestChangedIsGits(t *testing.T) {
	f := newForge(t)
	rng := rand.New(rand.NewPCG(1, 2))
	blobs := []string{f.blob("1"), f.blob("2"), f.blob("3")}
	names := []string{"a", "a.c", "a-b", "ä ö", "kernel.yaml", "z\nz"}
	var tree func(depth int) string
	tree = func(depth int) string {
		lines := map[string]string{} // by the key that git sorts by
		for _, name := range names {
			switch n := rng.IntN(8); {
			case n < 3 && depth > 0:
				lines[name+"/"] = fmt.Sprintf("40000 %s %s", tree(depth-1), name)
			case n < 5:
				lines[name] = fmt.Sprintf("%s %s %s", []string{"100644", "100755", "120000"}[rng.IntN(3)], blobs[rng.IntN(3)], name)
			}
		}
		var sorted []string
		for _, key := range slices.Sorted(maps.Keys(lines)) {
			sorted = append(sorted, lines[key])
		}
		return f.tree(sorted...)
	}
	r := OpenBare(f.dir)
	for range 12 {
		was, is := f.commit(tree(2)), f.commit(tree(2))
		got, err := r.Changed(t.Context(), was, is)
		if err != nil {
			t.Fatal(err)
		}
		want := split(f.git(nil, "diff", "--name-only", "--no-renames", "-z", was, is))
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("changed %q, git says %q", got, want)
		}
		files, err := r.Files(t.Context(), is, "")
		if want := split(f.git(nil, "ls-tree", "-r", "-z", "--name-only", is)); err != nil || !slices.Equal(files, want) {
			t.Fatalf("files %q (%v), git says %q", files, err, want)
		}
		var manifests, found []string
		for _, name := range files {
			if strings.HasSuffix(name, "/kernel.yaml") {
				manifests = append(manifests, name)
			}
		}
		keys, err := r.Kernels(t.Context(), is)
		for _, key := range keys {
			found = append(found, manifest.FileOf(key))
		}
		slices.Sort(manifests)
		slices.Sort(found)
		if err != nil || !slices.Equal(found, manifests) {
			t.Fatalf("manifests %q (%v), want %q", found, err, manifests)
		}
	}
}

// TestReached checks that a branch or a tag makes a commit the repository's own, and that a pull
// request does not.
func TestReached(t *testing.T) {
	f := newForge(t)
	tree := f.tree()
	ours := f.commit(tree)
	later := f.git([]byte("y"), "commit-tree", "-p", ours, tree)
	tagged, proposed := f.git([]byte("z"), "commit-tree", tree), f.git([]byte("p"), "commit-tree", "-p", later, tree)
	f.git(nil, "update-ref", "refs/heads/main", later)
	f.git(nil, "tag", "-am", "v1", "v1", tagged)
	f.git(nil, "update-ref", "refs/pull/7/head", proposed)
	r := OpenBare(f.dir)
	for sha, want := range map[string]bool{ours: true, later: true, tagged: true, proposed: false} {
		if got, err := r.Reached(t.Context(), sha); err != nil || got != want {
			t.Errorf("%s is reached: %v (%v), want %v", sha, got, err, want)
		}
	}
	if _, err := r.Reached(t.Context(), strings.Repeat("0", 40)); err == nil {
		t.Error("a commit that is not there was looked for")
	}
}

func FuzzParseTree(f *testing.F) {
	f.Add([]byte("100644 a\x0001234567890123456789"))
	f.Add([]byte("40000 a\x000123456789012345678940000 a\x0001234567890123456789"))
	f.Add([]byte("100644 a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseTree(data, 20)
		seen := map[string]bool{}
		for _, n := range list {
			if err == nil && (seen[n.name] || n.name == "" || n.name == ".." || strings.Contains(n.name, "/") || len(n.object) != 40) {
				t.Errorf("%q was read from %q", n, data)
			}
			seen[n.name] = true
		}
	})
}
