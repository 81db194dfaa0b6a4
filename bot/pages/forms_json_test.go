package pages_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
)

var badgeTime = regexp.MustCompile(`^[0-9.]+ (?:µs|ms|s)\b`)

// inBadge returns the one number of a badge: the candidate's time on the target shape, or on the
// first shape by name.
func inBadge(t *testing.T, badge string, v *gates.Verdict) []mention {
	t.Helper()
	row := change.NewResult(v)
	names := slices.Sorted(maps.Keys(row.P50))
	if targets := slices.Sorted(maps.Keys(row.Speedups)); len(targets) > 0 {
		names = targets
	}
	for _, word := range strings.Split(oneLine(htmlText(badge)), ": ") {
		if _, time, ok := strings.Cut(word, " "); ok && len(names) > 0 && badgeTime.MatchString(time) {
			return []mention{{names[0], after, badgeTime.FindString(time)}}
		}
	}
	if len(names) > 0 && row.Outcome != "" {
		t.Errorf("%s: the badge shows no time: %s", v.Kernel, oneLine(htmlText(badge)))
	}
	return nil
}

// inJSON finds comparisons anywhere in a document: {"shape", "baseline", "candidate", "speedup"},
// and {"kind": "time", "name", "a", "b", "ratio"}.
func inJSON(t *testing.T, text string, names []string) []mention {
	t.Helper()
	var document any
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	var list []mention
	add := func(shape string, kind kindOfFigure, value any) {
		if number, ok := value.(float64); ok && slices.Contains(names, shape) {
			list = append(list, mention{shape, kind, fmt.Sprintf("%.14f", number)})
		}
	}
	var walk func(any)
	walk = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, inner := range value {
				walk(inner)
			}
		case map[string]any:
			if shape, ok := value["shape"].(string); ok {
				for key, kind := range map[string]kindOfFigure{"baseline": before, "candidate": median} {
					if side, ok := value[key].(map[string]any); ok {
						add(shape, kind, side["p50"])
					}
				}
				if e, ok := value["speedup"].(map[string]any); ok && value["baseline"] != nil && value["candidate"] != nil {
					add(shape, speedup, e["value"])
					add(shape, lower, e["lower"])
					add(shape, upper, e["upper"])
				}
			}
			if shape, ok := value["name"].(string); ok && value["kind"] == "time" {
				for key, kind := range map[string]kindOfFigure{"a": before, "b": median, "ratio": speedup, "lower": lower, "upper": upper} {
					add(shape, kind, value[key])
				}
			}
			for _, inner := range value {
				walk(inner)
			}
		}
	}
	walk(document)
	return list
}
