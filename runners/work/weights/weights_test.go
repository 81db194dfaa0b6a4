package weights

import (
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

const rmsnorm = `version: 1
name: rmsnorm
mode: cuda
entry: ns::rmsnorm<64, true>
arch: [sm_90]
source: rmsnorm.cu
arguments:
  - {name: x, dtype: f16, access: in, shape: [M, N]}
  - {name: g, dtype: f16, access: in, shape: [N]}
  - {name: y, dtype: f16, access: out, shape: [M, N]}
launch: {grid: ["ceildiv(M, 4)"], block: [128]}
reference: {source: reference.cu, entry: truth, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.06}
shapes:
  prefill: {M: 2048, N: 4096}
  batch: {M: 64, N: 4096}
  wide: {M: 64, N: 8192}   # the grid of batch
limits: {M: 1..8192, N: 64..8192}
`

const mangled = "void ns::rmsnorm<(int)64, (bool)1>(__half *, const __half *, __half *, int)"

func parsed(t testing.TB, text string) *manifest.Manifest {
	t.Helper()
	m, err := manifest.Parse("kernel.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A traced program launches kernels step by step. It writes what torch's profiler and nsys write of it.
type program struct {
	calls []call
	steps int
	gap   float64 // microseconds of a step
}

type call struct {
	name   string
	grid   int
	dims   string // JSON of Input Dims
	micros float64
	times  int // per step
}

func decoder() program {
	return program{steps: 3, gap: 1000, calls: []call{
		{mangled, 512, `[[2048, 4096], [4096], [], []]`, 40, 1},
		{mangled, 16, `[[64, 4096], [4096], [], []]`, 5, 36},
		{mangled, 1, `[[1, 4096], [4096], [], []]`, 3, 4},
		{"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)", 99, `[[7]]`, 10, 20},
	}}
}

// chrome is the program's trace as torch's profiler exports it.
func (p program) chrome(shapes bool) string {
	var events []string
	id := 0
	for step := range p.steps {
		at := 1e9 + float64(step)*p.gap
		events = append(events, fmt.Sprintf(`{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 9, "tid": 9, "ts": %.3f, "dur": %.3f, "args": {"External id": %d, "Ev Idx": 0}}`, step+4, at, p.gap-1, 1000000+step))
		for _, c := range p.calls {
			for range c.times {
				id++
				at += 0.5
				inputs := ""
				if shapes {
					inputs = `, "Input Dims": ` + c.dims
				}
				events = append(events,
					fmt.Sprintf(`{"ph": "X", "cat": "kernel", "name": %q, "pid": 0, "tid": 7, "ts": %.3f, "dur": %.3f, "args": {"External id": %d, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": %d, "registers per thread": 32, "shared memory": 0, "blocks per SM": 1.2, "warps per SM": 4.8, "grid": [%d, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %%": 7}}`, c.name, at+400, c.micros, id, 5000+id, c.grid),
					fmt.Sprintf(`{"ph": "X", "cat": "cpu_op", "name": "ns::op", "pid": 9, "tid": 9, "ts": %.3f, "dur": 0.4, "args": {"External id": %d, "Record function id": 0, "Ev Idx": %d%s}}`, at, id, id, inputs),
					fmt.Sprintf(`{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": %.3f, "dur": 0.2, "args": {"External id": %d, "cbid": 211, "correlation": %d}}`, at+0.1, id, 5000+id),
					fmt.Sprintf(`{"ph": "s", "id": %d, "pid": 9, "tid": 9, "ts": %.3f, "cat": "ac2g", "name": "ac2g"}`, 5000+id, at+0.1))
			}
		}
	}
	return `{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150000000000}], "record_shapes": 1, "traceEvents": [` +
		`{"ph": "M", "name": "process_name", "ts": 1.5, "pid": 9, "tid": 0, "args": {"name": "python3"}},` + strings.Join(events, ",\n") + `], "traceName": "trace.json"}`
}

func (p program) file(t testing.TB, name string, shapes bool) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !strings.HasSuffix(name, ".gz") {
		if _, err := f.WriteString(p.chrome(shapes)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	zip := gzip.NewWriter(f)
	if _, err := zip.Write([]byte(p.chrome(shapes))); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// export is the program's trace as nsys export --type sqlite writes it.
func (p program) export(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace.sqlite")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run := func(query string, args ...any) {
		t.Helper()
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatal(err)
		}
	}
	run(`BEGIN`)
	run(`CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)`)
	run(`CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL)`)
	run(`CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER)`)
	run(`CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL)`)
	run(`CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, text TEXT, globalTid INTEGER, textId INTEGER)`)
	run(`INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA H200')`)
	run(`INSERT INTO StringIds VALUES (1, 'decode'), (2, 'rmsnorm'), (3, 'cudaLaunchKernel')`)
	const process, thread = 77 * 0x1000000, 77*0x1000000 + 5
	id := 0
	for i, c := range p.calls {
		run(`INSERT INTO StringIds VALUES (?, ?)`, 10+i, c.name)
	}
	for step := range p.steps {
		at := int(1e9 + 1e3*float64(step)*p.gap)
		run(`INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, NULL, NULL, ?, 1)`, at, at+int(1e3*p.gap)-1, thread)
		for i, c := range p.calls {
			for range c.times {
				id++
				at += 500
				run(`INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, 3, 0, NULL)`, at, at+100, thread, id)
				// Another process counts its correlations itself.
				run(`INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, 3, 0, NULL)`, 1, 2, 78*0x1000000, id)
				run(`INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, ?, ?, ?, 2, NULL, ?, 1, 1, 128)`, at+900000, at+900000+int(1e3*c.micros), id, process, 10+i, c.grid)
			}
		}
	}
	run(`INSERT INTO NVTX_EVENTS VALUES (1, NULL, 34, NULL, 'a mark', ?, NULL)`, thread)
	run(`COMMIT`)
	return file
}

func read(t testing.TB, file string) *Trace {
	t.Helper()
	trace, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// With recorded shapes, each launch has its shape, and those that no shape has are named by their dims.
func TestTorchTrace(t *testing.T) {
	m := parsed(t, rmsnorm)
	for _, name := range []string{"trace.json", "trace.json.gz"} {
		u, err := Find(m, read(t, decoder().file(t, name, true)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := `rmsnorm on NVIDIA H200: 41 launches per step, 232 µs (23.2 % of the step), in 3 steps of 999 µs
  prefill (M=2048 N=4096): 1 launch, 40.0 µs each, 17.2 % of the kernel's time
  batch (M=64 N=4096): 36 launches, 5.00 µs each, 77.6 % of the kernel's time
  9.8 % of the launches (5.2 % of the kernel's time) have M=1 N=4096, which no shape of the manifest has (the grid 1×1×1; add it)
`
		if diff := cmp.Diff(want, strings.ReplaceAll(u.Text(), "\u00a0", " ")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		section := u.Section()
		for _, line := range []string{"weights:\n  launches: {prefill: 1, batch: 36}\n  kernel: 220us\n  step: 999us\n  unmatched: 4\n  tool: torch\n  trace: sha256:"} {
			if !strings.HasPrefix(section, line) {
				t.Errorf("%s: the section is\n%s", name, section)
			}
		}
	}
}

// Without recorded shapes only the grid is known. A grid that two shapes have is of neither.
func TestTraceWithoutShapes(t *testing.T) {
	m := parsed(t, rmsnorm)
	for name, file := range map[string]string{"torch": decoder().file(t, "trace.json", false), "nsys": decoder().export(t)} {
		u, err := Find(m, read(t, file), Options{Range: map[string]string{"nsys": "decode"}[name]})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(u.Text(), "\u00a0", " ")
		for _, want := range []string{
			"prefill (M=2048 N=4096): 1 launch",
			"87.8 % of the launches (77.6 % of the kernel's time) have the grid 16×1×1, which the shapes batch and wide have in common",
			"9.8 % of the launches (5.2 % of the kernel's time) have the grid 1×1×1, which no shape of the manifest has (add the shape)",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the text lacks %q:\n%s", name, want, text)
			}
		}
		if want := "weights:\n  launches: {prefill: 1}\n  kernel: 40us\n"; !strings.HasPrefix(u.Section(), want) || !strings.Contains(u.Section(), "  unmatched: 40\n  tool: "+name+"\n") || u.Device != "NVIDIA H200" {
			t.Errorf("%s on %s: the section is\n%s", name, u.Device, u.Section())
		}
		if u.Steps != 3 || u.Outside != 0 {
			t.Errorf("%s: %d steps, %d launches outside", name, u.Steps, u.Outside)
		}
	}
	// With one shape of that grid the launches are its.
	one := parsed(t, strings.Replace(rmsnorm, "  wide: {M: 64, N: 8192}   # the grid of batch\n", "", 1))
	u, err := Find(one, read(t, decoder().export(t)), Options{Steps: 6})
	if err != nil {
		t.Fatal(err)
	}
	if want := "weights:\n  launches: {prefill: 0.5, batch: 18}\n  unmatched: 2\n  tool: nsys\n"; !strings.HasPrefix(u.Section(), want) {
		t.Errorf("with a number of steps the section is\n%s", u.Section())
	}
}

// Launches of warm-up that lie outside of every step do not count.
func TestLaunchesOutside(t *testing.T) {
	text := decoder().chrome(true)
	text = strings.Replace(text, `"traceEvents": [`, `"traceEvents": [{"ph": "X", "cat": "kernel", "name": "void ns::rmsnorm<64, true>(int)", "ts": 5, "dur": 2, "args": {"device": 0, "grid": [16, 1, 1]}},`, 1)
	trace, err := ReadTorch(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	u, err := Find(parsed(t, rmsnorm), trace, Options{})
	if err != nil || u.Outside != 1 || u.Launches != 41 {
		t.Errorf("%+v, %v", u, err)
	}
}

// Triton's names may end in what a kernel was specialised on, and a launch may have several kernels.
func TestNamesAndSteps(t *testing.T) {
	triton := parsed(t, strings.NewReplacer("ns::rmsnorm<64, true>", "rmsnorm_kernel", "rmsnorm.cu", "rmsnorm.py", ", block: [128]}", "}\ncompiler: triton").Replace(rmsnorm))
	for name, want := range map[string]float64{"rmsnorm_kernel": 37, "rmsnorm_kernel_0d1d2de3c": 37, "other_rmsnorm_kernel": 0, "rmsnorm_kernel2": 0} {
		p := decoder()
		p.calls = p.calls[:2]
		for i := range p.calls {
			p.calls[i].name = name
		}
		u, err := Find(triton, read(t, p.file(t, "t.json", true)), Options{})
		if want == 0 {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("no launch in the trace is of rmsnorm_kernel (the entry of rmsnorm); the trace has %q", name)) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || u.Launches != want {
			t.Errorf("%s: %v, %v", name, u, err)
		}
	}
	split := parsed(t, strings.Replace(rmsnorm, `{grid: ["ceildiv(M, 4)"], block: [128]}`, `{steps: [{entry: part, grid: ["ceildiv(M, 4)"], block: [128]}, {entry: whole, grid: [1], block: [128]}]}`, 1))
	p := program{steps: 2, gap: 100, calls: []call{{"part(int)", 512, `[[2048, 4096], [4096]]`, 6, 1}, {"whole(int)", 1, `[]`, 4, 1}}}
	u, err := Find(split, read(t, p.file(t, "t.json", true)), Options{})
	if err != nil || u.Launches != 1 || u.Micros != 10 || u.Shapes[0].Name != "prefill" || u.Shapes[0].Micros != 10 {
		t.Errorf("a launch of two kernels: %+v, %v", u, err)
	}
}

// Bad input has one message that says what to do.
func TestBadTraces(t *testing.T) {
	m := parsed(t, rmsnorm)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	whole := decoder().chrome(true)
	for file, want := range map[string]string{
		write("empty.json", ""):                     "is neither a Chrome trace of torch's profiler nor an SQLite export of nsys",
		write("other.json", `{"a": 1}`):             "is neither a Chrome trace",
		write("number.json", `7`):                   "is neither a Chrome trace",
		write("cut.json", whole[:len(whole)/2]):     "is not valid JSON: unexpected EOF (the program may have ended before the trace was complete)",
		write("list.json", `{"traceEvents": {}}`):   "traceEvents: is not a list",
		write("cpu.json", `{"traceEvents": []}`):    "no kernel of a GPU is in the trace (record it with ProfilerActivity.CUDA",
		write("a.gz", "\x1f\x8bxx"):                 "is not a gzip file",
		write("report.nsys-rep", "NSYS"):            "export it: nsys export --type sqlite",
		write("bad.sqlite", "SQLite format 3\x00 "): "looking for the table CUPTI_ACTIVITY_KIND_KERNEL",
		filepath.Join(dir, "none.json"):             "no such file",
	} {
		if _, err := Read(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
	trace := read(t, decoder().file(t, "t.json", true))
	cpu := parsed(t, "version: 1\nname: h\nmode: command\ncommand: {build: [make], bench: [./b]}\nshapes: {one: {N: 1}}\n")
	for want, err := range map[string]error{
		`has no range named decode (its ranges are "ProfilerStep#4", "ProfilerStep#5", "ProfilerStep#6")`: second(Find(m, trace, Options{Range: "decode"})),
		"--steps -1 is no number of steps":       second(Find(m, trace, Options{Steps: -1})),
		"--steps and --range both say":           second(Find(m, trace, Options{Steps: 1, Range: "decode"})),
		"h is a command kernel, and traces have": second(Find(cpu, trace, Options{})),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	nested := read(t, write("nested.json", strings.Replace(whole, "ProfilerStep#5", "step 1", 1)))
	nested.Ranges = append(nested.Ranges, Range{"step 2", nested.Ranges[1].Start + 1, nested.Ranges[1].End})
	if _, err := Find(m, nested, Options{Range: "step"}); err == nil || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("%v", err)
	}
}

func second(_ *Use, err error) error { return err }

// The weights replace those that a manifest has, and nothing else of it.
func TestWrite(t *testing.T) {
	u, err := Find(parsed(t, rmsnorm), read(t, decoder().file(t, "t.json", true)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	u.Warm = []string{"batch"}
	for name, text := range map[string]string{
		"none":     rmsnorm,
		"last":     rmsnorm + "weights: {launches: {batch: 1}}",
		"in front": strings.Replace(rmsnorm, "shapes:", "weights:\n  launches:\n    batch: 1   # by hand\n\n  step: 5us\n# sizes\nshapes:", 1),
	} {
		out, err := u.Write("kernel.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		w := parsed(t, string(out)).Weights
		if w == nil || fmt.Sprint(w.Launches) != "map[batch:36 prefill:1]" || w.Kernel != 220 || w.Tool != manifest.TraceTorch || w.Unmatched != 4 || fmt.Sprint(w.Warm) != "[batch]" {
			t.Errorf("%s: %+v", name, w)
		}
		if name == "in front" && (!strings.Contains(string(out), "# sizes\nshapes:") || strings.Contains(string(out), "by hand")) {
			t.Errorf("%s:\n%s", name, out)
		}
		if again, err := u.Write("kernel.yaml", out); err != nil || string(again) != string(out) {
			t.Errorf("%s: writing twice changes it: %v", name, err)
		}
	}
}

// A trace does not show which launches find a warm cache: what the manifest says about that stays.
func TestWarmStays(t *testing.T) {
	m := parsed(t, rmsnorm+"weights: {launches: {batch: 1, prefill: 2}, warm: [prefill, batch]}\n")
	for launched, want := range map[bool]string{true: "  warm: [prefill, batch]\n", false: "  warm: [prefill]\n"} {
		d := decoder()
		if !launched {
			d.calls = d.calls[:1]
		}
		u, err := Find(m, read(t, d.file(t, "t.json", true)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(u.Section(), want) {
			t.Errorf("want %s:\n%s", want, u.Section())
		}
	}
}

// Whatever a trace is, it is read or refused, and what is found in it can be written.
func FuzzTorch(f *testing.F) {
	f.Add(decoder().chrome(true))
	small := decoder()
	small.steps, small.calls = 1, small.calls[:1]
	f.Add(small.chrome(false))
	f.Add(`[{"ph":"X","cat":"kernel","name":"rmsnorm","ts":1e308,"dur":1e308,"args":{"grid":[1,2,3,4],"Input Dims":[[[1],[]],7,"a"]}}]`)
	f.Add(`{"traceEvents":[{"ph":3},{"args":[]}],"deviceProperties":{}}`)
	m := parsed(f, rmsnorm)
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := ReadTorch(strings.NewReader(text))
		if err != nil {
			if err.Error() == "" {
				t.Error("refused without a reason")
			}
			return
		}
		trace.Digest = "sha256:" + strings.Repeat("0", 64)
		for _, opt := range []Options{{}, {Steps: 3}} {
			use(t, m, trace, opt)
		}
	})
}

func use(t *testing.T, m *manifest.Manifest, trace *Trace, opt Options) {
	u, err := Find(m, trace, opt)
	if err != nil {
		return
	}
	if launches, _ := u.Matched(); launches > u.Launches*1.000001 || u.Text() == "" {
		t.Errorf("%v of %v launches have a shape", launches, u.Launches)
	}
	if u.Section() != "" {
		if _, err := u.Write("kernel.yaml", []byte(rmsnorm)); err != nil && u.Micros < 1e15 && u.StepTime < 1e15 {
			t.Errorf("%v:\n%s", err, u.Section())
		}
	}
}

// The same for the rows of an export.
func FuzzNsys(f *testing.F) {
	f.Add(mangled, "decode", int64(5), int64(9), int64(16), int64(1))
	f.Add("", "", int64(-5), int64(1<<62), int64(-1), int64(7))
	f.Add("rmsnorm", "decode#3", int64(9), int64(5), int64(1<<40), int64(0))
	m := parsed(f, rmsnorm)
	f.Fuzz(func(t *testing.T, name, label string, start, end, grid, correlation int64) {
		file := decoder().export(t)
		db, err := sql.Open("sqlite", file)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []struct {
			query string
			args  []any
		}{
			{`INSERT INTO StringIds VALUES (99, ?)`, []any{name}},
			{`INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, NULL, ?, 1, NULL)`, []any{start, end, label}},
			{`INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, ?, NULL, 99, 2, NULL, ?, 1, 1, 128)`, []any{start, end, correlation, grid}},
		} {
			if _, err := db.Exec(q.query, q.args...); err != nil {
				t.Fatal(err)
			}
		}
		db.Close()
		trace, err := Read(file)
		if err != nil {
			return
		}
		use(t, m, trace, Options{Range: "decode"})
		use(t, m, trace, Options{Steps: 1})
	})
}

// What the test writes is JSON, or it would test nothing.
func TestProgramIsJSON(t *testing.T) {
	if !json.Valid([]byte(decoder().chrome(true))) {
		t.Error("the trace of the test is no JSON")
	}
}
