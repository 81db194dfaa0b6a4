package sandbox

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWritePaths(t *testing.T) {
	needSandbox(t)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("kept", "old")
	write("changed", "old")
	write("removed", "old")
	write("sub/deep", "old")
	if err := os.Symlink("kept", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat("d/", 70)
	s := shell("cd " + dir + ` && cat link && echo new > changed && rm removed && mkdir made && echo new > made/file &&
		echo more >> sub/deep && ln -s /etc/passwd leak && mkfifo pipe && truncate -s 1G hole &&
		mkdir -p ` + deep + ` && mkdir $(printf '\377') && touch $(printf '\377')/x && chmod 0 made/file`)
	s.Write = []string{dir}
	s.Limits.Disk = 1 << 30
	r, out := run(t, s)
	if !r.OK() || out != "old" {
		t.Fatalf("got %+v; it printed %q", r, out)
	}
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || d.Type() != 0 || name == "hole" {
			got[name] = d.Type().String()
			return err
		}
		if err := os.Chmod(path, 0o600); err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		got[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"kept": "old", "changed": "new\n", "removed": "old", "sub/deep": "oldmore\n", "made/file": "new\n", "link": "L---------",
	}
	refused := strings.Join(r.Refused, "\n")
	for _, name := range []string{"leak", "pipe", "\xff"} {
		if !strings.Contains(refused, filepath.Join(dir, name)+" was not brought back") {
			t.Errorf("%s is not named in %q", name, r.Refused)
		}
	}
	if !strings.Contains(refused, "it lies too deep") {
		t.Errorf("the deep directory is not named in %q", r.Refused)
	}
	delete(got, "hole")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("wrong files on the host (-want +got):\n%s", d)
	}
}

func TestWritePathsLimit(t *testing.T) {
	needSandbox(t)
	dir := t.TempDir()
	s := shell("cd " + dir + " && for i in 1 2 3; do truncate -s 3M hole$i; done")
	s.Write = []string{dir}
	s.Limits.Disk = 8 << 20
	r, _ := run(t, s)
	if want := []string{dir + "/hole3 was not brought back: it is too large"}; !cmp.Equal(r.Refused, want) {
		t.Errorf("got %q, want %q", r.Refused, want)
	}
}

func TestPaths(t *testing.T) {
	needSandbox(t)
	dir := t.TempDir()
	for _, d := range []string{"real/inner", "real/inner/out"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "real/inner/file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"one": "two", "two": filepath.Join(dir, "real")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	named := filepath.Join(dir, "one/inner")
	s := shell("cat " + named + "/file; ls " + dir + "; touch " + named + "/out/made; touch " + named + "/no 2>/dev/null || echo refused")
	s.Read = append(s.Read, named)
	s.Write = []string{filepath.Join(named, "out")}
	r, out := run(t, s)
	if !r.OK() || out != "textone\nreal\ntwo\nrefused\n" {
		t.Errorf("got %+v, %q", r, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "real/inner/out/made")); err != nil {
		t.Error(err)
	}
}

// TestDriversNeeds makes the requests that libcuda makes before it starts: a Unix socket and a name
// for its thread. A program without a device gets neither, and a program with one gets no other
// socket.
func TestDriversNeeds(t *testing.T) {
	needSandbox(t)
	const program = `import socket
def ask(name, what):
    try:
        what()
        print(name, "granted")
    except OSError:
        print(name, "refused")
ask("unix", lambda: socket.socket(socket.AF_UNIX))
ask("inet", lambda: socket.socket(socket.AF_INET))
ask("vsock", lambda: socket.socket(40))
ask("comm", lambda: open("/proc/self/comm", "w").write("x"))
`
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("there is no /usr/bin/python3 to ask with")
	}
	for _, c := range []struct {
		devices []string
		want    string
	}{
		{nil, "unix refused\ninet refused\nvsock refused\ncomm refused\n"},
		{[]string{"/dev/tty"}, "unix granted\ninet refused\nvsock refused\ncomm granted\n"},
	} {
		s := shell("")
		s.Args, s.Devices = []string{python, "-c", program}, c.devices
		if r, out := run(t, s); !r.OK() || out != c.want {
			t.Errorf("with devices %v: got %+v, %q, want %q", c.devices, r, out, c.want)
		}
	}
}

// TestDevices opens a terminal that does not exist: only the terminal driver answers with this
// error.
func TestDevices(t *testing.T) {
	needSandbox(t)
	s := shell("exec 3</dev/tty")
	s.Devices = []string{"/dev/tty"}
	if r, out := run(t, s); r.OK() || !strings.Contains(out, "No such device or address") {
		t.Errorf("got %+v, %q", r, out)
	}
}
