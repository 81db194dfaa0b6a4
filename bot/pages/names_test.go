package pages_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/repos"
)

// other returns the addresses that do not answer with a status.
func (w *world) other(site string, list []string, status int, header ...string) (wrong []string) {
	w.Helper()
	for _, path := range list {
		if answer, _ := w.get(site+path, header...); answer.StatusCode != status {
			wrong = append(wrong, path+" answers "+answer.Status)
		}
	}
	return wrong
}

// TestNameOfAnother checks that a name opens nothing: eve may read repository 2, and the pages show
// repository 1 under the name of hers.
func TestNameOfAnother(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	w.open(change.ID{Kind: change.Pull, Repo: 2, Number: 1}, "org/kernels", "Mine", "own")
	w.settle()
	site := w.site(guard(hub(t).URL)).URL
	eve, rita := w.login(site, "eve"), w.login(site, "rita")
	private := slices.DeleteFunc(addresses(jobs), func(path string) bool { return strings.HasSuffix(path, "/kernels/org/kernels") }) // hers, too
	if wrong := w.other(site, private, http.StatusNotFound, "Cookie", eve); wrong != nil {
		t.Errorf("eve: %q", wrong)
	}
	if _, body := w.get(site+"/kernels/org/kernels", "Cookie", eve); strings.Contains(body, "sdpa") || !strings.Contains(body, "own") {
		t.Errorf("by the name eve sees %s", body)
	}
	if _, body := w.get(site+"/kernels/org/kernels", "Cookie", rita); !strings.Contains(body, "sdpa") || strings.Contains(body, "kernels/own") {
		t.Errorf("by the name rita sees %s", body)
	}
}

// TestRenamed checks that pages have today's name of a repository in every place, and that the name
// of a change, which is the one of its time, is not shown.
func TestRenamed(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	w.tell(repos.Named{Repo: 1, Name: "org/secret"})
	w.open(change.ID{Kind: change.Pull, Repo: 1, Number: 20}, "org/kernels", "Late delivery", "sdpa")
	w.settle()
	site := w.site(guard(hub(t).URL)).URL
	rita := w.login(site, "rita")
	for _, path := range []string{"/", "/runs/" + jobs["first"], "/changes/pr-1-7", "/kernels/org/secret", "/feed.atom", "/search?q=sdpa"} {
		answer, body := w.get(site+path, "Cookie", rita)
		if answer.StatusCode != http.StatusOK || strings.Contains(body, "org/kernels") || !strings.Contains(body, "org/secret") {
			t.Errorf("%s answers %s:\n%s", path, answer.Status, body)
		}
	}
	if answer, _ := w.get(site+"/kernels/org/kernels", "Cookie", rita); answer.StatusCode != http.StatusNotFound {
		t.Errorf("the old name answers %s", answer.Status)
	}
}

// TestRemoved checks that only the token opens the pages of a repository that the bot cannot reach,
// also if the repository was public, and that they open again when it comes back.
func TestRemoved(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	w.tell(repos.MadePublic{Repo: 1, Name: "org/kernels"})
	g := guard(hub(t).URL)
	g.Public = []string{"org/kernels"}
	site := w.site(g).URL
	rita := w.login(site, "rita")
	if wrong := w.other(site, addresses(jobs), http.StatusOK); wrong != nil {
		t.Errorf("public: %q", wrong)
	}
	w.tell(repos.Removed{Repo: 1, Why: "deleted"})
	for who, header := range map[string][]string{"nobody": nil, "rita": {"Cookie", rita}} {
		if wrong := w.other(site, addresses(jobs), http.StatusNotFound, header...); wrong != nil {
			t.Errorf("%s: %q", who, wrong)
		}
	}
	if wrong := w.other(site, addresses(jobs), http.StatusOK, "Authorization", "Bearer "+pagesToken); wrong != nil {
		t.Errorf("with the token: %q", wrong)
	}
	w.tell(repos.Named{Repo: 1, Name: "org/kernels"})
	if wrong := w.other(site, addresses(jobs), http.StatusOK); wrong != nil {
		t.Errorf("back: %q", wrong)
	}
}

// TestPublicIsTheRepositoryThatWasMeant checks that a name in the configuration means one
// repository: it stays public under a new name, and its successor is private until the operator
// writes its number.
func TestPublicIsTheRepositoryThatWasMeant(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	w.tell(repos.MadePublic{Repo: 1, Name: "org/kernels"})
	w.tell(repos.Named{Repo: 1, Name: "org/cuda"})
	w.open(change.ID{Kind: change.Pull, Repo: 2, Number: 1}, "org/kernels", "Mine", "own")
	w.settle()
	for name, c := range map[string]struct {
		public   []string
		one, two int
	}{
		"the name":           {[]string{"Org/Kernels"}, http.StatusOK, http.StatusNotFound},
		"the new name":       {[]string{"org/cuda"}, http.StatusNotFound, http.StatusNotFound}, // before the bot has bound it
		"the number of one":  {[]string{"org/kernels@1"}, http.StatusOK, http.StatusNotFound},
		"the number of two":  {[]string{"org/kernels@2"}, http.StatusNotFound, http.StatusOK},
		"nothing":            {nil, http.StatusNotFound, http.StatusNotFound},
		"two names, one new": {[]string{"org/kernels", "org/kernels@2"}, http.StatusOK, http.StatusOK},
	} {
		g := guard("")
		g.Public = c.public
		site := w.site(g).URL
		first, _ := w.get(site + "/runs/" + jobs["first"])
		second, _ := w.get(site + "/changes/pr-2-1")
		if first.StatusCode != c.one || second.StatusCode != c.two {
			t.Errorf("%s: repository 1 answers %s, and repository 2 %s", name, first.Status, second.Status)
		}
	}
	w.tell(repos.MadePrivate{Name: "org/kernels"})
	g := guard("")
	g.Public = []string{"org/kernels"}
	if answer, _ := w.get(w.site(g).URL + "/runs/" + jobs["first"]); answer.StatusCode != http.StatusNotFound {
		t.Errorf("a name that was withdrawn answers %s", answer.Status)
	}
}
