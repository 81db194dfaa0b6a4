package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLookups checks that every path that a program names is reported, whether or not it exists,
// and whichever call names it.
func TestLookups(t *testing.T) {
	needSandbox(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "here.txt"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := shell("cat here.txt; cat ../missing.txt; test -e /etc/passwd; test -d /repository/kernels; ls -f .; cd sub 2>/dev/null; ln -s ../aim /tmp/x; exit 0")
	s.Dir, s.Places, s.Watch = "/repository/kernels/k", []Place{{Host: dir, Inside: "/repository/kernels/k"}}, true
	r, out := run(t, s)
	if !r.OK() || !strings.HasPrefix(out, "text") {
		t.Fatalf("%+v: %s", r, out)
	}
	for _, want := range []string{"/repository/kernels/k/here.txt", "/repository/kernels/missing.txt", "/etc/passwd", "/repository/kernels/k/sub"} {
		if !slices.Contains(r.Lookups, want) {
			t.Errorf("%s is not among the lookups %q", want, r.Lookups)
		}
	}
	if !slices.ContainsFunc(r.Lookups, func(p string) bool { return strings.HasSuffix(p, "/aim") }) {
		t.Errorf("the target of a link is not among the lookups %q", r.Lookups)
	}
	for path, opened := range map[string]bool{"/repository/kernels/k/here.txt": true, "/repository/kernels/k": true, "/etc/passwd": false, "/repository/kernels": false} {
		if slices.Contains(r.Opened, path) != opened {
			t.Errorf("%s was opened: %v, want %v (%q)", path, !opened, opened, r.Opened)
		}
	}
	if r.LookupsCut {
		t.Error("lookups were cut")
	}
	s.Watch = false
	if r, _ := run(t, s); r.Lookups != nil {
		t.Errorf("nobody asked for the lookups %q", r.Lookups)
	}
}

// TestPlaces checks that a host's file is visible at the path of its place and nowhere else, and
// that the host name is the requested one.
func TestPlaces(t *testing.T) {
	needSandbox(t)
	outer, inner := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(inner, "file"), []byte("inner"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(outer, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := shell("cat /a/b/in/file; cat " + inner + "/file; echo x > /a/b/in/file; uname -n")
	s.Places, s.Host = []Place{{Host: inner, Inside: "/a/b/in"}, {Host: outer, Inside: "/a/b"}}, "elsewhere"
	r, out := run(t, s)
	if !r.OK() || !strings.HasPrefix(out, "inner") || !strings.HasSuffix(out, "elsewhere\n") ||
		!strings.Contains(out, "No such file") || !containsAny(out, "Read-only file system|cannot create") {
		t.Errorf("%+v: %s", r, out)
	}
	s.Args[2], s.Places = "echo made > /a/out/file", []Place{{Host: inner, Inside: "/a/out", Write: true}}
	if r, out := run(t, s); !r.OK() {
		t.Errorf("%+v: %s", r, out)
	}
	if made, err := os.ReadFile(filepath.Join(inner, "file")); string(made) != "made\n" {
		t.Errorf("what was written is %q, %v", made, err)
	}
	s.Args[2], s.Places = "ls -A /own/a; echo x > /own/a/file && cat /own/a/file", []Place{{Inside: "/own/a"}}
	if r, out := run(t, s); !r.OK() || out != "x\n" {
		t.Errorf("an empty folder: %+v: %s", r, out)
	}
	// A place that covers a part of a Read path may lie below /tmp.
	s.Read, s.Args[2] = append(s.Read, outer), "cat "+outer+"/in/file"
	s.Places = []Place{{Host: inner, Inside: filepath.Join(outer, "in")}}
	if r, out := run(t, s); !r.OK() || out != "made\n" {
		t.Errorf("%+v: %s", r, out)
	}
	for _, bad := range []Place{{Host: inner, Inside: "/tmp/x"}, {Host: inner, Inside: outer}, {Host: inner, Inside: "a"}, {Host: inner, Inside: "/a/../b"}, {Host: "/nothing", Inside: "/a"}, {Inside: "/tmp/x"}, {Host: inner, Inside: "/"}} {
		s.Places = []Place{bad}
		if _, err := Run(t.Context(), s); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
