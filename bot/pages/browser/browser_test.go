package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestFinds checks that the inspections find every fault of a page that has them all.
func TestFinds(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; img-src 'self'")
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!doctype html><title>x</title><body><p style="color: red">red</p><img src="data:,"><pre>` + strings.Repeat("wide", 200) +
			`</pre><a href="/a" id="skipped">one</a><button>two</button><script src="/wrong.js"></script>`))
	})
	mux.HandleFunc("/wrong.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write([]byte(`document.body.append("scripts");
			document.addEventListener("keydown", e => { if (e.key === "Tab") { e.preventDefault(); document.querySelector("button").style.outline = "none"; document.querySelector("button").focus(); } });
			nowhere();`))
	})
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	tab := Open(t).Tab(Look{Width: 320})
	tab.Go(site.URL)
	for what, found := range map[string][]string{
		"nowhere is not defined": tab.Complaints(), "image-alt": tab.Axe(), "the page is": tab.Sideways(), `not reached: <a href="/a"`: tab.Keyboard(), "no outline: <button": tab.Keyboard(),
	} {
		if !strings.Contains(strings.Join(found, "\n"), what) {
			t.Errorf("%q is not found: %q", what, found)
		}
	}
	tab.Go(site.URL)
	if found := strings.Join(tab.Complaints(), "\n"); !strings.Contains(found, "Content Security Policy") || !strings.Contains(found, "style") {
		t.Errorf("the policy refused something, and the console says %q", found)
	}
	with := tab.Text("body")
	tab.Look(Look{NoScript: true})
	tab.Go(site.URL)
	if without := tab.Text("body"); without+"scripts" != with {
		t.Errorf("with scripts it ends with %.20q, without %.20q", with[max(0, len(with)-20):], without[max(0, len(without)-20):])
	}
}

// TestUntil checks that a page may be replaced at any moment while something is waited for.
func TestUntil(t *testing.T) {
	var loads atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if n := loads.Add(1); n < 30 {
			_, _ = fmt.Fprintf(w, `<!doctype html><title>x</title>%d<script>setTimeout(() => location.reload(), %d)</script>`, n, n%7)
			return
		}
		_, _ = w.Write([]byte("<!doctype html><title>x</title>the last page"))
	}))
	t.Cleanup(site.Close)
	tab := Open(t).Tab(Look{Width: 320})
	tab.Go(site.URL)
	tab.Until(`document.body.innerText.includes("the last page")`)
}

// TestFetchSaysWhatToDo checks that the script says what to do if there is no browser.
func TestFetchSaysWhatToDo(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	empty := t.TempDir()
	for _, c := range []struct {
		name string
		env  []string
		args []string
		exit int
		want string
	}{
		{"wrong usage", []string{"HOME=" + empty}, []string{"--what"}, 2, "usage: fetch-browser.sh [--check]"},
		{"no home", []string{"PATH=" + empty}, nil, 3, "neither HOME nor XDG_CACHE_HOME is set; set one of them"},
		{"not there", []string{"HOME=" + empty}, []string{"--check"}, 3, "run fetch-browser.sh without --check"},
		{"no npm", []string{"HOME=" + empty, "PATH=" + tools(t, "uname")}, nil, 3, "npm not found; install it (Node.js brings npm and node)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(bash, append([]string{"fetch-browser.sh"}, c.args...)...)
			cmd.Env = c.env
			out, err := cmd.CombinedOutput()
			if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != c.exit || !strings.Contains(string(out), c.want) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// tools returns a folder that contains only these programs.
func tools(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err == nil {
			err = exec.Command("ln", "-s", path, filepath.Join(dir, name)).Run()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
