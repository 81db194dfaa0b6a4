package command

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

func shape(name string, n int) manifest.Shape {
	return manifest.Shape{Name: name, Dims: manifest.Dims{{Name: "N", Value: n}}}
}

// spoken asks for two shapes of a manifest that has three.
func spoken() vocabulary {
	return vocabulary{asked: []manifest.Shape{shape("small", 64), shape("mission", 1000)}, others: []string{"small", "mission", "large"}, unit: "ms"}
}

const good = `"elements":64,"max_abs":0.5,"mean_abs":0.25,"norm":0.125,"bad":1,"nan":0`

func TestReadLines(t *testing.T) {
	seed, yes := uint64(7), true
	figures := gates.Errors{Elements: 64, MaxAbs: 0.5, MeanAbs: 0.25, Norm: 0.125, Bad: 1}
	for _, c := range []struct {
		name    string
		results string
		times   map[string][]float64
		figures []figure
		problem string
	}{
		{"nothing", "", map[string][]float64{}, nil, ""},
		{"every unit", `{"shape":"small","ns":[1500]}` + "\n" + `{"shape":"mission","us":[2,2.5]}` + "\n" + `{"shape":"mission","times":[0.003]}` + "\n",
			map[string][]float64{"small": {1500}, "mission": {2000, 2500, 3000}}, nil, ""},
		{"a shape that was not asked for", `{"shape":"large","ns":[1]}` + "\n" + `{"shape":"large",` + good + `}`, map[string][]float64{}, nil, ""},
		{"figures", "\n" + `  {"shape":"small",` + good + `}` + "\r\n", map[string][]float64{}, []figure{{line: 2, shape: "small", errors: figures}}, ""},
		{"figures with all there is", `{"shape":"small","seed":7,"distribution":"normal","inf":0,"unwritten":0,"deterministic":true,"hash":"ab",` + good + `}`,
			map[string][]float64{}, []figure{{line: 1, shape: "small", seed: &seed, distribution: "normal", errors: figures, deterministic: &yes, hash: "ab"}}, ""},
		{"an object over several lines", "{\"shape\":\n\"small\",\n\"ns\":[1]}\n" + `{"shape":"small",` + good + `}`,
			map[string][]float64{"small": {1}}, []figure{{line: 4, shape: "small", errors: figures}}, ""},
		{"an error", `{"error":"no\nGPU"}`, map[string][]float64{}, nil, "no GPU"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := spoken().stream([]byte(c.results), false)
			if err != nil {
				t.Fatal(err)
			}
			want := &report{times: c.times, figures: c.figures, problem: c.problem}
			if diff := cmp.Diff(want, r, cmp.AllowUnexported(report{}, figure{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadMistakes(t *testing.T) {
	t.Parallel()
	line := func(figures string) string { return `{"shape":"small",` + figures + `}` }
	for _, c := range []struct{ name, results, want string }{
		{"no JSON", "{\"shape\":\"small\",\"ns\":[1]}\nok", `line 2: "ok" is not a JSON object (print other text on stderr)`},
		{"a list", "[1]", `line 1: "[1]" is not a JSON object (print other text on stderr)`},
		{"two on a line", `{"error":"a"} {"error":"b"}`, `line 1: "{\"error\":\"b\"}" follows the JSON object (end the line there)`},
		{"cut off", "\n{\"shape\":\"small\",\"ns\":[1", "line 2: the JSON object is cut off (does the harness end before it has printed all?)"},
		{"NaN", line(`"ns":[NaN]`), "line 1: is not valid JSON: invalid character 'N' looking for beginning of value (JSON has no NaN and no Infinity: leave such elements out of the figures and count them in nan and inf)"},
		{"a missing comma", `{"shape":"small" "ns":[1]}`, "line 1: is not valid JSON: invalid character '\"' after object key:value pair"},
		{"no shape", `{"ns":[1]}`, "line 1: shape is missing (every line of times or figures names its shape)"},
		{"an empty object", `{}`, "line 1: shape is missing (every line of times or figures names its shape)"},
		{"an unknown shape", `{"shape":"misson","ns":[1]}`, `line 1: there is no shape "misson" (asked for small, mission)`},
		{"a shape that is no text", `{"shape":3,"ns":[1]}`, "line 1: shape is not a text of 1 to 200 bytes"},
		{"a key spelt otherwise", line(`"maxAbs":1`), `line 1: unknown key "maxAbs" (did you mean max_abs?)`},
		{"a key in capitals", line(`"NS":[1]`), `line 1: unknown key "NS" (did you mean ns?)`},
		{"another word", line(`"microseconds":[1]`), `line 1: unknown key "microseconds" (did you mean us?)`},
		{"an unknown key", line(`"gflops":1`), `line 1: unknown key "gflops" (a line of times has shape and one of ns, us, times; a line of figures has shape, elements, max_abs, mean_abs, norm, bad, nan, and may have seed, distribution, inf, unwritten, deterministic, hash)`},
		{"a key twice", `{"shape":"small","ns":[1],"ns":[2]}`, `line 1: the key "ns" comes twice (delete one)`},
		{"two units", line(`"ns":[1],"us":[1]`), "line 1: a line of times has shape and one of ns, us, times (print other figures on a line of their own)"},
		{"times and figures", line(`"ns":[1],` + good), "line 1: a line of times has shape and one of ns, us, times (print other figures on a line of their own)"},
		{"no times", line(`"ns":[]`), "line 1: ns is not a list of times (write e.g. [11.2, 11.1])"},
		{"null", line(`"ns":null`), "line 1: ns is not a list of times (write e.g. [11.2, 11.1])"},
		{"a time alone", line(`"us":1.5`), "line 1: us is not a list of times (write e.g. [11.2, 11.1])"},
		{"a time as text", line(`"us":["1"]`), "line 1: us is not a list of times (write e.g. [11.2, 11.1])"},
		{"a null among times", line(`"us":[1,null]`), "line 1: us[1] is null (leave out launches that were not timed)"},
		{"zero", line(`"us":[1,0]`), "line 1: us[1] is 0: a launch takes time (is the clock too coarse?)"},
		{"negative", line(`"us":[-1]`), "line 1: us[0] is -1: a launch takes time (is the clock too coarse?)"},
		{"too long", line(`"us":[1e300]`), "line 1: us[0] is 1e+300: no launch takes that long (is the unit right?)"},
		{"too long in the unit", line(`"times":[1e10]`), "line 1: times[0] is 1e+10: no launch takes that long (is the unit right?)"},
		{"a figure is missing", line(`"elements":1,"max_abs":0,"mean_abs":0,"norm":0,"bad":0`), "line 1: nan is missing (a line of figures has shape, elements, max_abs, mean_abs, norm, bad, nan)"},
		{"a figure is null", line(strings.Replace(good, "0.5", "null", 1)), "line 1: max_abs is not a number of 0 or more"},
		{"a figure is negative", line(strings.Replace(good, "0.125", "-1", 1)), "line 1: norm is not a number of 0 or more"},
		{"a count with a fraction", line(strings.Replace(good, `"bad":1`, `"bad":1.5`, 1)), "line 1: bad is not a whole number of 0 or more"},
		{"nothing compared", line(`"elements":0,"max_abs":0,"mean_abs":0,"norm":0,"bad":0,"nan":0`), "line 1: elements is 0: nothing was compared"},
		{"more bad than there are", line(strings.Replace(good, `"bad":1`, `"bad":65`, 1)), "line 1: 65 elements are counted of 64"},
		{"more infinite than there are", line(good + `,"inf":65`), "line 1: 65 elements are counted of 64"},
		{"mean above max", line(strings.Replace(good, `"mean_abs":0.25`, `"mean_abs":0.75`, 1)), "line 1: mean_abs 0.75 is above max_abs 0.5"},
		{"a negative seed", line(good + `,"seed":-1`), "line 1: seed is not a whole number of 0 or more"},
		{"deterministic as text", line(good + `,"deterministic":"yes"`), "line 1: deterministic is neither true nor false"},
		{"an empty hash", line(good + `,"hash":""`), "line 1: hash is not a text of 1 to 200 bytes"},
		{"an error beside times", `{"error":"x","shape":"small","ns":[1]}`, "line 1: error has other keys next to it (print it on a separate line)"},
		{"an error that is no text", `{"error":3}`, "line 1: error is not a text of 1 to 10000 bytes"},
		{"a very long line", line(`"ns":[` + strings.Repeat("1,", maxObject/2) + `1]`), "line 1: is longer than 1 MiB (print fewer times)"},
		{"very many lines", strings.Repeat("{\"shape\":\"small\",\"ns\":[1]}\n", maxObjects+1), "line 10001: there are more than 10000 results (print all times of a shape on one line)"},
		{"very many keys", "{" + manyKeys(65) + "}", "line 1: the object has more than 64 keys"},
		{"control characters", "\x1b[31mred\x07", `line 1: "[31mred" is not a JSON object (print other text on stderr)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := spoken().stream([]byte(c.results), false); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":0`, i)
	}
	return strings.Join(keys, ",")
}

// TestWhereResultsComeFrom checks that each kind of result comes from the result descriptor if that
// has any, and from standard output otherwise.
func TestWhereResultsComeFrom(t *testing.T) {
	const times, figures = `{"shape":"small","ns":[1]}`, `{"shape":"small",` + good + `}`
	both := needs{times: true, figures: true}
	for _, c := range []struct {
		name, results, stdout string
		needs                 needs
		times, figures        int
		err                   string
	}{
		{"all on the descriptor", times + "\n" + figures, "{noise\n" + times, both, 1, 1, ""},
		{"all on standard output", "", "Run 1\n" + times + "\n\nRun 2\n" + figures + "\ndone", both, 1, 1, ""},
		{"figures on the descriptor", figures, "noise\n" + times, both, 1, 1, ""},
		{"times on the descriptor", times, figures, both, 1, 1, ""},
		{"only figures are needed", figures, "{noise", needs{figures: true}, 0, 1, ""},
		{"noise like a result", times, "{noise", both, 0, 0, "standard output, line 1: is not valid JSON: invalid character 'n' looking for beginning of object key string"},
		{"noise on the descriptor", "noise\n" + times, figures, both, 0, 0, `descriptor 3, line 1: "noise" is not a JSON object (print other text on stderr)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := spoken().read([]byte(c.results), []byte(c.stdout), c.needs)
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Fatalf("got  %v\nwant %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(r.times["small"]) != c.times || len(r.figures) != c.figures {
				t.Errorf("got %+v, want %d times and %d figures", r, c.times, c.figures)
			}
		})
	}
}

func TestAdapters(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	nvbench, google := read("nvbench.json"), read("googlebenchmark.json")
	whole := map[string][]float64{"small": {3922.4058844425625}, "mission": {10000}}
	for _, c := range []struct {
		name, text string
		times      map[string][]float64
		problem    string
		err        string
	}{
		{"nvbench by dims", nvbench, whole, "", ""},
		{"nvbench between its log and its tables", "# Devices\n" + nvbench + "\n# Log\n\n| N |\n", whole, "", ""},
		{"nvbench by an axis named shape", strings.NewReplacer(`"name": "N", "type": "int64", "value": "64"`, `"name": "shape", "type": "string", "value": "mission"`, `"value": "1000"}]`, `"value": "2"}]`).Replace(nvbench),
			map[string][]float64{"mission": {3922.4058844425625}}, "", ""},
		{"nvbench by the benchmark's name", strings.NewReplacer(`"name": "sdpa"`, `"name": "mission"`, `"value": "1000"}]`, `"value": "64"}]`, `"name": "N", "type": "int64", "value": "64"`, `"name": "M", "type": "int64", "value": "64"`).Replace(nvbench), nil, "",
			"line 1: the states mission [Device=0 N=64] and mission [Device=0 N=5] are both mission (choose one with --benchmark, --axis or --devices)"},
		{"nvbench skips a shape", strings.Replace(nvbench, `"value": "5"}]`, `"value": "64"}]`, 1), nil, "",
			"line 1: the states sdpa [Device=0 N=64] and sdpa [Device=0 N=5] are both small (choose one with --benchmark, --axis or --devices)"},
		{"nvbench skips the only state", strings.NewReplacer(`"value": "64"}]`, `"value": "6"}]`, `"value": "5"}]`, `"value": "64"}]`).Replace(nvbench), map[string][]float64{"mission": {10000}}, "sdpa [Device=0 N=5] was skipped: too small", ""},
		{"nvbench without a GPU", strings.ReplaceAll(nvbench, "nv/cold/time/gpu", "nv/cold/time/tpu"), nil, "",
			"line 1: state sdpa [Device=0 N=64]: has no nv/cold/time/gpu/mean (was it measured on a GPU?)"},
		{"nvbench divides by zero", strings.Replace(nvbench, "3.9224058844425625e-06", "inf", 1), nil, "",
			"line 1: state sdpa [Device=0 N=64]: nv/cold/time/gpu/mean is +Inf s: no launch takes that long (is the unit right?)"},
		{"nvbench of an older version", strings.Replace(nvbench, `"states": [`, `"states": {}, "more": [`, 1), nil, "",
			"line 1: this nvbench JSON can not be read: json: cannot unmarshal object into Go struct field nvbenchBenchmark.states of type []command.nvbenchState (file version 1 is)"},
		{"Google Benchmark", google, map[string][]float64{"small": {3900, 4100}, "mission": {10000}}, "", ""},
		{"Google Benchmark fails", strings.Replace(google, `"real_time": 3.9`, `"error_occurred": true, "error_message": "no GPU"`, 1), map[string][]float64{}, "BM_sdpa/small/repeats:3/manual_time: no GPU", ""},
		{"Google Benchmark skips", strings.Replace(google, `"real_time": 3.9`, `"skipped": true, "skip_message": "later"`, 1), map[string][]float64{}, "BM_sdpa/small/repeats:3/manual_time: later", ""},
		{"Google Benchmark in weeks", strings.Replace(google, `"us"`, `"weeks"`, 1), nil, "",
			`line 1: benchmark BM_sdpa/small/repeats:3/manual_time: time_unit is "weeks" (ns, us, ms and s are read)`},
		{"Google Benchmark measures nothing", strings.Replace(google, `"real_time": 3.9`, `"real_time": 0`, 1), nil, "",
			"line 1: benchmark BM_sdpa/small/repeats:3/manual_time: real_time is 0 us: a launch takes time (is the clock too coarse?)"},
		{"Google Benchmark has two of a name", strings.Replace(google, `"run_name": "BM_setup"`, `"run_name": "BM_other/small"`, 1), nil, "",
			"line 1: the benchmarks BM_sdpa/small/repeats:3/manual_time and BM_other/small are both named after small (choose one with --benchmark_filter)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := spoken().stream([]byte(c.text), true)
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Fatalf("got  %v\nwant %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.times, r.times, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-6 })); diff != "" || r.problem != c.problem {
				t.Errorf("problem %q, want %q; times\n%s", r.problem, c.problem, diff)
			}
		})
	}
}

func TestGoogleNames(t *testing.T) {
	for name, want := range map[string]string{
		"mission": "mission", "BM/mission": "mission", "BM/a/mission/real_time": "mission", "BM/mission/iterations:10/repeats:2": "mission",
		"BM/N:1000": "mission", "BM/N:64/threads:1": "small", "N:64": "small",
		"BM_mission": "", "mission/BM": "", "BM/large": "", "BM/N:7": "", "BM/M:64": "", "": "", "/": "",
	} {
		if got, ok := spoken().googleShape(name); got != want || ok != (want != "") {
			t.Errorf("%q is %q, %v, want %q", name, got, ok, want)
		}
	}
}

// FuzzRead checks that the parser lets nothing impossible through, whatever a harness prints.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"nvbench.json", "googlebenchmark.json"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, []byte("log\n"))
		f.Add([]byte(`{"shape":"small",`+good+`}`), text)
	}
	f.Add([]byte(`{"shape":"small","us":[1,2]}`+"\n"+`{"shape":"small","seed":0,"distribution":"normal",`+good+`}`), []byte("noise"))
	f.Add([]byte(`{"error":"x"}`), []byte{})
	f.Fuzz(func(t *testing.T, results, stdout []byte) {
		v := spoken()
		r, err := v.read(results, stdout, needs{times: true, figures: true})
		if err != nil {
			if text := err.Error(); text == "" || len(text) > 2000 || strings.ContainsAny(text, "\n\x1b") {
				t.Errorf("the message %q is not one readable line", text)
			}
			return
		}
		for name, nanos := range r.times {
			if !v.byName(name) || len(nanos) == 0 {
				t.Errorf("times of %q: %v", name, nanos)
			}
			for _, ns := range nanos {
				if !(ns > 0 && ns <= maxNanos) {
					t.Errorf("a launch takes %v ns", ns)
				}
			}
		}
		for _, g := range r.figures {
			e := g.errors
			sound := e.Elements > 0 && min(e.Bad, e.NaN, e.Inf, e.Unwritten) >= 0 && max(e.Bad, e.NaN, e.Inf, e.Unwritten) <= e.Elements
			for _, x := range []float64{e.MaxAbs, e.MeanAbs, e.Norm} {
				sound = sound && x >= 0 && !math.IsInf(x, 0)
			}
			if !sound || !v.byName(g.shape) {
				t.Errorf("figures of %q: %+v", g.shape, e)
			}
		}
		if strings.ContainsAny(r.problem, "\n\x1b") {
			t.Errorf("the problem %q is not one line", r.problem)
		}
	})
}
