package pages_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/pages/browser"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
)

// paper is the width of a printed page in pixels.
const paper = 720

// TestPictures takes pictures of every kind of page at three widths, in light and dark mode, and printed, for somebody to look at. It is not a
// test, and it runs only if KERNELGATE_PICTURES names a folder. KERNELGATE_ONLY chooses the pages whose name contains it.
func TestPictures(t *testing.T) {
	dir := os.Getenv("KERNELGATE_PICTURES")
	if dir == "" {
		t.Skip("KERNELGATE_PICTURES names no folder")
	}
	surfaces := map[string]string{}
	w := newWorld(t)
	jobs := story(w)
	open := w.site(pages.Everybody{}).URL
	for name, path := range map[string]string{
		"home": "/", "run-pass": "/runs/" + jobs["first"], "run-broken": "/runs/" + jobs["broken"], "run-live": "/runs/" + jobs["running"], "run-queued": "/runs/" + jobs["queued"],
		"change": "/changes/pr-1-7", "kernel-main": "/kernels/org/kernels/kernels/sdpa", "compare-empty": "/compare", "compare": "/compare?a=" + jobs["stage1"] + "&b=" + jobs["stage2"],
		"policy": "/policy?change=pr-1-7", "repository": "/kernels/org/kernels", "search": "/search?q=1", "search-none": "/search?q=nothing", "sorry": "/runs/none",
	} {
		surfaces[name] = open + path
	}
	private := w.site(guard(hub(t).URL)).URL
	surfaces["login"], surfaces["private"], surfaces["private-home"] = private+"/login?to=/runs/x", private+"/runs/"+jobs["first"], private+"/"
	surfaces["home-first"] = newWorld(t).site(pages.Everybody{}).URL + "/"
	recorded := filepath.Join(t.TempDir(), "sdpa_fp8")
	for _, name := range []string{"stage1", "stage2", "stage3a", "stage3b", "stage4", "stage5", "stage6_wgmma", "stage6_split", "stage6_fp8", "stage7", "broken", "spills"} {
		copyFile(t, shippedEvidence+name+".json", filepath.Join(recorded, name+".json"))
	}
	shipped, err := policies.Shipped("h200")
	if err != nil {
		t.Fatal(err)
	}
	rules := parsed(t, "h200.yaml", string(shipped))
	f, err := pages.OpenFolder(recorded, func(e *gates.Evidence) *gates.Verdict { return gates.Judge(rules, "h200.yaml", e) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	folder := serverOf(t, f)
	for name, path := range map[string]string{
		"folder-home": "/", "folder-kernel": "/kernels/results/sdpa_fp8/sdpa_fp8", "run-slower": "/runs/stage6_wgmma", "run-spills": "/runs/spills", "run-split": "/runs/stage6_split",
	} {
		surfaces[name] = folder + path
	}
	surfaces["run-many"] = serverOf(t, manyShapes(t, nil)) + "/runs/choose"
	found, _ := searchFolder(t)
	if f, err = pages.OpenFolder(found, nil, nil); err != nil {
		t.Fatal(err)
	}
	searches := serverOf(t, f)
	surfaces["searches"], surfaces["tune-ended"], surfaces["tune-running"] = searches+"/searches", searches+"/searches/tune-ended", searches+"/searches/tune-growing"
	tab := browser.Open(t).Tab(browser.Look{})
	for name, url := range surfaces {
		if !strings.Contains(name, os.Getenv("KERNELGATE_ONLY")) {
			continue
		}
		for _, width := range []int{1280, 768, 375, paper} {
			for _, mode := range []string{"light", "dark", "print"} {
				if (mode == "print") != (width == paper) {
					continue
				}
				look := browser.Look{Width: width, Height: 800, Dark: mode == "dark", Scale: 1}
				tab.Look(look)
				tab.Go(url)
				if mode == "print" { // the rules for paper, on the screen
					browser.Eval[bool](tab, `fetch(document.querySelector("link[rel=stylesheet]").href).then(r => r.text()).then(css => {
						const sheet = new CSSStyleSheet();
						sheet.replaceSync(css.replace("@media print", "@media all"));
						document.adoptedStyleSheets = [sheet];
						return true;
					})`)
				}
				look.Height = min(6000, max(400, browser.Eval[int](tab, "document.documentElement.scrollHeight")))
				tab.Look(look)
				for _, cut := range tab.Cut() {
					t.Errorf("%s at %d pixels: %s", name, width, cut)
				}
				file := filepath.Join(dir, name+"-"+strconv.Itoa(width)+"-"+mode+".png")
				if err := os.WriteFile(file, tab.Picture(""), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
