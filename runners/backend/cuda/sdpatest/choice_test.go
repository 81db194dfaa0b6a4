package sdpatest

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

var update = flag.Bool("update", false, "write what is generated from the evidence: the choice in kernel.yaml, tables in pages")

// Every rule of the choice stays this near to the fastest variant that was measured.
const nearest = 1.02

// A rule is one entry of the choice: what a problem must satisfy, and the variant that serves it.
type rule struct {
	when    string
	takes   func(dims manifest.Dims) bool
	variant string
}

func value(dims manifest.Dims, name string) int {
	n, _ := dims.Get(name)
	return n
}

// features are what conditions compare with a limit.
var features = []struct {
	text string
	of   func(manifest.Dims) int
}{
	{"B*H*ceildiv(S, 64)", tiles},
	{"S", func(d manifest.Dims) int { return value(d, "S") }},
	{"B*H", func(d manifest.Dims) int { return value(d, "B") * value(d, "H") }},
}

// tiles is how many tiles of 64 queries a problem has.
func tiles(d manifest.Dims) int { return value(d, "B") * value(d, "H") * ((value(d, "S") + 63) / 64) }

// conditions are the conjunctions that a rule may ask: a D, perhaps causal, a least number of tiles, and perhaps one more
// limit. A limit lies between two measured problems, at the power of two there or at the larger one. Without a least number of
// tiles, a rule for long problems would also serve those that leave most SMs idle.
func conditions(shapes []manifest.Shape) []rule {
	type atom struct {
		text  string
		takes func(manifest.Dims) bool
	}
	limits := []atom{{"", func(manifest.Dims) bool { return true }}}
	for _, f := range features {
		var values []int
		for _, s := range shapes {
			values = append(values, f.of(s.Dims))
		}
		slices.Sort(values)
		values = slices.Compact(values)
		for i := 1; i < len(values); i++ {
			limit := values[i]
			for p := 1; p <= values[i]; p *= 2 {
				if p > values[i-1] {
					limit = p
					break
				}
			}
			limits = append(limits,
				atom{fmt.Sprintf("%s >= %d", f.text, limit), func(d manifest.Dims) bool { return f.of(d) >= limit }},
				atom{fmt.Sprintf("%s < %d", f.text, limit), func(d manifest.Dims) bool { return f.of(d) < limit }})
		}
	}
	firsts := []atom{}
	for _, size := range []int{64, 128} {
		firsts = append(firsts, atom{fmt.Sprintf("D == %d", size), func(d manifest.Dims) bool { return value(d, "D") == size }})
		for _, causal := range []int{0, 1} {
			firsts = append(firsts, atom{fmt.Sprintf("D == %d && causal == %d", size, causal), func(d manifest.Dims) bool { return value(d, "D") == size && value(d, "causal") == causal }})
		}
	}
	var all []rule
	for _, a := range firsts {
		for _, b := range limits {
			if !strings.HasPrefix(b.text, features[0].text+" >= ") {
				continue
			}
			for _, c := range limits {
				text := a.text
				for _, more := range []string{b.text, c.text} {
					if more != "" && !strings.Contains(text, more) {
						text += " && " + more
					}
				}
				all = append(all, rule{when: text, takes: func(d manifest.Dims) bool { return a.takes(d) && b.takes(d) && c.takes(d) }})
			}
		}
	}
	return all
}

// generate finds a short list of rules. First come those of the sweep. For the shapes that they leave, again and again the rule
// that serves most of them, all within the limit, and problems of the sweep with as many tiles; of those the one that is
// fastest, and then the one with the shortest text. All problems that no rule takes have stage6_fp8.
func generate(m *manifest.Manifest, shapes []manifest.Shape, all map[string]paces, points []sweptPoint) ([]rule, error) {
	first, err := sweptRules(points, func(r rule) bool {
		return !slices.ContainsFunc(shapes, func(s manifest.Shape) bool { return r.takes(s.Dims) && !all[s.Name].near(r.variant) })
	})
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(slices.Clone(shapes), func(s manifest.Shape) bool {
		return slices.ContainsFunc(first, func(r rule) bool { return r.takes(s.Dims) })
	})
	var rules []rule
	candidates := conditions(shapes)
	for len(left) > 0 {
		var chosen rule
		most, cost := 0, math.Inf(1)
		for _, c := range candidates {
			for _, v := range m.Variants {
				count, logs, fits := 0, 0.0, true
				for _, s := range left {
					if !c.takes(s.Dims) {
						continue
					}
					if fits = all[s.Name].near(v.Name) && m.Supports(v.Name, s.Dims); !fits {
						break
					}
					count++
					logs += math.Log(all[s.Name][v.Name].mean)
				}
				shorter := count == most && (logs < cost-1e-9 || logs < cost+1e-9 && len(c.when) < len(chosen.when))
				if fits && count > 0 && (count > most || shorter) && serves(points, c, v.Name) {
					chosen, most, cost = rule{when: c.when, takes: c.takes, variant: v.Name}, count, logs
				}
			}
		}
		if most == 0 {
			return nil, fmt.Errorf("no rule serves %s within %v of its best variant", left[0].Name, nearest)
		}
		rules = append(rules, chosen)
		left = slices.DeleteFunc(left, func(s manifest.Shape) bool { return chosen.takes(s.Dims) })
	}
	return append(slices.Concat(first, rules), rule{variant: "stage6_fp8"}), nil
}

// serves tells whether the variant may be chosen for all problems of the sweep that the rule takes, without those that stage6_split
// shares keys for.
func serves(points []sweptPoint, r rule, variant string) bool {
	return !slices.ContainsFunc(points, func(p sweptPoint) bool { return tiles(p.dims) > inCluster && r.takes(p.dims) && !p.served(variant) })
}

// The choice of kernel.yaml is what the recorded times say; `make choose` writes it.
func TestChoiceIsGenerated(t *testing.T) {
	m, text := readManifest(t)
	points := readSweep(t)
	all := measured(t, points)
	var shapes []manifest.Shape
	for _, s := range m.Shapes {
		if all[s.Name] != nil {
			shapes = append(shapes, s)
		}
	}
	if len(shapes) < 20 {
		t.Fatalf("%d shapes were measured", len(shapes))
	}
	rules, err := generate(m, shapes, all, points)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("choose:\n")
	for _, r := range rules {
		if r.when == "" {
			fmt.Fprintf(&b, "  - {variant: %s}\n", r.variant)
			continue
		}
		fmt.Fprintf(&b, "  - {when: %q, variant: %s}\n", r.when, r.variant)
	}
	at := strings.Index(text, "choose:\n")
	if at < 0 {
		t.Fatal("kernel.yaml has no choice at its end")
	}
	if *update {
		if err := os.WriteFile(folder+manifest.FileName, []byte(text[:at]+b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text[at:] != b.String() {
		t.Errorf("kernel.yaml chooses by\n%sbut the evidence says (make choose writes it)\n%s", text[at:], b.String())
	}
}

// No shape is served by a variant that was measured more than 2 % slower than the best one, or slower than stage6_fp8 on any
// kind of input.
func TestChoiceIsNearTheBest(t *testing.T) {
	m, _ := readManifest(t)
	all := measured(t, readSweep(t))
	for _, s := range m.Shapes {
		variant, err := m.Serving(manifest.Choice, "sm_90", s.Dims)
		if err != nil {
			t.Fatal(err)
		}
		if !all[s.Name].near(variant) {
			x := all[s.Name][variant]
			best, mean := all[s.Name].best()
			t.Errorf("%s is served by %s, which takes %.3f of stage6_fp8's time and up to %.3f on one kind of input; %s takes %.3f", s.Name, variant, x.mean, x.slowest, best, mean)
		}
	}
}

// The check above must be able to fail: a variant that gains on average and loses on one kind of input is not chosen, and
// neither is one that is 3 % slower than the best.
func TestSlowChoicesAreRefused(t *testing.T) {
	p := paces{"stage6_fp8": {1, 1}, "uneven": {0.7, 1.1}, "best": {0.8, 0.9}, "close": {0.81, 0.95}, "slower": {0.824, 0.9}}
	for variant, want := range map[string]bool{"stage6_fp8": false, "uneven": false, "best": true, "close": true, "slower": false, "unknown": false} {
		if p.near(variant) != want {
			t.Errorf("%s may be chosen: %v", variant, !want)
		}
	}
	if best, _ := (paces{"stage6_fp8": {1, 1}, "uneven": {0.7, 1.1}}).best(); best != "stage6_fp8" {
		t.Errorf("the best is %s", best)
	}
}
