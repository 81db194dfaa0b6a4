package serve_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// series is what there is to ask for: label names by metric.
type series map[string][]string

var (
	promToken = regexp.MustCompile(`^(?:\s+|"(?:[^"\\]|\\.)*"|[0-9]+(?:ms|[smhdwy])|[0-9.]+|[A-Za-z_:$][A-Za-z0-9_:]*|=~|!~|!=|==|<=|>=|[-+*/%^<>=(){}\[\],])`)
	promWord  = regexp.MustCompile(`^[A-Za-z_:]`)

	promFunctions = []string{"sum", "min", "max", "avg", "count", "rate", "increase", "delta", "histogram_quantile", "vector", "absent", "time", "clamp_min"}
	promGrouping  = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	promOperators = []string{"and", "or", "unless", "bool"}
)

// check reads an expression far enough to know that its brackets fit, that it calls what
// PromQL has, and that every series and label in it is one that is served. It does not know
// the types: Prometheus' own parser does, and would bring 200 modules along.
func (s series) check(expr string) error {
	var tokens []string
	for rest := expr; rest != ""; {
		t := promToken.FindString(rest)
		if t == "" {
			return fmt.Errorf("%q is not PromQL at %q", expr, rest)
		}
		if rest = rest[len(t):]; strings.TrimSpace(t) != "" {
			tokens = append(tokens, t)
		}
	}
	at := func(i int) string {
		if i < 0 || i >= len(tokens) {
			return ""
		}
		return tokens[i]
	}
	var open []string
	var labels, grouped []string // of all series so far; those that are grouped by
	for i := 0; i < len(tokens); i++ {
		switch t := tokens[i]; {
		case slices.Contains([]string{"(", "[", "{"}, t):
			open = append(open, t)
		case slices.Contains([]string{")", "]", "}"}, t):
			if n := len(open); n == 0 || open[n-1]+t != "()" && open[n-1]+t != "[]" && open[n-1]+t != "{}" {
				return fmt.Errorf("%q: %s closes nothing", expr, t)
			}
			open = open[:len(open)-1]
		case !promWord.MatchString(t) || slices.Contains(promOperators, t):
		case slices.Contains(promGrouping, t):
			if at(i+1) != "(" {
				return fmt.Errorf("%q: %s wants labels in brackets", expr, t)
			}
			for i += 2; at(i) != ")" && i < len(tokens); i++ {
				if promWord.MatchString(at(i)) {
					grouped = append(grouped, at(i))
				}
			}
		case slices.Contains(promFunctions, t):
			if at(i+1) != "(" && !slices.Contains(promGrouping, at(i+1)) {
				return fmt.Errorf("%q: %s is not called", expr, t)
			}
		default:
			known, ok := s[t]
			if !ok {
				return fmt.Errorf("%q: nobody serves %s", expr, t)
			}
			labels = append(labels, known...)
			if at(i+1) != "{" {
				break
			}
			for i += 2; at(i) != "}"; i += 4 {
				if i >= len(tokens) {
					return fmt.Errorf("%q: { is not closed", expr)
				}
				if !slices.Contains(known, at(i)) {
					return fmt.Errorf("%q: %s has no label %s", expr, t, at(i))
				}
				if !slices.Contains([]string{"=", "!=", "=~", "!~"}, at(i+1)) || !strings.HasPrefix(at(i+2), `"`) {
					return fmt.Errorf("%q: %s is not matched against a text", expr, at(i))
				}
				if at(i+3) == "}" {
					i += 3
					break
				}
			}
		}
	}
	for _, g := range grouped {
		if !slices.Contains(labels, g) {
			return fmt.Errorf("%q: no series in it has the label %s", expr, g)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%q: %s is not closed", expr, open[len(open)-1])
	}
	return nil
}

func TestPromQL(t *testing.T) {
	s := series{"a_total": {"code", "job"}, "b_bucket": {"le", "class"}}
	for expr, mistake := range map[string]string{
		`max(a_total) > 300`: "", `sum by (code) (rate(a_total{code=~"5..",job!="x"}[5m]))`: "", `(sum(a_total) or vector(0)) != 1`: "",
		`histogram_quantile(0.95, sum by (le, class) (rate(b_bucket[1h])))`: "", `a_total unless on (code) b_bucket`: "", `a_total{}`: "",
		`max(c_total)`: "nobody serves c_total", `a_total{cod="5"}`: "has no label cod", `sum by (label) (a_total)`: "has the label label", `summ(a_total)`: "nobody serves summ",
		`sum(a_total`: "( is not closed", `a_total)`: ") closes nothing", `rate(a_total[5m)`: ") closes nothing", `a_total{code=5}`: "not matched against a text",
		`sum by code (a_total)`: "wants labels in brackets", `a_total ; b`: "is not PromQL", `rate + a_total`: "is not called", `a_total{code="5"`: "is not closed", `a_total{code="5",`: "is not closed",
	} {
		if err := s.check(expr); (err == nil) != (mistake == "") || err != nil && !strings.Contains(err.Error(), mistake) {
			t.Errorf("%s: %v, want %q", expr, err, mistake)
		}
	}
}

// Whatever is written there, the check comes to an end.
func FuzzPromQL(f *testing.F) {
	f.Add(`sum by (code) (rate(a_total{code=~"5..",job!="x"}[5m]))`)
	f.Add(`a_total{`)
	f.Add(`by(`)
	f.Fuzz(func(t *testing.T, expr string) {
		_ = series{"a_total": {"code"}}.check(expr) // any answer is good
	})
}
