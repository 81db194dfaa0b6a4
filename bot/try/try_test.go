package try

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/local/localtest"
	"github.com/kernelgate/kernelgate/bot/pages/browser"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// TestInBrowser tries a repository with two branches. A browser shows the comments, the checks and
// what could be merged. A commit to a branch updates its pull request. The user's repository stays
// unchanged, and Ctrl-C leaves nothing behind.
func TestInBrowser(t *testing.T) {
	b := browser.Open(t)
	t.Setenv("TMPDIR", t.TempDir())
	r := newRepository(t, localtest.Small())
	r.branch("faster", "Drop the volatile", localtest.SmallFast)
	r.branch("wrong", "Triple it", localtest.SmallWrong)
	// The branch main moves on.
	r.commit("Say more", map[string]string{"README.md": "A kernel that doubles.\n"})
	before := r.state()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out := &audience{}
	out.on = map[string]func(string){
		"Look around": func(text string) {
			if d := cmp.Diff(before, r.state()); d != "" {
				t.Errorf("the repository was written:\n%s", d)
			}
			look(t, b, text)
			r.git("switch", "--quiet", "wrong")
			r.commit("Double it again", map[string]string{localtest.SmallSource: localtest.SmallFast + "\n"})
		},
		"✓ #2 wrong": func(string) { cancel() },
	}
	passed, err := run(t, ctx, out, Options{Dir: filepath.Join(r.dir, "kernels"), poll: 20 * time.Millisecond})
	if err != nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Fatalf("it ended with %v:\n%s", err, out)
	}
	if !passed {
		t.Errorf("the branch was repaired, and the end is not PASS:\n%s", out)
	}
	for _, want := range []string{
		"#1          faster: Drop the volatile", "#2          wrong: Triple it",
		"✓ #1 faster  PASS small: ", "(it can be merged)",
		"✗ #2 wrong  DEFER (correctness) small: ", `(no merge: Required status check "kernelgate" is failing)`,
		"1 of 2 passes.", "wrong is at ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// look opens the printed address, and follows the links to both pull requests.
func look(t *testing.T, b *browser.Browser, text string) {
	m := regexp.MustCompile(`Open (http://\S+) in a browser`).FindStringSubmatch(text)
	if m == nil {
		t.Errorf("no address in\n%s", text)
		return
	}
	tab := b.Tab(browser.Look{Width: 1000})
	tab.Go(m[1])
	links := browser.Eval[map[string]string](tab, `Object.fromEntries([...document.querySelectorAll("a[href]")].map(a => [a.innerText, a.href]))`)
	for title, want := range map[string][]string{
		"#1 Drop the volatile": {"kernelgate[bot]", "PASS", "✓", "This pull request can be merged"},
		"#2 Triple it":         {"kernelgate[bot]", "DEFER", "The output is wrong", "✗", `Merging is blocked Required status check "kernelgate" is failing.`},
	} {
		if links[title] == "" {
			t.Errorf("no link to %q: %q", title, links)
			continue
		}
		// The comment comes after the check, and the hub's pages do not refresh.
		for shown, soon := "", time.Now().Add(time.Minute); !strings.Contains(shown, "kernelgate[bot]") && time.Now().Before(soon); {
			tab.Go(links[title])
			shown = tab.Text("body")
		}
		shown := strings.Join(strings.Fields(tab.Text("body")), " ")
		for _, words := range want {
			if !strings.Contains(shown, words) {
				t.Errorf("%q is not on the page of %q:\n%s", words, title, shown)
			}
		}
	}
	for _, c := range tab.Complaints() {
		t.Error(c)
	}
}

// TestInterrupted checks that Ctrl-C during a measurement leaves no folder and no process.
func TestInterrupted(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	pipe := filepath.Join(tmp, "hold")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	r := newRepository(t, localtest.Small())
	r.branch("faster", "Drop the volatile", localtest.SmallFast)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out audience
	cmd := exec.CommandContext(ctx, program, "try", r.dir)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(ctx, func() { // unblocks the wait for the runner below
		if f, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			f.Close()
		}
	})
	f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when the runner starts to measure
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	atWork := processesOf(t, tmp)
	if !slices.ContainsFunc(slices.Collect(maps.Values(atWork)), func(command string) bool { return strings.Contains(command, " runner ") }) {
		t.Errorf("no runner is at work: %v", atWork)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "ended: waiting for the verdicts: wait for the hub: interrupt signal received") {
		t.Errorf("it ended with %v:\n%s", err, &out)
	}
	left(t, tmp)
	gone(t, atWork)
	gone(t, processesOf(t, tmp))
}

// TestOnce checks that the program ends with the verdicts in a script. Only named branches are
// opened, and labels count. What this machine cannot measure is reported and does not block.
func TestOnce(t *testing.T) {
	files := localtest.Small()
	files[".github/kernelgate.yaml"] = strings.ReplaceAll(files[".github/kernelgate.yaml"], "devices: [cpu]\n", "devices: [h200]\n")
	for name, tt := range map[string]struct {
		files  map[string]string
		opt    Options
		change func(*repository)
		passed bool
		want   []string
	}{
		"no kernel changed": {
			opt:    Options{Branches: []string{"docs"}, Labels: []string{"docs"}},
			change: func(r *repository) { r.branch("wrong", "Triple it", localtest.SmallWrong) },
			passed: true, want: []string{"✓ #1 docs  No kernel changed (it can be merged)", "1 of 1 passes."},
		},
		"another device": {
			files: files, opt: Options{Branches: []string{"faster"}},
			want: []string{"✗ #1 faster  cannot be measured here: small needs a runner labelled h200, and this machine is cpu", "0 of 1 pass."},
		},
		"a branch from before": {
			opt: Options{Base: "release"},
			change: func(r *repository) {
				r.git("branch", "release")
				r.git("branch", "--force", "faster", "main~0")
				r.git("branch", "merged")
			},
			passed: true, want: []string{"#1          docs: Explain", "✓ #1 docs  No kernel changed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			if tt.files == nil {
				tt.files = localtest.Small()
			}
			r := newRepository(t, tt.files)
			r.branch("faster", "Drop the volatile", localtest.SmallFast)
			r.git("switch", "--quiet", "--create", "docs", "main")
			r.commit("Explain", map[string]string{"README.md": "It doubles.\n"})
			r.git("switch", "--quiet", "main")
			if tt.change != nil {
				tt.change(r)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			tt.opt.Dir, tt.opt.Once = r.dir, true
			out := &audience{}
			passed, err := run(t, ctx, out, tt.opt)
			if err != nil || passed != tt.passed {
				t.Errorf("it ended with %v, %v", passed, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in\n%s", want, out)
				}
			}
			if strings.Contains(out.String(), "#2") {
				t.Errorf("more was opened:\n%s", out)
			}
		})
	}
}

// TestBadInput checks that bad input is reported before anything starts, with what to do.
func TestBadInput(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	good := newRepository(t, localtest.Small())
	good.branch("faster", "Drop the volatile", localtest.SmallFast)
	good.git("branch", "same")
	good.git("switch", "--quiet", "--orphan", "gh-pages")
	good.commit("Pages", map[string]string{"index.html": "<p>\n"})
	good.git("switch", "--quiet", "main")
	nothing := newRepository(t, localtest.Small())
	nothing.git("branch", "same")
	bare := newRepository(t, map[string]string{"README.md": "No policy.\n"})
	bare.branch("faster", "Drop the volatile", localtest.SmallFast)
	trunk := newRepository(t, localtest.Small())
	trunk.git("branch", "--move", "trunk")
	empty := &repository{t, t.TempDir()}
	empty.git("init", "--quiet", "--initial-branch=main")
	shallow := filepath.Join(t.TempDir(), "shallow")
	good.git("clone", "--quiet", "--depth=1", "file://"+good.dir, shallow)
	for name, tt := range map[string]struct {
		opt  Options
		want string
	}{
		"no folder":               {Options{Dir: filepath.Join(good.dir, "none")}, "no such file or directory (name the folder of a git repository)"},
		"no repository":           {Options{Dir: t.TempDir()}, "is not in a git repository (run it inside one, or name its folder)"},
		"no commit":               {Options{Dir: empty.dir}, "no default branch was found: neither origin/HEAD nor main nor master is there (name it with --base, e.g. --base trunk); the repository has no branches (commit something first)"},
		"no default branch":       {Options{Dir: trunk.dir}, "no default branch was found: neither origin/HEAD nor main nor master is there (name it with --base, e.g. --base trunk); there are trunk"},
		"no such base":            {Options{Dir: trunk.dir, Base: "main"}, `--base: there is no branch "main"; there are trunk`},
		"no policy":               {Options{Dir: bare.dir}, "there is no policy on main: .github/kernelgate.yaml is missing"},
		"no branch ahead":         {Options{Dir: nothing.dir}, "no branch is ahead of main, so there is nothing to open a pull request for (commit a change on a branch: git switch -c my-change)"},
		"no such branch":          {Options{Dir: good.dir, Branches: []string{"faster", "slower"}}, `--branch: there is no branch "slower"; there are `},
		"a branch like an option": {Options{Dir: good.dir, Branches: []string{"--all"}}, `--branch: there is no branch "--all"`},
		"a branch not ahead":      {Options{Dir: good.dir, Branches: []string{"same"}}, "--branch: same has no commit that main does not have (commit a change on it)"},
		"the base itself":         {Options{Dir: good.dir, Branches: []string{"main"}}, "--branch: main has no commit that main does not have"},
		"another history":         {Options{Dir: good.dir, Branches: []string{"gh-pages"}}, "--branch: gh-pages and main have no common commit"},
		"a shallow clone":         {Options{Dir: shallow}, "is a shallow clone, without the commits that a pull request is compared with (fetch them with git fetch --unshallow)"},
	} {
		t.Run(name, func(t *testing.T) {
			out := &audience{}
			_, err := run(t, t.Context(), out, tt.opt)
			if _, mistake := errors.AsType[usage.Error](err); !mistake || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("it says %v, want %q", err, tt.want)
			}
			if out.String() != "" {
				t.Errorf("it began:\n%s", out)
			}
		})
	}
}

// TestRepoName checks how a folder's name becomes a repository's name.
func TestRepoName(t *testing.T) {
	for folder, want := range map[string]string{"kernels": "kernels", "my kernels": "my-kernels", "ünï_1.2": "-n-_1.2", "..": "repository", "/": "repository"} {
		if got := repoName(folder); got != want {
			t.Errorf("%q becomes %q, want %q", folder, got, want)
		}
	}
}
