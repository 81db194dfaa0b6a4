package cpu

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/internal/runnable"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
)

// newWorker is a worker that compiles what no test has compiled before.
func newWorker(t testing.TB, job runners.Job, config Config) *Worker {
	t.Helper()
	w, err := NewWorker(t.Context(), job, config)
	if err != nil {
		t.Fatal(err)
	}
	w.compiler = keep(t, w.cc, w.cc.Version)
	return w
}

// keep has a compiler called once for the same.
func keep(t testing.TB, c compiler, stamp string) keeping {
	t.Helper()
	dir := toolchaintest.Builds(t) + "-c"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return keeping{compiler: c, builds: toolchain.Cache{Dir: dir, MaxBytes: 256 << 20}, stamp: stamp}
}

// sourceFolder holds files at a path that stays the same for the same files, so that builds for a debugger, which have it in them, can
// be kept. Nobody may change them.
func sourceFolder(t testing.TB, files map[string]string) string {
	t.Helper()
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(files); err != nil {
		t.Fatal(err)
	}
	all := toolchaintest.Builds(t) + "-sources"
	dir := filepath.Join(all, hex.EncodeToString(h.Sum(nil)))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(all, 0o755); err != nil {
		t.Fatal(err)
	}
	made, err := os.MkdirTemp(all, "new-")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		file := filepath.Join(made, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	// Another test may have been first with the same.
	if err := os.Rename(made, dir); err != nil {
		os.RemoveAll(made)
		if _, err := os.Stat(dir); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// keeping is a compiler that is called once for the same sources, flags and machine, from one run of the tests to the next. What it
// made is found by a hash of all that. A refusal is not kept.
type keeping struct {
	compiler
	builds toolchain.Cache
	stamp  string // who compiles
	only   string // of a worker's folders the one whose builds are kept; empty for all
}

const logKept = ".log"

// building has a lock for every build, so that tests side by side wait for the first of them.
var building sync.Map

func (k keeping) Run(ctx context.Context, call toolchain.Compile) (string, error) {
	// What is for a debugger has the path of the sources in it.
	traced := slices.Contains(call.Args, "-g") && strings.HasPrefix(call.Dir, os.TempDir())
	if traced || k.only != "" && filepath.Base(filepath.Dir(call.Out)) != k.only {
		return k.compiler.Run(ctx, call)
	}
	before, err := contents(call.Out)
	if err != nil {
		return "", err
	}
	key, err := k.key(call, before)
	if err != nil {
		return "", err
	}
	lock, _ := building.LoadOrStore(key, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	if made, ok := k.builds.Files(key); ok {
		log := string(made[logKept])
		delete(made, logKept)
		return strings.ReplaceAll(log, "$OUT", call.Out), put(made, call.Out)
	}
	log, err := k.compiler.Run(ctx, call)
	if err != nil {
		return log, err
	}
	made, err := contents(call.Out)
	if err != nil {
		return "", err
	}
	maps.DeleteFunc(made, func(name string, data []byte) bool { old, ok := before[name]; return ok && bytes.Equal(old, data) })
	made[logKept] = []byte(strings.ReplaceAll(log, call.Out, "$OUT"))
	return log, k.builds.Keep(key, made)
}

// contents is the files of a folder.
func contents(dir string) (map[string][]byte, error) {
	all := map[string][]byte{}
	return all, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		all[name], err = os.ReadFile(path)
		return err
	})
}

// key names all that a build depends on.
func (k keeping) key(call toolchain.Compile, beside map[string][]byte) (string, error) {
	args := slices.Clone(call.Args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], call.Out, "$OUT")
	}
	sources, err := contents(call.Dir)
	if err != nil {
		return "", err
	}
	path := ""
	if slices.Contains(call.Args, "-g") {
		path = call.Dir
	}
	h := sha256.New()
	if err := json.NewEncoder(h).Encode([]any{k.stamp, system(), runners.CPUName(), args, sources, beside, path, call.Tree, call.In.Name, call.Source}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// system tells one state of the compiler's own files, headers and libraries from another.
var system = sync.OnceValue(func() string {
	var all strings.Builder
	for _, pattern := range []string{"/usr/include", "/usr/include/*-linux-*", "/usr/lib", "/usr/lib/*-linux-*", "/usr/lib/gcc/*/*", "/usr/bin/*cc", "/usr/bin/*++", "/usr/bin/ld", "/etc/ld.so.cache"} {
		found, _ := filepath.Glob(pattern)
		for _, path := range found {
			if info, err := os.Stat(path); err == nil {
				fmt.Fprintln(&all, path, info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return all.String()
})

// put writes files into a folder, so that they can be run.
func put(files map[string][]byte, to string) error {
	for name, data := range files {
		if err := runnable.Write(filepath.Join(to, name), data); err != nil {
			return err
		}
	}
	return nil
}

// counted is a compiler that writes down its words, and refuses a source that says so.
type counted struct{ calls *int }

func (c counted) Run(_ context.Context, call toolchain.Compile) (string, error) {
	*c.calls++
	text, err := os.ReadFile(filepath.Join(call.Dir, "k.c"))
	if string(text) == "refuse" {
		err = &output.CompileError{Summary: "refused"}
	}
	return "made in " + call.Out, errors.Join(err, runnable.Write(filepath.Join(call.Out, "kernel"), text))
}

// What a build depends on is compiled again where any of it is another, and nothing else is.
func TestKeptBuilds(t *testing.T) {
	calls, kept := 0, t.TempDir()
	for _, c := range []struct {
		name, source, header, flag, stamp string
		calls                             int
	}{
		{"the first", "one", "h", "-O1", "cc 1", 1},
		{"the same", "one", "h", "-O1", "cc 1", 1},
		{"another source", "two", "h", "-O1", "cc 1", 2},
		{"another header", "one", "i", "-O1", "cc 1", 3},
		{"another flag", "one", "h", "-O2", "cc 1", 4},
		{"another compiler", "one", "h", "-O1", "cc 2", 5},
		{"the first again", "one", "h", "-O1", "cc 1", 5},
		{"a refusal", "refuse", "h", "-O1", "cc 1", 6},
		{"a refusal again", "refuse", "h", "-O1", "cc 1", 7},
		{"for a debugger", "one", "h", "-g", "cc 1", 8},
		{"for a debugger, in another folder", "one", "h", "-g", "cc 1", 9},
	} {
		dir, out := t.TempDir(), t.TempDir()
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "k.c"), []byte(c.source), 0o644), os.WriteFile(filepath.Join(dir, "k.h"), []byte(c.header), 0o644)); err != nil {
			t.Fatal(err)
		}
		k := keeping{compiler: counted{&calls}, builds: toolchain.Cache{Dir: kept}, stamp: c.stamp}
		log, err := k.Run(t.Context(), toolchain.Compile{Dir: dir, Out: out, Args: []string{c.flag, "-o", filepath.Join(out, "kernel")}})
		if calls != c.calls || (err != nil) != (c.source == "refuse") || log != "made in "+out {
			t.Errorf("%s: %d calls, %q, %v", c.name, calls, log, err)
		}
		if made, err := os.ReadFile(filepath.Join(out, "kernel")); err != nil || string(made) != c.source {
			t.Errorf("%s: made %q, %v", c.name, made, err)
		}
	}
}
