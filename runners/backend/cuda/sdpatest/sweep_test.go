package sdpatest

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// On problems of the sweep, which has few rounds, the choice may take at most this share of stage6_fp8's time: on average over the
// kinds of input, and on one kind.
const (
	sweptMean    = 1.02
	sweptSlowest = 1.07
)

// A sweptPoint is a problem of the sweep, and how long each variant takes on it.
type sweptPoint struct {
	dims  manifest.Dims
	paces paces
}

// served tells whether the variant may be chosen for the problem.
func (p sweptPoint) served(variant string) bool {
	x, measured := p.paces[variant]
	return measured && x.mean <= sweptMean && x.slowest <= sweptSlowest
}

// parseSweep reads what TestSweepOnGPU writes. Of five kinds of input, three are computed as normal ones: they count as often.
func parseSweep(text string) ([]sweptPoint, error) {
	about, text, _ := strings.Cut(text, "\n")
	head, text, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(about, "# ") || !strings.HasPrefix(head, "H,S,D,causal,kind,stage6_fp8,") {
		return nil, fmt.Errorf("sweep.csv: it does not begin with what it is and H,S,D,causal,kind,stage6_fp8")
	}
	variants := strings.Split(head, ",")[5:]
	weights := map[string]float64{"normal": 3. / 5, "dominant": 1. / 5, "large": 1. / 5}
	var points []sweptPoint
	at, kinds := map[string]int{}, map[string]int{}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		cells := strings.Split(line, ",")
		if len(cells) != len(variants)+5 || weights[cells[4]] == 0 {
			return nil, fmt.Errorf("sweep.csv:%d: %q does not have what the head says", i+3, line)
		}
		var n [4]int
		for j := range n {
			var err error
			if n[j], err = strconv.Atoi(cells[j]); err != nil {
				return nil, fmt.Errorf("sweep.csv:%d: %w", i+3, err)
			}
		}
		dims := problem(n[0], n[1], n[2], n[3])
		k, known := at[dims.String()]
		if !known {
			k = len(points)
			at[dims.String()] = k
			points = append(points, sweptPoint{dims, paces{}})
		}
		kinds[dims.String()]++
		base, err := strconv.ParseFloat(cells[5], 64)
		if err != nil || base <= 0 {
			return nil, fmt.Errorf("sweep.csv:%d: stage6_fp8 takes %q", i+3, cells[5])
		}
		for j, name := range variants {
			if cells[5+j] == "-" {
				continue
			}
			took, err := strconv.ParseFloat(cells[5+j], 64)
			if err != nil || took <= 0 {
				return nil, fmt.Errorf("sweep.csv:%d: %s takes %q", i+3, name, cells[5+j])
			}
			p, seen := points[k].paces[name]
			if !seen {
				p.mean = 1
			}
			p.mean *= math.Pow(took/base, weights[cells[4]])
			p.slowest = max(p.slowest, took/base)
			points[k].paces[name] = p
		}
	}
	for name, n := range kinds {
		if n != len(weights) {
			return nil, fmt.Errorf("sweep.csv: %s has %d kinds of input", name, n)
		}
	}
	return points, nil
}

func readSweep(t *testing.T) []sweptPoint {
	t.Helper()
	text, err := os.ReadFile(folder + "evidence/tune/sweep.csv")
	if err != nil {
		t.Fatal(err)
	}
	points, err := parseSweep(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return points
}

// inCluster is the number of tiles of 64 queries up to which stage6_split shares keys in a cluster (its launch in kernel.yaml).
const inCluster = 66

// sweptRules are the rules for problems with few tiles, or few heads, as the sweep has them. near tells whether named shapes that a
// rule takes are well served by its variant.
func sweptRules(points []sweptPoint, near func(rule) bool) ([]rule, error) {
	var rules []rule
	// Up to 66 tiles: stage6_fp8_short between two lengths, stage6_split below and above. How many heads there are matters little.
	for _, D := range []int{64, 128} {
		some := slices.DeleteFunc(slices.Clone(points), func(p sweptPoint) bool { return value(p.dims, "D") != D || tiles(p.dims) > inCluster })
		var short rule
		least := cost(some, rule{takes: func(manifest.Dims) bool { return false }})
		for _, from := range sweptLengths {
			for _, to := range sweptLengths {
				if r := shortRule(D, from, to); from <= to && cost(some, r) < least-1e-9 && near(r) {
					least, short = cost(some, r), r
				}
			}
		}
		if short.takes != nil {
			rules = append(rules, short)
		}
	}
	rules = append(rules, rule{when: fmt.Sprintf("B*H*ceildiv(S, 64) <= %d", inCluster), variant: "stage6_split", takes: func(d manifest.Dims) bool { return tiles(d) <= inCluster }})

	// More tiles of as few heads: the best variant of each band of tiles, one for causal problems and others if it is nearly the best
	// for both.
	heads, length := slices.Max(sweptHeads), slices.Max(sweptLengths)
	for _, D := range []int{64, 128} {
		var cells []cell
		for i, below := range sweptBands {
			band := slices.DeleteFunc(slices.Clone(points), func(p sweptPoint) bool {
				n := tiles(p.dims)
				return value(p.dims, "D") != D || n <= inCluster || n >= below || i > 0 && n < sweptBands[i-1]
			})
			same, together := bestOf(band)
			var apart [2]string
			sum := 0.0
			for causal := range apart {
				variant, alone := bestOf(slices.DeleteFunc(slices.Clone(band), func(p sweptPoint) bool { return value(p.dims, "causal") != causal }))
				apart[causal] = variant
				sum += alone
				if variant == "" {
					return nil, fmt.Errorf("no variant serves all problems of the sweep with D = %d, causal = %d and less than %d tiles", D, causal, below)
				}
			}
			if same != "" && together <= sum+0.03*float64(len(band)) {
				cells = addCell(cells, cell{both, below, same})
				continue
			}
			for causal, variant := range apart {
				cells = addCell(cells, cell{causal, below, variant})
			}
		}
		for _, c := range cells {
			when := fmt.Sprintf("D == %d && B*H <= %d && S <= %d", D, heads, length)
			if c.causal != both {
				when += fmt.Sprintf(" && causal == %d", c.causal)
			}
			if c.below < sweptBands[len(sweptBands)-1] {
				when += fmt.Sprintf(" && B*H*ceildiv(S, 64) < %d", c.below)
			}
			rules = append(rules, rule{when: when, variant: c.variant, takes: func(d manifest.Dims) bool {
				return value(d, "D") == D && value(d, "B")*value(d, "H") <= heads && value(d, "S") <= length && (c.causal == both || value(d, "causal") == c.causal) && tiles(d) < c.below
			}})
		}
	}
	return rules, nil
}

// sweptBands are the limits between which problems of more than 66 tiles have one variant.
var sweptBands = []int{96, 144, math.MaxInt}

// A cell is the variant of a band: of causal problems (1), of others (0) or of both.
type cell struct {
	causal, below int
	variant       string
}

const both = -1

// addCell appends a cell. It takes the place of an earlier one with the same variant, if nothing between them is about its problems.
func addCell(cells []cell, c cell) []cell {
	for i := len(cells) - 1; i >= 0; i-- {
		if cells[i].causal == c.causal && cells[i].variant == c.variant {
			cells = slices.Delete(cells, i, i+1)
			break
		}
		if cells[i].causal == both || c.causal == both || cells[i].causal == c.causal {
			break
		}
	}
	return append(cells, c)
}

// shortRule gives lengths from..to to stage6_fp8_short instead of stage6_split.
func shortRule(D, from, to int) rule {
	when := fmt.Sprintf("D == %d && B*H*ceildiv(S, 64) <= %d && S <= %d", D, inCluster, to)
	if from > 1 {
		when += fmt.Sprintf(" && S >= %d", from)
	}
	return rule{when: when, variant: "stage6_fp8_short", takes: func(d manifest.Dims) bool {
		return value(d, "D") == D && tiles(d) <= inCluster && value(d, "S") >= from && value(d, "S") <= to
	}}
}

// cost is the sum of logarithmic paces if the rule's problems have its variant, and others stage6_split.
func cost(points []sweptPoint, short rule) (sum float64) {
	for _, p := range points {
		name := "stage6_split"
		if short.takes(p.dims) {
			name = short.variant
		}
		sum += math.Log(p.paces[name].mean)
	}
	return sum
}

// bestOf is the variant that is fastest on average and serves all of the points, and the sum of its logarithmic paces.
func bestOf(points []sweptPoint) (variant string, cost float64) {
	cost = math.Inf(1)
	if len(points) == 0 {
		return "", cost
	}
	for name := range points[0].paces {
		sum, serves := 0.0, true
		for _, p := range points {
			serves = serves && p.served(name)
			sum += math.Log(p.paces[name].mean)
		}
		if serves && (sum < cost || sum == cost && name < variant) {
			variant, cost = name, sum
		}
	}
	return variant, cost
}

// The choice is not slower than stage6_fp8 on any problem of the sweep.
func TestChoiceOnSweep(t *testing.T) {
	m, _ := readManifest(t)
	points := readSweep(t)
	if want := len(sweptProblems()); len(points) != want {
		t.Fatalf("%d problems, want %d", len(points), want)
	}
	for _, p := range points {
		variant, err := m.Serving(manifest.Choice, "sm_90", p.dims)
		if err != nil {
			t.Fatal(err)
		}
		if x := p.paces[variant]; !p.served(variant) {
			t.Errorf("%s is served by %s, which takes %.3f of stage6_fp8's time, and %.3f on one kind of input", p.dims, variant, x.mean, x.slowest)
		}
	}
}

// Rules follow the times: where the faster variant changes, so do they. A band without a variant that serves is an error.
func TestSweptRules(t *testing.T) {
	sweep := func(short func(S, D int) float64, long float64) []sweptPoint {
		var points []sweptPoint
		for _, d := range sweptProblems() {
			p := sweptPoint{d, paces{"stage6_fp8": {long, long}, "stage6_split": {0.9, 0.9}, "stage6_fp8_short": {short(value(d, "S"), value(d, "D")), 0.9}}}
			if value(d, "D") == 128 && value(d, "causal") == 1 && tiles(d) >= 96 {
				p.paces["stage6_split"], p.paces["stage6_fp8_short"] = pace{1.05, 1.05}, pace{1, 1.1}
			}
			points = append(points, p)
		}
		return points
	}
	rules, err := sweptRules(sweep(func(S, D int) float64 {
		if D == 128 && S <= 96 || D == 64 && S >= 80 && S <= 384 { // a named shape is against 320
			return 0.8
		}
		return 0.95
	}, 1), func(r rule) bool { return !r.takes(problem(1, 320, 64, 0)) })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rules {
		got = append(got, r.when+": "+r.variant)
	}
	want := []string{
		"D == 64 && B*H*ceildiv(S, 64) <= 66 && S <= 256 && S >= 80: stage6_fp8_short",
		"D == 128 && B*H*ceildiv(S, 64) <= 66 && S <= 96: stage6_fp8_short",
		"B*H*ceildiv(S, 64) <= 66: stage6_split",
		"D == 64 && B*H <= 6 && S <= 4096: stage6_split",
		"D == 128 && B*H <= 6 && S <= 4096 && B*H*ceildiv(S, 64) < 96: stage6_split",
		"D == 128 && B*H <= 6 && S <= 4096 && causal == 0: stage6_split",
		"D == 128 && B*H <= 6 && S <= 4096 && causal == 1: stage6_fp8",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	slow := sweep(func(int, int) float64 { return 1.2 }, 1.1)
	for i := range slow {
		slow[i].paces["stage6_split"] = pace{1.2, 1.2}
	}
	if _, err := sweptRules(slow, func(rule) bool { return true }); err == nil || !strings.Contains(err.Error(), "no variant serves all problems of the sweep with D = 64, causal = 0 and less than 96 tiles") {
		t.Error(err)
	}
}

// A file that was cut or edited is refused by line.
func TestParseSweep(t *testing.T) {
	const head = "# when, where\nH,S,D,causal,kind,stage6_fp8,stage6_split\n"
	points, err := parseSweep(head + "1,64,64,0,normal,2,1\n1,64,64,0,dominant,2,2\n1,64,64,0,large,2,4\n")
	if err != nil || len(points) != 1 || points[0].paces["stage6_split"].slowest != 2 || math.Abs(points[0].paces["stage6_split"].mean-math.Pow(2, -0.4)) > 1e-9 {
		t.Errorf("%+v %v", points, err)
	}
	for text, want := range map[string]string{
		"1,64,64,0,normal,2,1\n":         "sweep.csv: it does not begin with",
		head + "1,64,64,0,normal,2,1\n":  "B=1 H=1 S=64 D=64 causal=0 has 1 kinds of input",
		head + "1,64,64,0,normal,2\n":    `sweep.csv:3: "1,64,64,0,normal,2" does not have what the head says`,
		head + "1,x,64,0,normal,2,1\n":   `sweep.csv:3: strconv.Atoi: parsing "x"`,
		head + "1,64,64,0,odd,2,1\n":     "does not have what the head says",
		head + "1,64,64,0,normal,0,1\n":  `sweep.csv:3: stage6_fp8 takes "0"`,
		head + "1,64,64,0,normal,2,-1\n": `sweep.csv:3: stage6_split takes "-1"`,
	} {
		if _, err := parseSweep(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
