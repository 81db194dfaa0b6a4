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
// {"kind": "time", "name", "a", "b", "ratio"}, and {"baseline_us", "candidate_us", "speedup"} of a
// shape or under "weighted".
func inJSON(t *testing.T, text string, names []string) []mention {
	t.Helper()
	var document any
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	var list []mention
	digits := "%.14f"
	add := func(shape string, kind kindOfFigure, value any) {
		if number, ok := value.(float64); ok && slices.Contains(names, shape) {
			list = append(list, mention{shape, kind, fmt.Sprintf(digits, number)})
		}
	}
	compared := func(shape string, row map[string]any) {
		from, to := row["baseline"], row["candidate"]
		if row["candidate_us"] != nil {
			digits = "~%.14f" // those of a step are rounded
			defer func() { digits = "%.14f" }()
			from, to = row["baseline_us"], row["candidate_us"]
			add(shape, before, from)
			add(shape, after, to)
		}
		for kind, side := range map[kindOfFigure]any{before: from, median: to} {
			if side, ok := side.(map[string]any); ok {
				add(shape, kind, side["p50"])
			}
		}
		if e, ok := row["speedup"].(map[string]any); ok && from != nil && to != nil {
			for key, kind := range map[string]kindOfFigure{"value": speedup, "mid": speedup, "lower": lower, "low": lower, "upper": upper, "high": upper} {
				add(shape, kind, e[key])
			}
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
				compared(shape, value)
			}
			if weighted, ok := value["weighted"].(map[string]any); ok {
				compared(gates.StepLabel, weighted)
			}
			if warm, ok := value["weighted_warm"].(map[string]any); ok {
				compared(gates.WarmStepLabel, warm)
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
