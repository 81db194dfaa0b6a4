package actions_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	longPattern    = regexp.MustCompile(`\b[0-9a-f]{40,64}\b`)
	shortPattern   = regexp.MustCompile(`\b[0-9a-f]{12}\b`)
	numberPattern  = regexp.MustCompile(`comment-[0-9]+`)
	timePattern    = regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}[T ][0-9:.]{5,}(?:Z| UTC)?`)
	tookPattern    = regexp.MustCompile(`in [0-9.e-]+[ \x{a0}](?:ms|s)\b`)
	historyPattern = regexp.MustCompile(`kernelgate:history:[A-Za-z0-9+/=]+`)
	changePattern  = regexp.MustCompile(`kernelgate:pr-[0-9]+-`)
)

// golden compares what a person sees of a job with a file: the summary, the log and the pull
// request's conversation.
func (w *world) golden(name string, j job, pr *embedded.PR) {
	w.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "# Step summary\n\n%s\n\n# Log\n\n```text\n%s```\n\n# Outputs\n\n```text\n%s```\n\n# Conversation\n\n", j.summary, j.log, j.output)
	for _, c := range pr.Comments() {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", c.Author, c.Body)
	}
	w.goldenText(name, b.String())
}

// goldenText compares a text with a file. It replaces commits and times by constants.
func (w *world) goldenText(name, text string) {
	w.Helper()
	got := strings.NewReplacer(w.hub.URL(), "https://hub", w.dir, "TEMP").Replace(text)
	got = regexp.MustCompile(`kernelgate-results-[0-9]+`).ReplaceAllString(got, "kernelgate-results")
	got = historyPattern.ReplaceAllString(got, "kernelgate:history:…")
	got = changePattern.ReplaceAllString(got, "kernelgate:pr-1-")
	seen := map[string]string{}
	for _, sha := range longPattern.FindAllString(got, -1) {
		if seen[sha] == "" {
			seen[sha] = fmt.Sprintf("<commit %d>", len(seen)+1)
		}
	}
	for sha, is := range seen {
		got = strings.ReplaceAll(got, sha, is)
		got = regexp.MustCompile(`\b`+sha[:12]+`\b`).ReplaceAllString(got, is)
	}
	got = shortPattern.ReplaceAllString(got, "<hash>")
	got = numberPattern.ReplaceAllString(got, "comment-1")
	got = timePattern.ReplaceAllString(got, "<time>")
	got = tookPattern.ReplaceAllString(got, "in <seconds>")
	file := filepath.Join("testdata", name+".md")
	if *update {
		w.no(os.MkdirAll("testdata", 0o755))
		w.no(os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	w.no(err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		w.Errorf("%s (run with -update to accept):\n%s", file, diff)
	}
}
