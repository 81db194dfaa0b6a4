package demo

import (
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/local"
	"github.com/kernelgate/kernelgate/bot/local/localtest"
	"github.com/kernelgate/kernelgate/bot/pages/browser"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// hold creates a pipe at which the runner stops, until the test calls release: opening a pipe for
// reading blocks until another process opens it for writing.
func hold(t *testing.T, name string) (release func()) {
	t.Helper()
	pipe := filepath.Join(os.Getenv("TMPDIR"), name)
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}

// watched returns a world with the small kernel.
func watched(t *testing.T) *world {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	key, err := testKey()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	opt := Options{
		Version: "kernelgate test", Seed: 7, Now: time.Now, Getenv: os.Getenv, Out: io.Discard, Live: &tape{}, key: key, patience: 5 * time.Minute,
		files: localtest.Small(),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	w, err := newWorld(ctx, dir, opt, local.NewTeller(io.Discard, opt.Live, time.Now))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return w
}

// begun waits for the run of a pull request, and returns its name.
func (w *world) begun(t *testing.T, pr *embedded.PR) (job string) {
	t.Helper()
	err := w.Wait(pr, "a run", w.patience, func() bool {
		last, err := w.Bot.Journal.Last(w.Ctx, w.ID(pr).String())
		if err != nil || w.Bot.Ledger.WaitFor(w.Ctx, last.Seq) != nil {
			return false
		}
		runs, err := w.Bot.Ledger.Runs(w.Ctx, ledger.RunFilter{Change: w.ID(pr), Limit: 1})
		if err == nil && len(runs) > 0 {
			job = runs[0].Job
		}
		c, _ := w.Check(pr)
		return job != "" || c.Status == "completed"
	})
	if err != nil || job == "" {
		t.Fatalf("no run: %v; %s", err, w.LastCheck(pr))
	}
	return job
}

// TestInBrowser checks that the page of a run shows its progress and its result without being
// reloaded. Then it crawls all links of the bot and the hub, and inspects every page in a browser.
func TestInBrowser(t *testing.T) {
	b := browser.Open(t)
	w := watched(t)
	begin, goOn := hold(t, "begin"), hold(t, "go-on")
	if _, err := w.Repo.PushCommit(embedded.Commit{Branch: "fast", Files: map[string]string{localtest.SmallSource: localtest.SmallFast}, Message: "Faster", Author: writer}); err != nil {
		t.Fatal(err)
	}
	pr, err := w.Repo.OpenPR(embedded.PROptions{Title: "Faster", Head: "fast", Author: writer})
	if err != nil {
		t.Fatal(err)
	}
	job := w.begun(t, pr)
	tab := b.Tab(browser.Look{Width: 320})
	tab.Go(w.Bot.URL() + "/runs/" + job)
	browser.Eval[bool](tab, "window.stays = true")
	tab.Until(`document.querySelector("[data-live]").innerText.includes("Runs on local")`)
	b.Everything(w.Bot.URL() + "/runs/" + job)
	begin()
	tab.Until(`document.querySelector("[data-live]").innerText.includes("the test holds it")`)
	tab.Until(`document.querySelector("#log").innerText.includes("build: the test holds it")`)
	goOn()
	tab.Until(`!document.querySelector("[data-live]") && /PASS/.test(document.querySelector("h1").innerText)`)
	if !browser.Eval[bool](tab, "window.stays === true") {
		t.Error("the page was loaded again")
	}
	if says := tab.Text("main"); !strings.Contains(says, "correctness") || !strings.Contains(says, "Where it comes from") {
		t.Errorf("the page says\n%s", says)
	}
	if news := browser.Eval[string](tab, `document.querySelector("#news").innerText + document.title`); strings.Count(news, "small: ") != 2 {
		t.Errorf("who listens hears %q", news)
	}
	for _, c := range tab.Complaints() {
		t.Error(c)
	}
	if _, err := w.concluded(pr, 0); err != nil {
		t.Fatal(err)
	}
	pages := w.crawl(t)
	for _, page := range []string{"/changes/N", "/kernels/olga/kernels/kernels/small", "/compare", "/policy", "/runs/N", "/olga/kernels/pulls", "/olga/kernels/pull/N/checks"} {
		if !slices.ContainsFunc(pages, func(at string) bool { return strings.HasSuffix(kindOf(at), page) }) {
			t.Errorf("no link leads to %s: %q", page, pages)
		}
	}
	for _, page := range pages {
		// The hub has one template, so its fullest pages stand for all.
		if kind, ours := strings.CutPrefix(kindOf(page), strings.TrimPrefix(w.Hub.URL(), "http://")); ours && !slices.Contains([]string{"/olga/kernels", "/olga/kernels/pull/N", "/olga/kernels/pull/N/files"}, kind) {
			continue
		}
		if says := b.Everything(page); len(says) < 20 {
			t.Errorf("%s says only %q", page, says)
		}
	}
}

// crawl follows every link of the bot's and the hub's pages, and returns one page of each kind.
func (w *world) crawl(t *testing.T) []string {
	t.Helper()
	seen, kinds := map[string]bool{}, map[string]string{}
	todo := []string{w.Bot.URL() + "/", w.Hub.URL() + "/"}
	for len(todo) > 0 {
		page := todo[0]
		todo = todo[1:]
		if seen[page] {
			continue
		}
		seen[page] = true
		answer, err := http.Get(page)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(page, "/live") {
			answer.Body.Close()
			continue
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("%s answers %s, %v", page, answer.Status, err)
			continue
		}
		if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
			continue
		}
		kinds[kindOf(page)] = page
		for _, link := range linksOf(t, page, string(body)) {
			if !strings.HasPrefix(link+"/", w.Bot.URL()+"/") && !strings.HasPrefix(link+"/", w.Hub.URL()+"/") {
				t.Errorf("%s leads to %s, which is elsewhere", page, link)
				continue
			}
			todo = append(todo, link)
		}
	}
	var pages []string
	for _, page := range kinds {
		pages = append(pages, page)
	}
	slices.Sort(pages)
	return pages
}

var (
	linkPattern = regexp.MustCompile(`(?:href|src|action|data-live)="([^"]*)"`)
	namePattern = regexp.MustCompile(`[0-9a-f]{12,}|[0-9]+`)
)

// linksOf returns the links of a page, except those that need an action first.
func linksOf(t *testing.T, page, body string) []string {
	t.Helper()
	at, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range linkPattern.FindAllStringSubmatch(body, -1) {
		link, err := at.Parse(html.UnescapeString(m[1]))
		if err != nil {
			t.Errorf("%s leads to %q: %v", page, m[1], err)
			continue
		}
		link.Fragment = ""
		all = append(all, link.String())
	}
	return all
}

// kindOf is equal for pages that differ in content but not in form.
func kindOf(page string) string {
	at, err := url.Parse(page)
	if err != nil {
		return page
	}
	part := strings.Split(strings.TrimSuffix(at.Path, "/"), "/")
	if len(part) > 4 && (part[3] == "blob" || part[3] == "tree") {
		part = part[:4]
	}
	kind := namePattern.ReplaceAllString(strings.Join(part, "/"), "N")
	for _, first := range []string{"/runs/", "/changes/"} {
		if strings.HasPrefix(kind, first) {
			kind = first + "N"
		}
	}
	return at.Host + kind
}
