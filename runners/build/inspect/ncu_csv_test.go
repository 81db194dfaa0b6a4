package inspect

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	fixedHeader = `"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC"`
	fixedCells  = `"4242","kg","127.0.0.1","k","1","7","(128, 1, 1)","(4, 1, 1)","0","9.0"`
	noUnits     = `"","","","","","","","","","",""`
)

// printed returns a table with one launch and one metric.
func printed(unit, value string) string {
	return fixedHeader + `,"m__x.sum"` + "\n" + noUnits + `,"` + unit + "\"\n" + `"0",` + fixedCells + `,"` + value + "\"\n"
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/ncu", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// handmade is the content of the handmade table.
var handmade = []Launch{
	{ID: 0, Kernel: "sdpa_fp8", Metrics: []Metric{
		{"dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", 12.47},
		{"gpu__time_duration.sum", "ns", 1199104},
		{"lts__throughput.avg.pct_of_peak_sustained_elapsed", "%", 31.06},
		{"sm__inst_executed_pipe_tensor.sum", "inst", 16777216},
		{"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%", 44.81},
		{"sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", 52.93},
		{"sm__warps_active.avg.pct_of_peak_sustained_active", "%", 24.98},
	}},
	{ID: 1, Kernel: "sdpa_fp8", Metrics: []Metric{
		{"dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", 12.51},
		{"gpu__time_duration.sum", "ns", 1201280},
		{"sm__inst_executed_pipe_tensor.sum", "inst", 16777216},
		{"sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", 52.88},
	}},
}

func TestParseCSV(t *testing.T) {
	got, err := parseCSV(read(t, "raw_handmade.csv"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(handmade, got); diff != "" {
		t.Error(diff)
	}
}

// TestParseCSVTestdata checks that every table in testdata, recorded or handmade, has launches of
// one kernel with a duration.
func TestParseCSVTestdata(t *testing.T) {
	files, err := filepath.Glob("testdata/ncu/*.csv")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tables in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			launches, err := parseCSV(read(t, filepath.Base(file)), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(launches) != 2 {
				t.Errorf("%d launches, want 2", len(launches))
			}
			for _, l := range launches {
				d, ok := l.metric("gpu__time_duration.sum")
				for _, asked := range handmade[0].Metrics {
					if _, ok := l.metric(asked.Name); !ok && strings.Contains(file, "_recorded") {
						t.Errorf("launch %d has no %s, which was asked for", l.ID, asked.Name)
					}
				}
				if l.Kernel != "sdpa_fp8" || !ok || d.Value < 1000 || !strings.HasPrefix(d.Unit, "n") {
					t.Errorf("launch %d of %s has the duration %+v (%v), want one of sdpa_fp8 in nanoseconds", l.ID, l.Kernel, d, ok)
				}
			}
		})
	}
}

func TestParseCSVValues(t *testing.T) {
	tests := []struct {
		name, unit, cell string
		want             []Metric
	}{
		{"plain", "%", "45.2", []Metric{{"m__x.sum", "%", 45.2}}},
		{"integer", "inst", "7", []Metric{{"m__x.sum", "inst", 7}}},
		{"thousands", "ns", "1,199,104", []Metric{{"m__x.sum", "ns", 1199104}}},
		{"thousands and a fraction", "ns", "1,234.5", []Metric{{"m__x.sum", "ns", 1234.5}}},
		{"negative", "", "-1,000", []Metric{{"m__x.sum", "", -1000}}},
		{"no leading zero", "", ".5", []Metric{{"m__x.sum", "", 0.5}}},
		{"exponent", "byte", "1.5e+06", []Metric{{"m__x.sum", "byte", 1.5e6}}},
		{"zero", "", "0", []Metric{{"m__x.sum", "", 0}}},
		{"spaces", "ns", "  12 ", []Metric{{"m__x.sum", "ns", 12}}},
		{"quotes inside", "ns", `""12""`, []Metric{{"m__x.sum", "ns", 12}}},
		{"unit beside it", "", "12.5 us", []Metric{{"m__x.sum", "us", 12.5}}},
		{"unit in both places", "%", "12.5%", []Metric{{"m__x.sum", "%", 12.5}}},
		{"compound unit", "", "3 byte/s", []Metric{{"m__x.sum", "byte/s", 3}}},
		{"instances behind it", "", "3 (1; 2)", []Metric{{"m__x.sum", "", 3}}},
		{"marked but there", "%", "(!) 3.5", []Metric{{"m__x.sum", "%", 3.5}}},
		{"n/a", "%", "n/a", nil},
		{"marked n/a", "%", "(!) n/a", nil},
		{"empty", "%", "", nil},
		{"nan", "%", "nan", nil},
		{"negative nan", "%", "-nan", nil},
		{"infinite", "%", "inf", nil},
		{"dash", "%", "-", nil},
		{"text", "", "NVIDIA H200", nil},
		{"dimensions", "", "(128, 1, 1)", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseCSV(printed(tt.unit, tt.cell), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]Launch{{ID: 0, Kernel: "k", Metrics: tt.want}}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseCSVAround(t *testing.T) {
	const head = fixedHeader + `,"m"` + "\n" + noUnits + `,""` + "\n"
	row := func(id, kernel, value string) string {
		return `"` + id + `","4242","kg","127.0.0.1","` + kernel + `","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","` + value + "\"\n"
	}
	tests := []struct {
		name, out string
		want      []Launch
	}{
		{"Windows line ends", strings.ReplaceAll(printed("ns", "5"), "\n", "\r\n"), []Launch{{0, "k", []Metric{{"m__x.sum", "ns", 5}}, nil}}},
		{"a header alone", fixedHeader + "\n", nil},
		{"a line like a header", "\"ID\" tags follow\n\"ID\",\"Name\"\n\"0\",\"x\"\n" + printed("ns", "5"), []Launch{{0, "k", []Metric{{"m__x.sum", "ns", 5}}, nil}}},
		{
			"launches interleaved with prints",
			head + row("0", "a", "1") + "progress 50%\n\"quoted\" words\n" + row("1", "b(float*, int)", "2"),
			[]Launch{{0, "a", []Metric{{"m", "", 1}}, nil}, {1, "b(float*, int)", []Metric{{"m", "", 2}}, nil}},
		},
		{
			"two tables that both start at 0",
			printed("ns", "5") + "==PROF== again\n" + printed("ns", "6"),
			[]Launch{{0, "k", []Metric{{"m__x.sum", "ns", 5}}, nil}, {0, "k", []Metric{{"m__x.sum", "ns", 6}}, nil}},
		},
		{
			"columns that are no metrics",
			fixedHeader + `,"thread Domain:Push/Pop_Range:PL_Type","m__x"` + "\n" + noUnits + `,"","inst"` + "\n" + `"1,024",` + fixedCells + `,"0","8"` + "\n",
			[]Launch{{1024, "k", []Metric{{"m__x", "inst", 8}}, nil}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseCSV(tt.out, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseCSVErrors(t *testing.T) {
	row := `"0",` + fixedCells
	tests := []struct{ name, out, want string }{
		{"nothing", "", "there is none"},
		{"prints alone", "hello\n==ERROR== no\n", "there is none"},
		{"point and comma swapped", printed("%", "65,77"), `line 3: m__x.sum: "65,77" is not a number`},
		{"comma after four digits", printed("ns", "1234,567"), `line 3: m__x.sum: "1234,567" is not a number`},
		{"four digits after a comma", printed("ns", "1,2345"), `line 3: m__x.sum: "1,2345" is not a number`},
		{"version", printed("", "2025.3.1"), "is not a number"},
		{"hexadecimal", printed("", "0x1F"), "is not a number"},
		{"too large", printed("", "1e999"), "not a number that can be held"},
		{"unit against its column", printed("ns", "5 us"), `line 3: m__x.sum: the value "5 us" is not in the unit "ns"`},
		{"cut off", fixedHeader + `,"m__x"` + "\n" + noUnits + `,"ns"` + "\n" + row + `,"1,1`, "line 3: the row is broken (was the output cut off?)"},
		{"too few columns", fixedHeader + `,"m__x"` + "\n" + noUnits + `,"ns"` + "\n" + row + "\n", "line 3: the row has 11 columns, the header 12"},
		{"units cut off", fixedHeader + `,"m__x"` + "\n" + `"","ns"` + "\n", "line 2: the row of units has 2 columns, the header 12"},
		{"no units", fixedHeader + `,"m__x"` + "\n" + row + `,"5"` + "\n", "line 2: a launch stands before the row of units"},
		{"a launch twice", printed("ns", "5") + row + `,"5"` + "\n", "line 4: launch 0 has a row already"},
		{"number of a launch too large", fixedHeader + "\n" + noUnits + "\n" + strings.Replace(row, `"0"`, `"99999999999999999999"`, 1) + "\n", "line 3: \"99999999999999999999\" is not a launch's number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseCSV(tt.out, nil)
			if err == nil {
				t.Fatalf("got %v, want an error", got)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q does not contain %q", err, tt.want)
			}
		})
	}
}

func TestLaunchMetric(t *testing.T) {
	l := handmade[1]
	if m, ok := l.metric("gpu__time_duration.sum"); !ok || m.Value != 1201280 {
		t.Errorf("got %+v, %v", m, ok)
	}
	if m, ok := l.metric("lts__throughput.avg.pct_of_peak_sustained_elapsed"); ok {
		t.Errorf("got %+v for a metric that ncu could not collect", m)
	}
}

// FuzzParseCSV checks that all parsed values are finite, and that a table written from them parses
// to the same values.
func FuzzParseCSV(f *testing.F) {
	files, err := filepath.Glob("testdata/ncu/*_handmade.*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(printed("", "12.5 us") + printed("%", "(!) n/a"))
	f.Add(printed("ns", `""1,234""`))
	f.Fuzz(func(t *testing.T, out string) {
		launches, err := parseCSV(out, nil)
		if err != nil {
			if launches != nil {
				t.Errorf("launches beside the error %v", err)
			}
			return
		}
		for _, l := range launches {
			for _, m := range l.Metrics {
				if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
					t.Errorf("launch %d: %+v", l.ID, m)
				}
			}
			again, err := parseCSV(write(l), nil)
			if err != nil || len(again) != 1 || len(l.Metrics) > 0 && cmp.Diff(l, again[0]) != "" {
				t.Errorf("%+v was written as %q and read as %+v, %v", l, write(l), again, err)
			}
		}
	})
}

// write makes a table of a launch. Only tests write ncu's tables.
func write(l Launch) string {
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	names, units, values := `"ID","Kernel Name"`, `"",""`, quote(strconv.Itoa(l.ID))+","+quote(l.Kernel)
	for _, m := range l.Metrics {
		names, units = names+","+quote(m.Name), units+","+quote(m.Unit)
		values += "," + quote(strconv.FormatFloat(m.Value, 'g', -1, 64))
	}
	return names + "\n" + units + "\n" + values + "\n"
}

// metric finds a counter by name.
func (l Launch) metric(name string) (Metric, bool) {
	for _, m := range l.Metrics {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}
