package toolchain

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func testCache(t *testing.T) (*Cache, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	c := &Cache{Dir: filepath.Join(t.TempDir(), "builds"), Log: slog.New(slog.NewTextHandler(&log, nil))}
	if err := os.Mkdir(c.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return c, &log
}

func TestCachedBuild(t *testing.T) {
	c := *realCUDA(t)
	c.Cache = &Cache{Dir: filepath.Join(t.TempDir(), "builds")}
	dir := folder(t, map[string]string{
		"k.cu":   "#include \"n.h\"\nextern \"C\" __global__ void k(int* y) { *y = N; }\n",
		"n.h":    "#define N 5\n",
		"bad.cu": "extern \"C\" __global__ void k(int* y) { *y = M; }\n",
	})
	b := NVCCBuild{Dir: dir, Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89"}
	bad, slow := b, b
	bad.Source = "bad.cu"
	slow.Timeout, slow.Arch = time.Millisecond, "sm_90a"
	first := mustBuild(t, &c, b)
	firstRefusal := mustRefuseBuild(t, &c, bad, "bad.cu:1: identifier \"M\" is undefined")
	mustRefuseBuild(t, &c, slow, "killed at the 1ms deadline")

	// The second time, there is no compiler.
	idle := c
	idle.NVCC, idle.Cuobjdump = filepath.Join(c.Home, "bin", "none"), filepath.Join(c.Home, "bin", "none")
	second := mustBuild(t, &idle, b)
	if !second.Cached || read(t, second.Path) != string(first.Image) {
		t.Errorf("cached %v, or another cubin in %s", second.Cached, second.Path)
	}
	second.Path, second.Cached = first.Path, first.Cached
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the cached build differs (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(firstRefusal, mustRefuseBuild(t, &idle, bad)); diff != "" {
		t.Errorf("the cached refusal differs (-first +second):\n%s", diff)
	}
	// What a limit stopped is tried again.
	slow.Scratch = t.TempDir()
	if _, err := idle.Build(t.Context(), slow); err == nil || !strings.Contains(err.Error(), "bin/none") {
		t.Errorf("after a timeout: error %v, want the compiler to be run again", err)
	}

	if err := os.WriteFile(filepath.Join(dir, "n.h"), []byte("#define N 6\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if third := mustBuild(t, &c, b); third.Cached || third.Code == first.Code {
		t.Errorf("after a change of the header: cached %v, code %s as before", third.Cached, third.Code)
	}
}

// TestCacheOfASearch checks that a build of a search, which is compiled only once, is never taken for a gate's, and that a search
// takes both.
func TestCacheOfASearch(t *testing.T) {
	c := *realCUDA(t)
	c.Cache = &Cache{Dir: t.TempDir()}
	// The machine code depends on the name of the folder: only the second build finds that out.
	dir := folder(t, map[string]string{"k.cu": "extern \"C\" __global__ void k(int* x) { x[0] = __FILE__[1] + sizeof(__FILE__); }\n"})
	b := NVCCBuild{Dir: dir, Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89", Once: true}
	first, second := mustBuild(t, &c, b), mustBuild(t, &c, b)
	if first.Cached || !second.Cached {
		t.Errorf("cached %v, then %v", first.Cached, second.Cached)
	}
	b.Once = false
	mustRefuseBuild(t, &c, b, "the machine code depends on where it is compiled")

	b.Dir = folder(t, map[string]string{"k.cu": kernelText})
	if mustBuild(t, &c, b).Cached {
		t.Error("the first build was cached")
	}
	b.Once = true
	if !mustBuild(t, &c, b).Cached {
		t.Error("a search compiles what a gate has compiled")
	}
}

func TestCacheIsOutOfSight(t *testing.T) {
	c := *realCUDA(t)
	c.Cache = &Cache{Dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(c.Cache.Dir, "planted.h"), []byte("\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := folder(t, map[string]string{"k.cu": "#include \"" + c.Cache.Dir + "/planted.h\"\n" + kernelText})
	b := NVCCBuild{Dir: dir, Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89"}
	mustRefuseBuild(t, &c, b, "planted.h: No such file or directory")

	c.Cache.Dir = filepath.Join(dir, "cache")
	b.Scratch = t.TempDir()
	if _, err := c.Build(t.Context(), b); err == nil || !strings.Contains(err.Error(), "which the compiler can read") {
		t.Errorf("a cache within the sources: error %v", err)
	}
}

func TestBuildWithoutRoomForACache(t *testing.T) {
	c := *realCUDA(t)
	var log bytes.Buffer
	dir := folder(t, map[string]string{"k.cu": kernelText})
	c.Cache = &Cache{Dir: filepath.Join(dir, "k.cu", "builds"), Log: slog.New(slog.NewTextHandler(&log, nil))}
	if mustBuild(t, &c, NVCCBuild{Dir: dir, Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89"}).Cached || !strings.Contains(log.String(), "making its folder") {
		t.Errorf("cached, or nothing was said: %q", log.String())
	}
}

func TestCacheKey(t *testing.T) {
	dir := folder(t, map[string]string{"k.cu": "k", "sub/n.h": "n"})
	if err := os.Symlink("sub/n.h", filepath.Join(dir, "link.h")); err != nil {
		t.Fatal(err)
	}
	type call struct {
		cuda  CUDA
		build NVCCBuild
	}
	same := call{
		CUDA{Version: "13.0.88", HostVersion: "gcc 12", Cuobjdump: "/x"},
		NVCCBuild{Dir: dir, Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89", Flags: []string{"-O3"}, Defines: []string{"-DA=1"}},
	}
	key := func(c call) string {
		t.Helper()
		k, err := c.cuda.cacheKey(c.build)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	write := func(name, text string) func() {
		path := filepath.Join(dir, name)
		before, err := os.ReadFile(path)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err != nil {
				os.Remove(path)
				return
			}
			if err := os.WriteFile(path, before, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := key(same)
	for name, change := range map[string]func(*call) func(){
		"compiler":      func(c *call) func() { c.cuda.Version = "13.0.89"; return nil },
		"host compiler": func(c *call) func() { c.cuda.HostVersion = "gcc 13"; return nil },
		"no cuobjdump":  func(c *call) func() { c.cuda.Cuobjdump = ""; return nil },
		"memory":        func(c *call) func() { c.cuda.Memory = 1; return nil },
		"source":        func(c *call) func() { c.build.Source = "l.cu"; return nil },
		"markers":       func(c *call) func() { c.build.markers = "l"; return nil },
		"architecture":  func(c *call) func() { c.build.Arch = "sm_90"; return nil },
		"flags":         func(c *call) func() { c.build.Flags = nil; return nil },
		"defines":       func(c *call) func() { c.build.Defines = []string{"-DA=2"}; return nil },
		"the text":      func(*call) func() { return write("k.cu", "K") },
		"an include":    func(*call) func() { return write("sub/n.h", "m") },
		"a new file":    func(*call) func() { return write("sub/m.h", "") },
		"an executable bit": func(*call) func() {
			chmod := func(mode os.FileMode) {
				if err := os.Chmod(filepath.Join(dir, "k.cu"), mode); err != nil {
					t.Fatal(err)
				}
			}
			chmod(0o755)
			return func() { chmod(0o644) }
		},
		"another link": func(*call) func() {
			link := filepath.Join(dir, "link.h")
			if err := os.Remove(link); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("k.cu", link); err != nil {
				t.Fatal(err)
			}
			return func() { os.Remove(link); os.Symlink("sub/n.h", link) }
		},
	} {
		changed := same
		undo := change(&changed)
		if key(changed) == first {
			t.Errorf("%s makes no difference", name)
		}
		if undo != nil {
			undo()
		}
	}
	for name, change := range map[string]func(*NVCCBuild){
		"scratch": func(b *NVCCBuild) { b.Scratch = "/elsewhere" },
		"timeout": func(b *NVCCBuild) { b.Timeout = time.Second },
		"a copy of the folder": func(b *NVCCBuild) {
			b.Dir = folder(t, map[string]string{"k.cu": "k", "sub/n.h": "n"})
			if err := os.Symlink("sub/n.h", filepath.Join(b.Dir, "link.h")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		changed := same
		change(&changed.build)
		if key(changed) != first {
			t.Errorf("%s makes a difference", name)
		}
	}
}

func TestCacheThrowsBrokenEntriesAway(t *testing.T) {
	want := nvccOutput{Image: []byte("image"), Log: "log", Usage: "usage"}
	for name, harm := range map[string]func(dir string) error{
		"another image": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, cubinFileName), []byte("forged"), 0o600)
		},
		"half a log":   func(dir string) error { return os.Truncate(filepath.Join(dir, logFileName), 1) },
		"no record":    func(dir string) error { return os.Remove(filepath.Join(dir, recordFileName)) },
		"no checksums": func(dir string) error { return os.Remove(filepath.Join(dir, sumsFileName)) },
		"empty sums":   func(dir string) error { return os.Truncate(filepath.Join(dir, sumsFileName), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			c, log := testCache(t)
			if err := c.store("key", want); err != nil {
				t.Fatal(err)
			}
			got, ok := c.load("key")
			if diff := cmp.Diff(want, got); !ok || diff != "" {
				t.Fatalf("loaded %v (-want +got):\n%s", ok, diff)
			}
			if err := harm(filepath.Join(c.Dir, "key")); err != nil {
				t.Fatal(err)
			}
			if _, ok := c.load("key"); ok {
				t.Error("the broken entry was loaded")
			}
			if !strings.Contains(log.String(), "broken entry key") {
				t.Errorf("nothing was said: %q", log)
			}
			if err := c.store("key", want); err != nil {
				t.Fatal(err)
			}
			if _, ok := c.load("key"); !ok {
				t.Error("the entry cannot be made again")
			}
		})
	}
	c, log := testCache(t)
	if _, ok := c.load("missing"); ok || log.Len() > 0 {
		t.Errorf("a missing entry: found %v, said %q", ok, log)
	}
}

func TestCacheEvicts(t *testing.T) {
	c, _ := testCache(t)
	o := nvccOutput{Image: make([]byte, 10_000)}
	age := func(name string, hours int) {
		t.Helper()
		at := time.Now().Add(-time.Duration(hours) * time.Hour)
		if err := os.Chtimes(filepath.Join(c.Dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for i, key := range []string{"used", "oldest", "old"} {
		if err := c.store(key, o); err != nil {
			t.Fatal(err)
		}
		age(key, 100-i)
	}
	if _, ok := c.load("used"); !ok { // it is the youngest from now on
		t.Fatal("the entry is gone")
	}
	for _, name := range []string{unfinished + "dead", unfinished + "alive"} {
		if err := os.Mkdir(filepath.Join(c.Dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	age(unfinished+"dead", 2)
	c.MaxBytes = 30_000
	if err := c.store("new", o); err != nil {
		t.Fatal(err)
	}
	left := func() (names []string) {
		entries, err := os.ReadDir(c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if diff := cmp.Diff([]string{"new", unfinished + "alive", "used"}, left()); diff != "" {
		t.Errorf("left over (-want +got):\n%s", diff)
	}
	c.MaxBytes = 1
	if err := c.store("large", o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"large", unfinished + "alive"}, left()); diff != "" {
		t.Errorf("left over (-want +got):\n%s", diff)
	}
}

func TestCacheOfTwoProcesses(t *testing.T) {
	c, log := testCache(t)
	first, second := nvccOutput{Image: []byte("first")}, nvccOutput{Image: []byte("second")}
	for _, o := range []nvccOutput{first, second} {
		if err := c.store("key", o); err != nil {
			t.Fatal(err)
		}
	}
	got, ok := c.load("key")
	if !ok || string(got.Image) != "first" || log.Len() > 0 {
		t.Errorf("found %v, %q; said %q", ok, got.Image, log)
	}
	if entries, err := os.ReadDir(c.Dir); err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

func TestDefaultCache(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string
		want string
	}{
		"XDG":     {map[string]string{"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/kernelgate/builds"},
		"home":    {map[string]string{"HOME": "/h"}, "/h/.cache/kernelgate/builds"},
		"neither": {nil, ""},
	} {
		c, err := DefaultCache(environment(test.env))
		if (err != nil) != (test.want == "") || err == nil && c.Dir != test.want {
			t.Errorf("%s: %+v, %v; want %q", name, c, err, test.want)
		}
	}
}
