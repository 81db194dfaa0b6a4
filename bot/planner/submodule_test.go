package planner_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/planner/mirror"
)

// link commits a submodule onto a branch: no API does that.
func (w *world) link(branch, path, commit string) string {
	w.Helper()
	index := filepath.Join(w.TempDir(), "index")
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", w.repo.Dir(), "-c", "user.name=t", "-c", "user.email=t@t.invalid"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_INDEX_FILE="+index)
		out, err := cmd.CombinedOutput()
		if err != nil {
			w.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("read-tree", branch)
	git("update-index", "--add", "--cacheinfo", "160000,"+commit+","+path)
	made := git("commit-tree", git("write-tree"), "-p", "main", "-m", "submodule")
	git("update-ref", "refs/heads/"+branch, made)
	git("update-ref", "refs/pull/1/head", made)
	return made
}

// A change moves a submodule that the base branch has: both sides are built with its headers, each with those of its own commit,
// fetched from the same host. Where it comes from is the base branch's word alone.
func TestSubmoduleOfAChange(t *testing.T) {
	t.Parallel()
	with := strings.Replace(manifest, "source: scale.c\n", "source: scale.c\ninclude: [third_party/lib/include]\n", 1)
	const path, header = "third_party/lib", "/.repository/third_party/lib/include/lib.h"
	for name, c := range map[string]struct {
		modules, head string // .gitmodules of the base and, where it is another, of the head
		private       bool
		commit        string // another than the library's second
		says          string
	}{
		"beside it":          {modules: "../lib.git"},
		"by its address":     {modules: "HUB/olga/lib"},
		"for ssh":            {modules: "git@HOST:olga/lib.git"},
		"for ssh, in full":   {modules: "ssh://git@HOST/olga/lib.git"},
		"another host":       {modules: "https://example.com/olga/lib.git", says: `it comes from "https://example.com/olga/lib.git", and only repositories of `},
		"a host like it":     {modules: "https://HOST@example.com/olga/lib.git", says: "only repositories of "},
		"a file":             {modules: "file:///etc", says: "is no address that is fetched from"},
		"a folder":           {modules: "/srv/lib.git", says: "only repositories of "},
		"a way out":          {modules: "../../../lib.git", says: "is no repository of "},
		"a command":          {modules: "ext::sh -c touch% /tmp/x", says: "only repositories of "},
		"nobody may read it": {modules: "../lib.git", private: true, says: "olga/lib is not there, or not to be read from here (install the App on it"},
		"not there":          {modules: "../nothing.git", says: "olga/nothing is not there, or not to be read from here"},
		"no such commit":     {modules: "../lib.git", commit: strings.Repeat("1", 40), says: "no branch and no tag of olga/lib has the commit 111111111111 (push it there)"},
		"the head's word":    {modules: "", head: "../lib.git", says: "the .gitmodules of the base branch main does not say where it comes from, and a change's own is not believed (merge it there first)"},
		"the head's other":   {modules: "../lib.git", head: "https://example.com/x/y"}, // which nobody asks
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usual().with(tree{folder + "/kernel.yaml": with})).mirrored()
			lib, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "lib", Private: c.private})
			if err != nil {
				t.Fatal(err)
			}
			var commits []string
			for _, text := range []string{"// one\n", "// two\n"} {
				sha, err := lib.PushCommit(embedded.Commit{Branch: "main", Files: map[string]string{"include/lib.h": text}, Message: "x"})
				if err != nil {
					t.Fatal(err)
				}
				commits = append(commits, sha)
			}
			host := strings.TrimPrefix(w.hub.URL(), "http://")
			host, _, _ = strings.Cut(host, ":")
			modules := func(address string) tree {
				address = strings.NewReplacer("HUB", w.hub.URL(), "HOST", host).Replace(address)
				return tree{".gitmodules": "[submodule \"lib\"]\n\tpath = " + path + "\n\turl = " + address + "\n"}
			}
			if c.modules != "" {
				w.push("main", modules(c.modules))
			}
			w.link("main", path, commits[0])
			files := tree{folder + "/scale.c": "// head\n"}
			if c.head != "" {
				files = files.with(modules(c.head))
			}
			id, facts := w.propose(files)
			to := commits[1]
			if c.commit != "" {
				to = c.commit
			}
			facts.Head = w.link("topic-1", path, to)
			p := w.plan(id, facts)
			if len(p.Problems) > 0 || len(p.Kernels) != 1 {
				t.Fatalf("%+v", p.Plan)
			}
			evidence := p.Evidence[p.Kernels[0].Folder]
			if c.says != "" {
				if evidence == nil || !evidence.Setup || !strings.Contains(evidence.Fault, c.says) || p.Kernels[0].Bundle != "" {
					t.Errorf("%+v, want one that says %s", evidence, c.says)
				}
				return
			}
			if evidence != nil {
				t.Fatalf("%+v", evidence)
			}
			job := w.read(p.Kernels[0].Bundle)
			for dir, want := range map[string]string{job.Baseline.Dir: "// one\n", job.Candidate.Dir: "// two\n"} {
				if text, err := os.ReadFile(dir + header); err != nil || string(text) != want {
					t.Errorf("a side has %q (%v), want %q", text, err, want)
				}
			}
		})
	}
}

// A copy that has the commit is not fetched again, and none grows beyond what a copy may have.
func TestSubmoduleIsBounded(t *testing.T) {
	w := newWorld(t, usual())
	lib, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "lib"})
	if err != nil {
		t.Fatal(err)
	}
	noise := strings.Builder{}
	for i, x := 0, uint64(1); i < 300_000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
		noise.WriteByte(byte(x >> 56))
	}
	sha, err := lib.PushCommit(embedded.Commit{Branch: "main", Files: map[string]string{"a.h": noise.String()}, Message: "x"})
	if err != nil {
		t.Fatal(err)
	}
	small := &mirror.Store{Dir: t.TempDir(), Origin: origin{w.hub.URL()}, Most: 100 << 10}
	if _, err := small.Submodule(t.Context(), w.repo.FullName(), "../lib", sha); err == nil || !strings.Contains(err.Error(), "olga/lib has more than 0 MiB, and no more are fetched") {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(small.Dir, "olga/lib.git/objects/pack/*")); len(left) > 0 {
		t.Errorf("it has left %q", left)
	}
	store := &mirror.Store{Dir: t.TempDir(), Origin: origin{w.hub.URL()}}
	if _, err := store.Submodule(t.Context(), w.repo.FullName(), "../lib", sha); err != nil {
		t.Fatal(err)
	}
	w.hub.Close()
	if _, err := store.Submodule(t.Context(), w.repo.FullName(), "../lib", sha); err != nil {
		t.Errorf("what is there is fetched: %v", err)
	}
	if _, err := store.Submodule(t.Context(), w.repo.FullName(), "../lib", strings.Repeat("2", 40)); err == nil || strings.Contains(err.Error(), "install the App") {
		t.Errorf("a host that does not answer: %v", err)
	}
}
