package toolchain

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/internal/runnable"
)

// fakePython stands in for python3: its pip downloads one empty wheel and notes that it did, its zipfile unpacks a
// toolkit as the wheels lay it out, with modes that let nobody but the owner in.
const fakePython = `#!/bin/sh
case "$2 $3" in
"pip --version") ;;
"pip download")
	echo x >>"$FAKE_DOWNLOADS"
	if [ -n "$FAKE_PIP_FAILS" ]; then echo "ERROR: no such host" >&2; exit 1; fi
	while [ $# -gt 0 ]; do if [ "$1" = --dest ]; then mkdir -p "$2"; : >"$2/cuda.whl"; fi; shift; done ;;
"zipfile -e")
	umask 077
	mkdir -p "$5/cuda.dist-info" "$5/nvidia/cu13/bin" "$5/nvidia/cu13/lib" "$5/nvidia/cu13/nvvm/bin" "$5/nvidia/cu13/nvvm/libdevice"
	cd "$5/nvidia/cu13"
	for tool in bin/nvcc bin/ptxas bin/cuobjdump bin/nvdisasm nvvm/bin/cicc; do printf '#!/bin/sh\n' >$tool; done
	: >lib/libcudart.so.13; : >nvvm/libdevice/libdevice.10.bc ;;
*) exit 1 ;;
esac
`

// A fetch is a place to run fetch-cuda.sh in, with nothing real around it.
type fetch struct {
	t         *testing.T
	home      string // KERNELGATE_CUDA_CACHE
	path      string // PATH
	downloads string
	env       []string
}

func newFetch(t *testing.T) *fetch {
	t.Helper()
	bin := t.TempDir()
	if err := runnable.Write(filepath.Join(bin, "python3"), []byte(fakePython)); err != nil {
		t.Fatal(err)
	}
	return &fetch{
		t:         t,
		home:      filepath.Join(t.TempDir(), "with space", "cuda"),
		path:      bin + ":" + os.Getenv("PATH"),
		downloads: filepath.Join(bin, "downloads"),
	}
}

// run returns what the script printed and its exit status.
func (f *fetch) run(args ...string) (stdout, stderr string, status int) {
	f.t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(bash, append([]string{"fetch-cuda.sh"}, args...)...)
	cmd.Env = append([]string{"PATH=" + f.path, "KERNELGATE_CUDA_CACHE=" + f.home, "FAKE_DOWNLOADS=" + f.downloads}, f.env...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		f.t.Error(err)
	}
	return out.String(), log.String(), status
}

func (f *fetch) mustSucceed() {
	f.t.Helper()
	stdout, stderr, status := f.run()
	if status != 0 || stdout != f.home+"\n" {
		f.t.Fatalf("status %d, stdout %q, want 0 and %q; stderr:\n%s", status, stdout, f.home, stderr)
	}
}

func (f *fetch) mustRefuse(want string, args ...string) {
	f.t.Helper()
	stdout, stderr, status := f.run(args...)
	if status != 3 || stdout != "" || !strings.Contains(stderr, want) {
		f.t.Errorf("status %d, stdout %q, want 3 and nothing; stderr, which should say %q:\n%s", status, stdout, want, stderr)
	}
}

func (f *fetch) wantDownloads(want int) {
	f.t.Helper()
	log, err := os.ReadFile(f.downloads)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.t.Fatal(err)
	}
	if got := bytes.Count(log, []byte("\n")); got != want {
		f.t.Errorf("%d downloads, want %d", got, want)
	}
}

// wantBeside checks what lies beside the toolkit, so that no run leaves its scraps.
func (f *fetch) wantBeside(want ...string) {
	f.t.Helper()
	files, err := os.ReadDir(filepath.Dir(f.home))
	if err != nil {
		f.t.Fatal(err)
	}
	var got []string
	for _, file := range files {
		got = append(got, file.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		f.t.Errorf("beside the toolkit: %q, want %q", got, want)
	}
}

func TestFetchInstallsOnce(t *testing.T) {
	f := newFetch(t)
	f.mustRefuse("run fetch-cuda.sh without --check", "--check")
	f.mustSucceed()
	f.mustSucceed()
	f.wantDownloads(1)
	f.wantBeside("cuda", "cuda.lock")
	if stdout, _, status := f.run("--check"); status != 0 || stdout != f.home+"\n" {
		t.Errorf("--check: status %d, stdout %q", status, stdout)
	}
	for _, tool := range []string{"bin/nvcc", "bin/ptxas", "bin/cuobjdump", "nvvm/bin/cicc"} {
		info, err := os.Stat(filepath.Join(f.home, tool))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o055 != 0o055 {
			t.Errorf("%s has mode %v: other users cannot run it", tool, info.Mode())
		}
	}
	for _, file := range []string{"lib64/libcudart.so", "wheels/cuda.dist-info"} {
		if _, err := os.Stat(filepath.Join(f.home, file)); err != nil {
			t.Error(err)
		}
	}
}

func TestFetchReplacesOtherPins(t *testing.T) {
	f := newFetch(t)
	f.mustSucceed()
	if err := os.WriteFile(filepath.Join(f.home, ".kernelgate-cuda"), []byte("nvidia-cuda-nvcc==1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f.mustSucceed()
	f.wantDownloads(2)
	f.wantBeside("cuda", "cuda.lock")
}

func TestFetchTwiceAtOnce(t *testing.T) {
	f := newFetch(t)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if stdout, stderr, status := f.run(); status != 0 || stdout != f.home+"\n" {
				t.Errorf("status %d, stdout %q, stderr %s", status, stdout, stderr)
			}
		})
	}
	both.Wait()
	f.wantDownloads(1)
}

func TestFetchClearsUpAfterAKilledRun(t *testing.T) {
	f := newFetch(t)
	if err := os.MkdirAll(f.home+".partial.killed/wheels", 0o755); err != nil {
		t.Fatal(err)
	}
	f.mustSucceed()
	f.wantBeside("cuda", "cuda.lock")
}

func TestFetchWithoutNetwork(t *testing.T) {
	f := newFetch(t)
	f.env = []string{"FAKE_PIP_FAILS=yes"}
	f.mustRefuse("(ERROR: no such host); check the network")
	f.wantBeside("cuda.lock")
}

func TestFetchWithoutPython(t *testing.T) {
	f := newFetch(t)
	bin := t.TempDir()
	for _, tool := range []string{"bash", "cat", "uname"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	f.path = bin
	f.mustRefuse("python3 not found; install python3 with pip")

	if err := runnable.Write(filepath.Join(bin, "python3"), []byte("#!"+filepath.Join(bin, "bash")+"\nexit 1\n")); err != nil {
		t.Fatal(err)
	}
	f.mustRefuse("python3 has no pip; install it")
}

func TestFetchLeavesForeignFoldersAlone(t *testing.T) {
	f := newFetch(t)
	if err := os.MkdirAll(f.home, 0o755); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(f.home, "mine")
	if err := os.WriteFile(mine, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f.mustRefuse("was not made by this script")
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
	f.wantDownloads(0)
}

func TestFetchUsage(t *testing.T) {
	if _, stderr, status := newFetch(t).run("--force"); status != 2 || !strings.Contains(stderr, "usage: ") {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
}
