package report

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShortenFitsAndKeepsTablesWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	v := tainted("日本 <b> | `x` @you")
	full := len(Markdown(v, Options{}))
	for range 30 {
		limit := 1 + rng.IntN(full+10)
		got := Markdown(v, Options{MaxBytes: limit})
		if len(got) > limit {
			t.Fatalf("%d bytes for a limit of %d", len(got), limit)
		}
		if !utf8.ValidString(got) {
			t.Fatalf("a rune is cut at limit %d", limit)
		}
		if limit > 300 {
			checkInert(t, got)
		}
		if open, closed := strings.Count(got, "<details>"), strings.Count(got, "</details>"); open != closed {
			t.Fatalf("%d details opened and %d closed at limit %d", open, closed, limit)
		}
	}
}

func TestShortenDropsTheLeastFirst(t *testing.T) {
	v := passing()
	full := Markdown(v, Options{})
	for _, c := range []struct {
		limit      int
		has, lacks []string
	}{
		{len(full), []string{"#### ✅ build", "Provenance"}, []string{"Shortened"}},
		{len(full) - 1, []string{"Provenance", "Shortened: see `report.md` in the run's results for build."}, []string{"#### ✅ build"}},
		{len(full) - 1200, []string{"#### ✅ correctness", "Shortened"}, []string{"Provenance and"}},
		{1000, []string{"✅ PASS", "**mission** | 1.39", "✅\u00a0build · ", "Shortened"}, []string{"#### ✅", "rule `default`"}},
		{100, []string{"### ✅ PASS · `sdpa_fp8` is 16.1\u00a0% faster on `mission`: 1.39 → 1.20\u00a0ms\n"}, []string{"**mission**"}},
		{9, []string{"PASS"}, []string{"faster"}},
	} {
		got := Markdown(v, Options{MaxBytes: c.limit})
		for _, s := range c.has {
			if !strings.Contains(got, s) {
				t.Errorf("limit %d: no %q in:\n%s", c.limit, s, got)
			}
		}
		for _, s := range c.lacks {
			if strings.Contains(got, s) {
				t.Errorf("limit %d: %q is still there", c.limit, s)
			}
		}
	}
}

// A summary that is a book is cut.
func TestHeadlineIsShort(t *testing.T) {
	v := wrong()
	v.Summary = strings.Repeat("日本語 ", 8_000)
	if n := utf8.RuneCountInString(Headline(v)); n > headlineRunes || n < headlineRunes/2 {
		t.Errorf("%d characters", n)
	}
}
