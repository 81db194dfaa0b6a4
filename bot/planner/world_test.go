package planner_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/planner/mirror"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

const (
	manifest = `version: 1
name: scale
mode: cpu
entry: scale
source: scale.c
sources: ["*.c", "*.h"]
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: N, dtype: i32, access: scalar, value: N}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 0.1}
shapes:
  mission: {N: 1000}
  small: {N: 10}
limits: {N: 1..100000}
`
	policyYAML = `version: 1
devices: [pool]
gates:
  correctness: {shapes: all, seeds: [0], norm_error: "<= 1%"}
  performance: {target: {shapes: [mission], speedup: ">= +10%"}}
rules:
  - name: refactoring
    when: {labels: [refactoring]}
    gates: {performance: {target: {shapes: [mission], speedup: ">= -2%"}}}
  - name: default
`
	folder     = "kernels/scale"
	policyFile = plan.PolicyFile
)

// A tree is files by their paths; an empty one is deleted where it was.
type tree map[string]string

// with is a copy of the tree with others over it.
func (f tree) with(more ...tree) tree {
	all := maps.Clone(f)
	for _, m := range more {
		maps.Copy(all, m)
	}
	return all
}

// kernel is the files of a kernel in a folder, with a source of its own.
func kernel(folder, source string) tree {
	return tree{folder + "/kernel.yaml": manifest, folder + "/scale.c": source, folder + "/reference.c": "// truth\n"}
}

// usual is what most repositories here begin with.
func usual() tree {
	return kernel(folder, "// base\n").with(tree{policyFile: policyYAML, "README.md": "Kernels.\n"})
}

// A world is a repository on a hub, and a planner that reads it where it is; on a
// mirror, where it matters what the hub hands out.
type world struct {
	*testing.T
	hub     *embedded.Server
	repo    *embedded.Repo
	planner *planner.Planner
	bundles shelf
	scratch string

	proposed int // pull requests
}

// A shelf is a store that holds each bundle under its digest.
type shelf map[string][]byte

func (s shelf) Put(_ context.Context, name string, r io.Reader) (string, error) {
	data, err := io.ReadAll(r)
	s[name] = data
	return name, err
}

// here is the repository itself: there is nothing to fetch.
type here struct{ repo *embedded.Repo }

func (h here) Fetch(context.Context, string, ...string) (*checkout.Repo, error) {
	return checkout.OpenBare(h.repo.Dir()), nil
}

func (h here) FetchHead(ctx context.Context, repo, _ string, refs ...string) (*checkout.Repo, error) {
	return h.Fetch(ctx, repo, refs...)
}

func (here) Soon(string, string, string) {}

func (here) Submodule(context.Context, string, string, string) (*checkout.Repo, error) {
	return nil, mirror.Unreadable{Why: "there is no other repository here"}
}

type origin struct{ base string }

func (o origin) CloneURL(repo string) string { return o.base + "/" + repo + ".git" }
func (origin) GitCredential(context.Context, string) (string, string, error) {
	return "", "", nil
}

func newWorld(t *testing.T, files tree) *world {
	t.Helper()
	t.Parallel() // it mostly waits for git
	return makeWorld(t, files)
}

// makeWorld is newWorld for a test that has subtests with worlds of their own.
func makeWorld(t *testing.T, files tree) *world {
	t.Helper()
	w := &world{T: t, bundles: shelf{}, scratch: t.TempDir()}
	var err error
	if w.hub, err = embedded.New(embedded.Options{Dir: t.TempDir(), Seed: 7}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.hub.Close() })
	if w.repo, err = w.hub.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "kernels"}); err != nil {
		t.Fatal(err)
	}
	w.push("main", files)
	w.planner = &planner.Planner{
		Mirrors: here{w.repo}, Bundles: w.bundles, Scratch: w.scratch, Version: "kernelgate test",
		Now: func() time.Time { return time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC) },
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(w.scratch); err != nil || len(left) > 0 {
			t.Errorf("the planner has left %v behind (%v)", left, err)
		}
	})
	return w
}

// push commits files onto a branch.
func (w *world) push(branch string, files tree) string {
	w.Helper()
	c := embedded.Commit{Branch: branch, Files: files.with(), Message: "x"}
	for name, text := range files {
		if text == "" {
			delete(c.Files, name)
			c.Delete = append(c.Delete, name)
		}
	}
	sha, err := w.repo.PushCommit(c)
	if err != nil {
		w.Fatal(err)
	}
	return sha
}

// mirrored lets the planner read what the hub hands out, as the bot's does.
func (w *world) mirrored() *world {
	w.planner.Mirrors = &mirror.Store{Dir: w.TempDir(), Origin: origin{w.hub.URL()}}
	return w
}

// propose is one more pull request from where main is now.
func (w *world) propose(files tree, labels ...string) (change.ID, change.Facts) {
	w.Helper()
	w.proposed++
	head := w.push(fmt.Sprintf("topic-%d", w.proposed), files)
	return w.pull(w.proposed), change.Facts{Repo: w.repo.FullName(), Open: true, Title: "A change", Labels: labels, Head: head, Base: "main"}
}

func (w *world) pull(number int) change.ID {
	return change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: number}
}

func (w *world) plan(id change.ID, f change.Facts) planner.Proposal {
	w.Helper()
	p, err := w.planner.Plan(w.Context(), id, f)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// read unpacks a bundle as a runner does.
func (w *world) read(name string) runners.Job {
	w.Helper()
	data, ok := w.bundles[name]
	if sum := sha256.Sum256(data); !ok || hex.EncodeToString(sum[:]) != name {
		w.Fatalf("there is no bundle %q, or it is not its digest", name)
	}
	job, err := bundle.Read(bytes.NewReader(data), w.TempDir())
	if err != nil {
		w.Fatal(err)
	}
	return job
}

// job is the only kernel of a plan, as a runner gets it.
func (w *world) job(p planner.Proposal) runners.Job {
	w.Helper()
	if len(p.Kernels) != 1 || len(p.Problems) > 0 {
		w.Fatalf("the plan has the kernels %+v and the problems %+v, want one kernel", p.Kernels, p.Problems)
	}
	return w.read(p.Kernels[0].Bundle)
}

// folders names a plan's kernels, each with its folder.
func folders(p planner.Proposal) []string {
	var all []string
	for _, k := range p.Kernels {
		all = append(all, k.Name+" in "+k.Folder)
	}
	return all
}

// files is what a folder holds.
func (w *world) files(dir string) tree {
	w.Helper()
	all := tree{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		all[rel] = string(data)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return all
}

// replaced changes a text in one place, which must be there.
func replaced(t *testing.T, text, old, new string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q is not once in\n%s", old, text)
	}
	return strings.Replace(text, old, new, 1)
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
