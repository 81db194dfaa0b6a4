package inspect

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// These texts are written by hand, after what public programs that read ncu --page source --print-source sass --csv expect. What ncu
// printed on an H200 is in testdata/samples.
const samplesHead = `"Address","Source","Warp Stall Sampling (All Samples)","Warp Stall Sampling (Not-issued Samples)","Instructions Executed","stall_barrier","stall_long_sb","stall_selected","stall_long_sb (Not Issued)"`

func TestParseSamples(t *testing.T) {
	for name, c := range map[string]struct {
		out  string
		want []Sampled
	}{
		"two launches": {
			"==PROF== Report\n\"Kernel Name\",\"a\"\n" + samplesHead + "\n" +
				`"0x7f0000001200","LDG.E R1, [R2.64]","1,200","9","32","0","0","0","0"` + "\n" +
				`"0x7f0000001210","      @P0   FFMA R1, R1, R2, R3","40","9","32","3","30","7","30"` + "\n" +
				`"0x7f0000001220","BAR.SYNC","0","0","32","0","0","0","0"` + "\n" +
				"\"Kernel Name\",\"b\"\n" + samplesHead + "\n" + `"0x7f0000009000","EXIT","5","5","1","5","0","0","0"` + "\n",
			[]Sampled{
				{"a", []Sample{{0, "LDG.E R1, [R2.64]", 1200, ""}, {16, "@P0 FFMA R1, R1, R2, R3", 40, "long_sb"}}, 1240},
				{"b", []Sample{{0, "EXIT", 5, "barrier"}}, 5},
			},
		},
		"numbered rows": {
			"\"Kernel Name\",\"a\"\n\"#\",\"Address\",\"Source\",\"# Samples\"\n\"1\",\"00f0\",\"MOV\",\"\"\n\"2\",\"0100\",\"LDS\",\"7\"\n",
			[]Sampled{{"a", []Sample{{16, "LDS", 7, ""}}, 7}},
		},
		"no samples":        {"\"Kernel Name\",\"a\"\n\"Address\",\"Source\",\"Instructions Executed\"\n\"0x0\",\"EXIT\",\"1\"\n", []Sampled{{Kernel: "a"}}},
		"a launch only":     {"\"Kernel Name\",\"a\"\n", []Sampled{{Kernel: "a"}}},
		"rows cut off":      {"\"Kernel Name\",\"a\"\n" + samplesHead + "\n\"0x10\",\"MOV\",\"4\"\n", []Sampled{{Kernel: "a"}}},
		"strange cells":     {"\"Kernel Name\",\"a\"\n\"Address\",\"Source\",\"# Samples\"\n\"0x10\",\"MOV\",\"nan\"\n\"zz\",\"MOV\",\"4\"\n\"0x8\",\"MOV\",\"4\"\n\"0x20\",\"MOV\",\"-4\"\n", []Sampled{{Kernel: "a"}}},
		"nothing":           {"", nil},
		"a header too much": {samplesHead + "\n", nil},
	} {
		got, err := parseSamples(c.out)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// recorded.csv is of three launches of a stage of the attention kernel, by ncu 2025.3.1: the first instructions and the hottest ones.
func TestParseRecordedSamples(t *testing.T) {
	all, err := parseSamples(read(t, "../samples/recorded.csv"))
	if err != nil || len(all) != 3 {
		t.Fatalf("%v: %d launches", err, len(all))
	}
	for i, want := range []struct {
		all  int
		most Sample
	}{
		{2266, Sample{0x1cd0, "F2FP.F16.E4M3.UNPACK_B R22, R34.H1", 595, "long_sb"}},
		{1383, Sample{0x3cd0, "FFMA R73, R28, R21, R73", 579, "short_sb"}},
		{2337, Sample{0x1cd0, "F2FP.F16.E4M3.UNPACK_B R22, R34.H1", 598, "long_sb"}},
	} {
		most := slices.MaxFunc(all[i].Instructions, func(a, b Sample) int { return a.Samples - b.Samples })
		if all[i].Kernel != "sdpa_fp8" || all[i].All != want.all || most != want.most {
			t.Errorf("launch %d: %d samples, most of them at %+v", i, all[i].All, most)
		}
	}
}

// Whatever ncu prints, samples are within bounds and in the order of the code's rows.
func FuzzSamples(f *testing.F) {
	f.Add("\"Kernel Name\",\"a\"\n" + samplesHead + "\n\"0x10\",\"MOV\",\"4\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\"\n")
	f.Add("\"Kernel Name\",\"a\"\n\"Address\",\"Source\",\"# Samples\"\n\"0xffffffffffffffff\",\"MOV\",\"1e30\"\n")
	f.Add("\"Kernel Name\",\"" + strings.Repeat("x", 1000) + "\"\n")
	f.Fuzz(func(t *testing.T, out string) {
		all, err := parseSamples(out)
		if err != nil {
			return
		}
		for _, l := range all {
			sum := 0
			for _, s := range l.Instructions {
				if sum += s.Samples; s.At < 0 || s.Samples <= 0 || len(s.Text) > maxSampleText || len(s.Reason) > maxSampleText {
					t.Errorf("%+v", s)
				}
			}
			if sum != l.All || len(l.Kernel) > maxSampleText {
				t.Errorf("%d samples, and %d in all", sum, l.All)
			}
		}
	})
}
