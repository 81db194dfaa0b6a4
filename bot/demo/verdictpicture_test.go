package demo

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"github.com/kernelgate/kernelgate/bot/pages/browser"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// commentStyle formats a comment as GitHub does.
const commentStyle = `body{margin:0;font:15px/1.5 sans-serif;color:#1f2328}main{padding:8px 24px;width:780px}h3{font-size:1.3em}
table{border-collapse:collapse;margin:0 0 16px}td,th{border:1px solid #d1d9e0;padding:6px 13px}tr:nth-child(2n){background:#f6f8fa}
code{font-family:monospace;background:#eff1f3;font-size:85%;padding:.2em .4em;border-radius:6px}`

// TestVerdictPicture takes the screenshot for the README: committed evidence, judged by the shipped
// policy. It is not a test, and it runs only if a folder is given.
func TestVerdictPicture(t *testing.T) {
	if *screenshots == "" {
		t.Skip("no folder given; see make screenshots")
	}
	data, err := os.ReadFile("../../kernels/sdpa_fp8/evidence/stage6_split.json")
	if err != nil {
		t.Fatal(err)
	}
	evidence, err := gates.ParseEvidence("stage6_split.json", data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := policies.Shipped("h200")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := policy.Parse("h200.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe(), html.WithHardWraps()))
	if err := md.Convert([]byte(report.Markdown(gates.Judge(policy, "h200.yaml", evidence), report.Options{})), &body); err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>A verdict</title><style>` + commentStyle + `</style><main>` + body.String() + `</main>`))
	}))
	t.Cleanup(site.Close)
	tab := browser.Open(t).Tab(browser.Look{Width: 840, Height: 800, Scale: 1.5})
	tab.Go(site.URL)
	picture, err := smaller(tab.Picture("main"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, "verdict.png"), picture, 0o644); err != nil {
		t.Fatal(err)
	}
}
