package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A docPage is one Markdown document of the repository.
type docPage struct {
	file   string // path from the root, with slashes
	text   string
	prose  string // the text without its fenced blocks
	blocks []block
}

// A block is the content of a fenced block.
type block struct {
	info string // what follows the opening fence, such as "sh"
	line int    // of the opening fence
	text string
}

// language returns the first word of the info string.
func (b block) language() string {
	language, _, _ := strings.Cut(b.info, " ")
	return language
}

// docPages returns all documents, except for test data.
func docPages(t *testing.T) []docPage {
	t.Helper()
	var all []docPage
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "results" || name == "bin" || name == ".git"):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, ".md"):
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			all = append(all, parsePage(t, filepath.ToSlash(file), string(text)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("only %d documents were found", len(all))
	}
	return all
}

var fence = regexp.MustCompile("^ *```(.*)$")

func parsePage(t *testing.T, file, text string) docPage {
	t.Helper()
	p := docPage{file: file, text: text}
	var prose strings.Builder
	var open *block
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case m != nil && open == nil:
			open = &block{info: strings.TrimSpace(m[1]), line: i + 1}
		case m != nil:
			p.blocks = append(p.blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		default:
			prose.WriteString(line + "\n")
		}
	}
	if open != nil {
		t.Errorf("%s:%d: the block has no end", file, open.line)
	}
	p.prose = prose.String()
	return p
}

var heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)

// anchors returns the fragments that GitHub generates for a page's headings.
func (p docPage) anchors() []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(p.prose, -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, linkText.ReplaceAllString(m[1], "$1"))
		all = append(all, slug)
	}
	return all
}

var (
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	commit40 = regexp.MustCompile(`^https://github\.com/kernelgate/kernelgate/commit/([0-9a-f]+)$`)
)

// TestLinksLead checks that every link from a document into the repository leads to an existing
// file and heading, and every link to one of our commits to a commit of this repository.
func TestLinksLead(t *testing.T) {
	all := docPages(t)
	byFile := map[string]docPage{}
	for _, p := range all {
		byFile[p.file] = p
	}
	shallow, err := exec.Command("git", "rev-parse", "--is-shallow-repository").Output()
	wholeHistory := err == nil && strings.TrimSpace(string(shallow)) == "false"
	links := 0
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(p.prose, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if hash := commit40.FindStringSubmatch(target); hash != nil && wholeHistory {
				if err := exec.Command("git", "cat-file", "-e", hash[1]+"^{commit}").Run(); err != nil {
					t.Errorf("%s: there is no commit %s", p.file, hash[1])
				}
			}
			if strings.Contains(target, ":") {
				continue
			}
			links++
			file := p.file
			if target != "" {
				file = path.Join(path.Dir(p.file), target)
			}
			if _, err := os.Stat(filepath.FromSlash(file)); err != nil {
				t.Errorf("%s: the link %s leads nowhere", p.file, m[1])
			} else if to, ok := byFile[file]; anchor != "" && ok && !slices.Contains(to.anchors(), anchor) {
				t.Errorf("%s: the link %s leads to no heading of %s", p.file, m[1], file)
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// TestPagesAreLinked checks that every document is linked from another, because nobody reads a page
// without links to it.
func TestPagesAreLinked(t *testing.T) {
	linked := map[string]bool{"README.md": true, "CHANGELOG.md": true}
	all := docPages(t)
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(p.prose, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			file := path.Join(path.Dir(p.file), target)
			linked[file], linked[path.Join(file, "README.md")] = true, true
		}
	}
	for _, p := range all {
		if !linked[p.file] {
			t.Errorf("no document has a link to %s", p.file)
		}
	}
}

// TestReadmeIsShort limits the length of the README.
func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) > 150 {
		t.Errorf("%d lines, want at most 150", len(lines))
	}
	if words := len(strings.Fields(string(text))); words > 900 {
		t.Errorf("%d words, want at most 900", words)
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > 100 {
			t.Errorf("line %d has %d characters, want at most 100", i+1, n)
		}
	}
}
