package docs

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/cli"
)

// TestDocumentedCommands checks that the program accepts every kernelgate command line in a
// document or a help text: command, flags and number of arguments. Commands that only read a
// repository are run. For make and go test it checks that the targets and packages exist.
func TestDocumentedCommands(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir() // a repository with two kernels and a policy
	for _, folder := range []string{"kernels/sdpa_cpu", "kernels/sdpa_fp8", ".github"} {
		if err := os.CopyFS(filepath.Join(scratch, folder), os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
	}
	parsed, ran := 0, map[string]bool{}
	check := func(where string, words []string) {
		switch {
		case len(words) > 3 && words[0] == "go" && words[1] == "run" && words[2] == ".":
			words = append([]string{"kernelgate"}, words[3:]...)
		case len(words) > 2 && words[0] == "go" && words[1] == "test":
			for _, word := range words[2:] {
				if strings.HasPrefix(word, "./") && word != "./..." {
					if _, err := os.Stat(filepath.FromSlash(strings.TrimSuffix(word, "/..."))); err != nil {
						t.Errorf("%s: %v", where, err)
					}
				}
			}
		case len(words) > 1 && words[0] == "make" && !strings.Contains(words[1], "="):
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(words[1]) + `:`).Match(makefile) {
				t.Errorf("%s: the Makefile has no target %s", where, words[1])
			}
		}
		if words[0] != "kernelgate" {
			return
		}
		if err := parseCommand(words[1:]); err != nil {
			t.Errorf("%s: %s: %v", where, strings.Join(words, " "), err)
			return
		}
		parsed++
		if line := strings.Join(words, " "); onlyReads(words[1:]) && !ran[line] {
			ran[line] = true
			t.Run(line, func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), "kernelgate", words[1:]...)
				cmd.Dir = scratch
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", where, err, out)
				}
			})
		}
	}
	for _, p := range docPages(t) {
		if p.file == "CHANGELOG.md" { // it also names commands that no longer exist
			continue
		}
		for _, b := range p.blocks {
			where := fmt.Sprintf("%s:%d", p.file, b.line)
			switch b.language() {
			case "sh":
				if out, err := exec.Command("bash", "-n", "-c", b.text).CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", where, err, out)
				}
			case "console":
				var commands strings.Builder
				for _, s := range session(b.text) {
					commands.WriteString(s.command + "\n")
				}
				b.text = commands.String()
			default:
				continue
			}
			for _, words := range shellCommands(b.text) {
				check(where, words)
			}
		}
		for _, m := range codeSpan.FindAllStringSubmatch(p.prose, -1) {
			if strings.HasPrefix(m[1], "kernelgate ") {
				for _, words := range shellCommands(m[1]) {
					check(p.file, words)
				}
			}
		}
	}
	if parsed < 40 || len(ran) < 4 {
		t.Errorf("only %d commands were parsed and %d of them run", parsed, len(ran))
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Example == "" && !c.Hidden {
			t.Errorf("%s --help has no example", c.CommandPath())
		}
		for _, words := range shellCommands(c.Example) {
			if words[0] == "kernelgate" {
				if err := parseCommand(words[1:]); err != nil {
					t.Errorf("%s --help: %s: %v", c.CommandPath(), strings.Join(words, " "), err)
				}
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(cli.Command(io.Discard, io.Discard))
}

// parseCommand parses a command line as the program does, and runs nothing.
func parseCommand(args []string) error {
	root := cli.Command(io.Discard, io.Discard)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	root.InitDefaultVersionFlag()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if !cmd.Runnable() && len(args) > 1 {
		return fmt.Errorf("%s does nothing by itself", cmd.CommandPath())
	}
	if len(cmd.Flags().Args()) == 0 {
		return nil // prose may name a command without its arguments
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// onlyReads reports whether the command needs only a repository and writes nothing.
func onlyReads(args []string) bool {
	for _, arg := range args {
		if strings.HasPrefix(arg, "results/") || strings.ToUpper(arg) == arg && arg != "." {
			return false
		}
	}
	name := strings.Join(args[:min(2, len(args))], " ")
	return len(args) > 2 && (name == "policy lint" || name == "policy explain") || len(args) > 3 && name == "policy simulate" ||
		len(args) > 1 && slices.Contains([]string{"history", "judge", "compare", "completion"}, args[0])
}

// shellCommands splits shell lines into simple commands and their words. It supports quotes,
// comments, continued lines, pipes, lists and redirections, which is all that the documents use.
func shellCommands(text string) [][]string {
	var all [][]string
	var words []string
	end := func() {
		for len(words) > 0 && (words[0] == "sudo" || words[0] == "do" || regexp.MustCompile(`^\w+=`).MatchString(words[0])) {
			words = words[1:]
		}
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	token := regexp.MustCompile(`'[^']*'|"[^"]*"|\\\n|#|<\(|[<>]|[|&;()\n]+|[ \t]+|[^\s'"|&;()<>#\\]+|.`)
	word, inWord, skip := "", false, false
	flush := func() {
		if inWord && !skip {
			words = append(words, word)
		}
		if inWord {
			skip = false
		}
		word, inWord = "", false
	}
	for len(text) > 0 {
		part := token.FindString(text)
		text = text[len(part):]
		switch {
		case part == "#" && !inWord:
			_, text, _ = strings.Cut(text, "\n")
			flush()
			end()
		case part == "\\\n" || strings.Trim(part, " \t") == "":
			flush()
		case part == "<(" || strings.Trim(part, "|&;()\n") == "":
			flush()
			end()
		case part == "<" || part == ">":
			flush()
			skip = true // skip the file that follows
		case part[0] == '\'' || part[0] == '"':
			word, inWord = word+part[1:len(part)-1], true
		default:
			word, inWord = word+part, true
		}
	}
	flush()
	end()
	return all
}

// A step is a command of a console block with the output that the page shows.
type step struct {
	command string
	output  []string
}

// session parses a console block: commands follow "$ ", everything else is output.
func session(text string) []step {
	var all []step
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, step{command: command})
		} else if n := len(all); n > 0 {
			all[n-1].output = append(all[n-1].output, line)
		}
	}
	return all
}

// TestQuickstart executes the quickstart as written: it creates the files and runs the commands in
// an empty folder. Each command must print what the page shows; "…" stands for anything.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(line int, command string) string {
		cmd := exec.CommandContext(t.Context(), "bash", "-ec", command)
		cmd.Dir, cmd.WaitDelay = dir, time.Minute
		cmd.Env = append(os.Environ(), "KERNELGATE_SOURCE="+source, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TEMPLATE_DIR=",
			"GIT_AUTHOR_NAME=someone", "GIT_AUTHOR_EMAIL=someone@example.org", "GIT_COMMITTER_NAME=someone", "GIT_COMMITTER_EMAIL=someone@example.org")
		out, err := cmd.CombinedOutput()
		if err != nil && !(cmd.ProcessState.ExitCode() == 1 && strings.Contains(string(out), "DEFER")) {
			t.Fatalf("docs/quickstart.md:%d: %s: %v\n%s", line, command, err, out)
		}
		return strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(string(out))
	}
	commands := 0
	for _, b := range parsePage(t, "docs/quickstart.md", string(text)).blocks {
		if _, file, ok := strings.Cut(b.info, " "); ok {
			at := filepath.Join(dir, filepath.FromSlash(file))
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(b.text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if b.language() != "console" {
			continue
		}
		for _, s := range session(b.text) {
			commands++
			rest := run(b.line, s.command)
			for _, line := range s.output {
				pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(line)), "…", ".*")
				found := regexp.MustCompile(pattern).FindStringIndex(rest)
				if found == nil {
					t.Fatalf("docs/quickstart.md:%d: %s does not print\n%s\nit prints\n%s", b.line, s.command, line, rest)
				}
				rest = rest[found[1]:]
			}
		}
	}
	if commands < 5 {
		t.Errorf("the quickstart has only %d commands", commands)
	}
}
