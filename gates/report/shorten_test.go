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
		{len(full), []string{"All figures", "Provenance"}, []string{"Shortened"}},
		{len(full) - 1, []string{"Provenance", "Shortened: see `report.md` in the run's results for all figures."}, []string{"All figures"}},
		{len(full) - 2600, []string{"### Correctness", "Shortened"}, []string{"Provenance and"}},
		{1700, []string{"✅ PASS", "**Performance**", "### Gates", "Shortened"}, []string{"### Performance"}},
		{60, []string{"## ✅ PASS — `sdpa_fp8`"}, []string{"Gates"}},
		{9, []string{"PASS"}, []string{"sdpa"}},
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

// A summary that is a book is cut, the title stays.
func TestShortenCutsTheSummary(t *testing.T) {
	v := passing()
	v.Summary = strings.Repeat("日本語 ", 8_000)
	got := Markdown(v, Options{MaxBytes: 16_000})
	if len(got) > 16_000 || len(got) < 4_000 {
		t.Errorf("%d bytes, want most of 16000", len(got))
	}
	if !strings.HasPrefix(got, "## ✅ PASS") || !strings.HasSuffix(got, "…\n") {
		t.Errorf("begins %q, ends %q", got[:30], got[len(got)-10:])
	}
}
