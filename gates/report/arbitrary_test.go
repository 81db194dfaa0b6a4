package report

import (
	"math"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

// hostileTexts is what a pull request might put where a name is expected.
var hostileTexts = []string{
	"", " ", "\n", "x", "target", "a|b", "`", "``", "```\ncode", "`a``b`", "~~~", "<b>", "</details>", "<!-- hidden -->", "-->", "--|--",
	"@octocat", "ping @octocat/team now", "#1", "octo/repo#12", "GH-7", "https://example.com/x", "www.example.com", "a@b.co",
	"[x](javascript:1)", "![i](http://e.co/i.png)", "[^1]", "- item", "+ item", "* item", "1. item", "1) item", "# title", "> quote", "---", "===",
	"    indented", "\tindented", "**bold**", "__bold__", "_it_", "~~gone~~", "$x$", "$`x`$", ":tada:", "k.cu:100:5: error", "&lt;", "&#64;octocat",
	"\\", "\\|", "a\\", "\x1b[31mred\x1b[0m", "\x1b]8;;http://e.co\x07link", "\u202eright to left", "\u200b", "\ufeffbom", "bad\xffutf8", "日本語のカーネル", "é́́", "👩‍👩‍👧",
	"\r\n| a | b |\r\n| --- | --- |", "- [ ] task", "<img src=x onerror=alert(1)>", "&", "x\u2028y", "a\x00b", "-", "+", "=", "12.", "  - x", "`<`", "`|`",
}

// arbitrary fills a verdict with anything: words of the format, hostile text,
// figures that are none, pointers to nothing.
func arbitrary(rng *rand.Rand) *gates.Verdict {
	var v gates.Verdict
	fill(rng, reflect.ValueOf(&v).Elem(), 0)
	return &v
}

func fill(rng *rand.Rand, v reflect.Value, depth int) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(rng.Int64N(1<<40)-1<<39, 0)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(rng, v.Field(i), depth+1)
		}
	case reflect.Pointer:
		if rng.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(rng, v.Elem(), depth+1)
		}
	case reflect.Slice:
		n := rng.IntN(4)
		if depth > 6 {
			n = 0 // a build has parts, which are builds
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(rng, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rng.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(rng, key, depth+1)
			fill(rng, value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(someText(rng, v.Type()))
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Float64:
		v.SetFloat(someFloat(rng))
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{0, 1, 2, 7, 1000, -1, math.MaxInt32, math.MaxInt64, math.MinInt64}[rng.IntN(9)])
	}
}

func someText(rng *rand.Rand, t reflect.Type) string {
	words := map[reflect.Type][]string{
		reflect.TypeFor[gates.Status]():  {"pass", "fail", "open", "inform", "not-run", "missing"},
		reflect.TypeFor[gates.Outcome](): {"PASS", "DEFER", "ERROR"},
		reflect.TypeFor[gates.Reason]():  {"build", "too-slow", "regression", "inconclusive", "suspicious", "runner"},
	}[t]
	if len(words) > 0 && rng.IntN(4) > 0 {
		return words[rng.IntN(len(words))]
	}
	if rng.IntN(3) > 0 {
		return hostileTexts[rng.IntN(len(hostileTexts))]
	}
	alphabet := []rune(" \t\n|`*_[]()<>@#&~$:/\\-+=.!0123456789abcxyzµ日👩\u0301\u200d\x1b\u00a0")
	runes := make([]rune, rng.IntN(60))
	for i := range runes {
		runes[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return string(runes)
}

func someFloat(rng *rand.Rand) float64 {
	odd := []float64{0, math.Copysign(0, -1), 1, -1, 0.1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 1e-7, 1e15, 1e16, 0.99999999}
	if rng.IntN(2) == 0 {
		return odd[rng.IntN(len(odd))]
	}
	return rng.NormFloat64() * math.Pow(10, float64(rng.IntN(12)-6))
}
