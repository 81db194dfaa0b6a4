package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// A Cache keeps the output of compilers, so that the same source is compiled once. It holds what
// the tools printed and wrote, never what this package reads from it. Several processes may share
// one.
//
// An entry is a folder named by a hash of everything that the output depends on. It appears as a
// whole or not at all; an entry with wrong checksums is discarded. Anyone who can write to Dir can
// forge builds, so only its owner can read it, and no compiler sees it.
type Cache struct {
	Dir      string
	MaxBytes int64        // the least recently used entries go first; 0 means 4 GiB
	Log      *slog.Logger // reports entries that are broken or cannot be kept, which costs time but no result; may be nil
}

const cacheBytes = 4 << 30

// DefaultCache returns the user's cache, in ${XDG_CACHE_HOME:-~/.cache}/kernelgate/builds.
func DefaultCache(getenv func(string) string) (*Cache, error) {
	root, err := cacheRoot(getenv)
	if err != nil {
		return nil, err
	}
	return &Cache{Dir: filepath.Join(root, "builds")}, nil
}

// cachedOutput is compile with the cache in front of it. A refusal is cached, too, unless a limit
// stopped the compiler.
func (c *CUDA) cachedOutput(ctx context.Context, b NVCCBuild, path string) (o nvccOutput, cached bool, err error) {
	if c.Cache == nil {
		o, err = c.compile(ctx, b, path)
		return o, false, err
	}
	if err := os.MkdirAll(c.Cache.Dir, 0o700); err != nil {
		c.Cache.warn("making its folder", err)
		o, err = c.compile(ctx, b, path)
		return o, false, err
	}
	if err := c.Cache.hidden(append(c.readable(), b.Dir)); err != nil {
		return o, false, err
	}
	key, err := c.cacheKey(b)
	if err != nil {
		return o, false, err
	}
	if o, ok := c.Cache.load(key); ok {
		return o, true, nil
	}
	if b.Once {
		key = onceKey(key)
		if o, ok := c.Cache.load(key); ok {
			return o, true, nil
		}
	}
	if o, err = c.compile(ctx, b, path); err != nil {
		return o, false, err
	}
	if o.Refusal == "" || o.Final {
		if err := c.Cache.store(key, o); err != nil {
			c.Cache.warn("keeping a build", err)
		}
	}
	return o, false, nil
}

// onceKey names a build of a search, which was compiled only once. It must never be used for a gate.
func onceKey(key string) string {
	sum := sha256.Sum256([]byte("once " + key))
	return hex.EncodeToString(sum[:])
}

// hidden refuses a cache that the compiler could see.
func (c *Cache) hidden(readable []string) error {
	dir, err := filepath.EvalSymlinks(c.Dir)
	if err != nil {
		return fmt.Errorf("finding the build cache: %w", err)
	}
	for _, path := range readable {
		if real, err := filepath.EvalSymlinks(path); err == nil && sandbox.Within(dir, real) {
			return fmt.Errorf("the build cache %s lies below %s, which the compiler can read: move it elsewhere, e.g. by XDG_CACHE_HOME", c.Dir, path)
		}
	}
	return nil
}

func (c *Cache) warn(doing string, err error) {
	if c.Log != nil {
		c.Log.Warn("build cache: "+doing, "dir", c.Dir, "error", err)
	}
}

// outputRecord is the part of an nvccOutput that has no separate file.
type outputRecord struct {
	Refusal string `json:"refusal,omitempty"`
}

// The files of an entry that is an nvccOutput.
const (
	cubinFileName  = "kernel.cubin"
	logFileName    = "log.txt"
	usageFileName  = "usage.txt"
	recordFileName = "build.json"
)

// load returns an entry if it exists and is complete.
func (c *Cache) load(key string) (nvccOutput, bool) {
	files, ok := c.Files(key)
	if !ok {
		return nvccOutput{}, false
	}
	var r outputRecord
	if err := json.Unmarshal(files[recordFileName], &r); err != nil {
		c.discard(key, fmt.Errorf("reading %s: %w", recordFileName, err))
		return nvccOutput{}, false
	}
	return nvccOutput{
		Image: files[cubinFileName], Log: string(files[logFileName]), Usage: string(files[usageFileName]),
		Refusal: r.Refusal, Final: r.Refusal != "",
	}, true
}

func (c *Cache) store(key string, o nvccOutput) error {
	record, err := json.Marshal(outputRecord{Refusal: o.Refusal})
	if err != nil {
		return err
	}
	return c.Keep(key, map[string][]byte{recordFileName: record, cubinFileName: o.Image, logFileName: []byte(o.Log), usageFileName: []byte(o.Usage)})
}

// text returns what is cached under a key or, if there is nothing, the result of make, which is
// then cached. A nil cache keeps nothing.
func (c *Cache) text(key, what string, make func() (string, error)) (string, error) {
	if c == nil {
		return make()
	}
	if o, ok := c.load(key); ok {
		return o.Log, nil
	}
	text, err := make()
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.MkdirAll(c.Dir, 0o700), c.store(key, nvccOutput{Log: text})); err != nil {
		c.warn("keeping "+what, err)
	}
	return text, nil
}

// sumsFileName is the file of an entry that lists the checksums of the others, in the form of
// sha256sum.
const sumsFileName = "sums"

// Files returns the files of an entry if it exists and is complete.
func (c *Cache) Files(key string) (map[string][]byte, bool) {
	dir := filepath.Join(c.Dir, key)
	files, err := readEntry(dir)
	if errors.Is(err, fs.ErrNotExist) && !exists(dir) {
		return nil, false
	}
	if err != nil {
		c.discard(key, err)
		return nil, false
	}
	now := time.Now()
	if err := os.Chtimes(dir, now, now); err != nil {
		c.warn("noting the use of "+key, err)
	}
	return files, true
}

func (c *Cache) discard(key string, why error) {
	c.warn("throwing away the broken entry "+key, errors.Join(why, os.RemoveAll(filepath.Join(c.Dir, key))))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func readEntry(dir string) (map[string][]byte, error) {
	sums, err := os.ReadFile(filepath.Join(dir, sumsFileName))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for line := range strings.Lines(string(sums)) {
		_, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !filepath.IsLocal(name) {
			return nil, fmt.Errorf("it has a file %q", name)
		}
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 || string(sums) != checksums(files) {
		return nil, errors.New("its checksums do not hold")
	}
	return files, nil
}

func checksums(files map[string][]byte) string {
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	return lines.String()
}

// Keep writes an entry next to its final place and renames it. If another process was faster, its
// entry stays.
func (c *Cache) Keep(key string, files map[string][]byte) error {
	temp, err := os.MkdirTemp(c.Dir, unfinished)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp) // it exists only after an error
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(temp, name), data, 0o600); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(temp, sumsFileName), []byte(checksums(files)), 0o600); err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(c.Dir, key)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return c.evict(key)
}

// cacheVersion changes with the form of entries, or with changes to the build that args does not
// show.
const cacheVersion = 6

// cacheKey names everything that the output of a build depends on: the tools, the call, and the
// whole folder, since any file in it can be included.
func (c *CUDA) cacheKey(b NVCCBuild) (string, error) {
	h := sha256.New()
	err := json.NewEncoder(h).Encode(struct {
		Version                int
		Compiler, HostCompiler string
		Digest                 string `json:",omitempty"`
		Cuobjdump              bool
		Memory                 int64
		Source, Markers, Arch  string
		Args                   []string
		Tree                   runners.Tree
		Trusted                bool
	}{cacheVersion, c.Version, c.HostVersion, c.Digest, c.Cuobjdump != "", c.memory(), b.Source, b.markers, b.Arch, c.args(b, Here), b.Tree, b.Trusted})
	if err != nil {
		return "", fmt.Errorf("naming the build of %s: %w", b.Source, err)
	}
	if err := folderhash.Write(h, b.Dir, nil); err != nil {
		return "", fmt.Errorf("reading the sources of %s: %w", b.Source, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
