package actions_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/kernelgate/kernelgate/bot/actions"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

var (
	newCommand = regexp.MustCompile(`^[\s\p{Z}\x{feff}]*::([^:]*?(?: [^:]*)?)::(.*)$`)
	oldCommand = regexp.MustCompile(`##\[([^\]]*)\](.*)$`)
)

// commands returns the commands that GitHub's runner would execute in a log, like ActionCommand and
// ActionCommandManager in github.com/actions/runner.
func commands(log string) (all []string) {
	stopped := ""
	for line := range strings.Lines(log) {
		line = strings.TrimRight(line, "\r\n")
		m := newCommand.FindStringSubmatch(line)
		if m == nil {
			m = oldCommand.FindStringSubmatch(line)
		}
		switch {
		case m == nil:
		case stopped != "":
			if m[1] == stopped {
				stopped = ""
			}
		case m[1] == "stop-commands":
			stopped = m[2]
		default:
			all = append(all, m[1])
		}
	}
	return all
}

// TestHostileNames uses folders that the author of a fork named after workflow commands. The log
// must contain no commands, the artifact must have names that can be uploaded, and the outputs must
// be those of the job.
func TestHostileNames(t *testing.T) {
	hostile := []string{
		"kernels/##[set-output name=results]", "kernels/a\n::set-output name=results::/etc", "kernels/b:\"*?<>|", "kernels/##[stop-commands]x",
		"kernels/" + strings.Repeat("long", 50),
	}
	w := newWorld(t, nil, mayWrite)
	w.report = "status"
	files := source("speed 1.3")
	for _, folder := range hostile {
		files[folder+"/kernel.yaml"] = manifest
		files[folder+"/scale.c"] = "// speed 1.3\n"
		files[folder+"/reference.c"] = "// the truth\n"
	}
	fork, err := w.repo.Fork("eve")
	w.no(err)
	pr := w.propose("theirs", files, embedded.PROptions{HeadRepo: fork, Author: "eve"})
	_, err = pr.Comment("walt", "/ok-to-test "+pr.HeadSHA())
	w.no(err)
	j := w.act("issue_comment")
	w.no(j.err)
	if len(j.Results) == 0 {
		t.Fatalf("nothing was measured:\n%s", j.log)
	}
	for _, c := range commands(j.log) {
		if !strings.HasPrefix(c, "error title=kernelgate") && !strings.HasPrefix(c, "error file=") && !strings.HasPrefix(c, "warning title=kernelgate") && !strings.HasPrefix(c, "notice file=") {
			t.Errorf("the log has the command %q", c)
		}
	}
	if lines := strings.Split(j.output, "\n"); len(lines) != 4 || !strings.HasPrefix(lines[2], "results="+w.dir) {
		t.Errorf("the outputs are %q", j.output)
	}
	kept := 0
	w.no(filepath.WalkDir(j.Results, func(path string, entry fs.DirEntry, err error) error {
		if strings.ContainsAny(strings.TrimPrefix(path, j.Results), "\":<>|*?\r\n") || len(entry.Name()) > 200 {
			t.Errorf("%q cannot be uploaded", path)
		}
		if entry.Name() == "evidence.json" {
			kept++
		}
		return err
	}))
	if want := len(hostile); kept != want { // the folder with a newline reaches no runner
		t.Errorf("the evidence of %d kernels is kept, want %d", kept, want)
	}
}

// TestDefuse checks that writers and errors pass on text without commands, however the text is
// split.
func TestDefuse(t *testing.T) {
	for text, want := range map[string]string{
		"plain: a::b, #[x], # [y] ##": "plain: a::b, #[x], # [y] ##",
		"::error::x":                  ": :error::x",
		"a\n  ::error::x":             "a\n  : :error::x",
		"a\n\u00a0::error::x":         "a\n\u00a0: :error::x",
		"a\r::error::x":               "a\r: :error::x",
		"x ##[error]y":                "x ## [error]y",
		"###[error]y":                 "### [error]y",
		":::x::":                      ": ::x::",
	} {
		for _, once := range []bool{true, false} {
			var b strings.Builder
			out := actions.Defuse(&b)
			for part := range slices.Chunk([]byte(text), map[bool]int{true: len(text), false: 1}[once]) {
				if n, err := out.Write(part); n != len(part) || err != nil {
					t.Errorf("%q: wrote %d, %v", part, n, err)
				}
			}
			if b.String() != want || len(commands(b.String())) > 0 {
				t.Errorf("%q becomes %q, want %q", text, b.String(), want)
			}
		}
		if err := (actions.Inert{Err: errors.New(text)}); err.Error() != want || err.Unwrap().Error() != text {
			t.Errorf("%q becomes %q", text, err)
		}
	}
	broken := &actions.Inert{Err: iotest.ErrTimeout}
	if !errors.Is(broken, iotest.ErrTimeout) {
		t.Error("what is wrapped is lost")
	}
	if _, err := actions.Defuse(failing{}).Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a failing writer gives %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func FuzzDefuse(f *testing.F) {
	f.Add("a\n::error::x", 3)
	f.Add("##[error]", 2)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		var b strings.Builder
		out := actions.Defuse(&b)
		cut = max(0, min(cut, len(text)))
		for _, part := range []string{text[:cut], text[cut:]} {
			if _, err := out.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if found := commands(b.String()); len(found) > 0 {
			t.Errorf("%q has the commands %q", b.String(), found)
		}
	})
}
