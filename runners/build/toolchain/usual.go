package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/kernelgate/kernelgate/runners"
)

// A compiler looks up many files of its host: its own programs, libraries, settings. Which of them
// is different on every host, so the compiler is asked: what it looks up for an empty source, with
// the same flags, is not the doing of any source.

// usualOf caches the answers in this process.
var usualOf sync.Map

// usualLookups returns what the compiler looks up for an empty source.
func (c CC) usualLookups(ctx context.Context, call Compile) (map[string]bool, error) {
	args := slices.Clone(call.Args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], call.Out, "$OUT")
	}
	return learned(strings.Join(append([]string{c.Path, c.Version, filepath.Ext(call.Source), call.In.Name}, args...), "\x00"), func() ([]string, error) {
		dir, err := os.MkdirTemp("", "kernelgate-empty-")
		if err != nil {
			return nil, fmt.Errorf("making room for an empty source: %w", err)
		}
		defer os.RemoveAll(dir)
		sources, out := filepath.Join(dir, "sources"), filepath.Join(dir, "out")
		name := "empty" + filepath.Ext(call.Source)
		for _, folder := range []string{dir, sources, out} {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return nil, fmt.Errorf("making room for an empty source: %w", err)
			}
		}
		if err := os.WriteFile(filepath.Join(sources, name), nil, 0o644); err != nil {
			return nil, fmt.Errorf("writing an empty source: %w", err)
		}
		var asked []string
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "$OUT", out)
		}
		empty := Compile{Dir: sources, Args: args, Out: out, Tree: &runners.Tree{}, In: call.In, Source: name, lookups: &asked}
		if log, err := c.Run(ctx, empty); err != nil {
			return nil, fmt.Errorf("learning what %s looks up, from an empty source: %w\n%s", c.Path, err, log)
		}
		return asked, nil
	})
}

// usualLookups returns what nvcc or ptxas looks up for an empty kernel.
func (c *CUDA) usualLookups(ctx context.Context, b NVCCBuild) (map[string]bool, error) {
	known := strings.Join(append([]string{c.compiler(b), c.Version, c.HostCompiler, c.HostVersion}, b.Flags...), "\x00")
	return learned(known, func() ([]string, error) {
		sum := sha256.Sum256(fmt.Appendf(nil, "lookups %d %s", cacheVersion, known))
		text, err := c.Cache.text(hex.EncodeToString(sum[:]), "what nvcc looks up", func() (string, error) {
			_, r, log, err := c.empty(ctx, b)
			if err == nil && !r.OK() {
				err = fmt.Errorf("learning what %s looks up, from an empty kernel: %s", c.compiler(b), log)
			}
			text, _ := json.Marshal(r.Lookups)
			return string(text), err
		})
		var asked []string
		if err == nil {
			err = json.Unmarshal([]byte(text), &asked)
		}
		return asked, err
	})
}

// A learnedList is what a compiler looks up; the lock is held while it is asked.
type learnedList struct {
	sync.Mutex
	known map[string]bool
}

// learned returns the answer to a question, and asks once unless that failed.
func learned(question string, ask func() ([]string, error)) (map[string]bool, error) {
	entry, _ := usualOf.LoadOrStore(question, &learnedList{})
	list := entry.(*learnedList)
	list.Lock()
	defer list.Unlock()
	if list.known != nil {
		return list.known, nil
	}
	asked, err := ask()
	if err != nil {
		return nil, err
	}
	list.known = map[string]bool{}
	for _, name := range asked {
		list.known[name] = true
	}
	return list.known, nil
}
