package inspect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates"
)

// sources makes a kernel's folder with these files.
func sources(t testing.TB, names ...string) Files {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return FilesOf(dir)
}

func lines(report Report) []string {
	var all []string
	for _, f := range report.Findings {
		all = append(all, strings.TrimSpace(f.Severity+" "+string(f.Kind)+": "+f.String()))
	}
	return all
}

// TestParseCompute parses examples from NVIDIA's manual and from published reports, by versions
// from cuda-memcheck to 2025.
func TestParseCompute(t *testing.T) {
	for _, c := range []struct {
		name, text string
		findings   []string
		trouble    string
		unfinished bool
	}{
		{name: "clean", text: `========= COMPUTE-SANITIZER
========= ERROR SUMMARY: 0 errors
`},
		{name: "no race", text: `========= COMPUTE-SANITIZER
========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)
`},
		{name: "out of bounds, twice", text: `========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at load(const float *, int)+0x90 in attention.cu:39
=========     by thread (0,0,0) in block (0,0,0)
=========     Access at 0x7f6510c01000 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f6510c00000 of size 4,096 bytes
=========         Device Frame: attention(const float *)+0x90 in attention.cu:44
========= 
========= Invalid __global__ read of size 4 bytes
=========     at load(const float *, int)+0x90 in attention.cu:39
=========     by thread (1,0,0) in block (0,0,0)
=========     Access at 0x7f6510c01004 is out of bounds
========= 
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call to cuCtxSynchronize.
========= ERROR SUMMARY: 2 errors
`, findings: []string{"out-of-bounds: an out-of-bounds read of 4 bytes of global memory in attention.cu:39 (2 times)"}},
		{name: "more than is printed", text: `========= COMPUTE-SANITIZER
========= Invalid __shared__ write of size 16 bytes
=========     at attention(int)+0x90 in attention.cu:39
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x10000 is out of bounds
========= 
========= ERROR SUMMARY: 6144 errors
========= ERROR SUMMARY: 6143 errors were not printed. Use --print-limit option to adjust the number of printed errors
`, findings: []string{"out-of-bounds: an out-of-bounds write of 16 bytes of shared memory in attention.cu:39 (6,144 times)"}},
		{name: "misaligned, in a header of the system", text: `========= COMPUTE-SANITIZER
========= Invalid __global__ atomic of size 8 bytes
=========     at __half2::operator=()+0x160 in cuda_fp16.hpp:34
=========     by thread (0,0,0) in block (0,0,0)
=========     Access at 0x7f6510c00001 is misaligned
=========     Device Frame:tile(void)+0x90 in tile.cuh:7
=========     Device Frame:attention(int)+0x90 in attention.cu:44
========= 
========= ERROR SUMMARY: 1 error
`, findings: []string{"misaligned: a misaligned atomic of 8 bytes of global memory in include/tile.cuh:7"}},
		{name: "a race", text: `========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at attention(int *, int *)+0x60 in attention.cu:28
=========     and Read access at attention(int *, int *)+0x100 in attention.cu:33 [508 hazards]
========= 
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
`, findings: []string{"race: a race between write and read of shared memory in attention.cu:28 and :33 (508 hazards)"}},
		{name: "a race with two others, and a template", text: `========= COMPUTE-SANITIZER
========= Warning: Race reported between Read access at void attention<(bool)0>(int *)+0x170 in attention.cu:4
=========     and Write access at void attention<(bool)0>(int *)+0x148 in attention.cu:3 [4 hazards]
=========     and Write access at void attention<(bool)0>(int *)+0x1a8 in attention.cu:4 [4,194,304 hazards]
========= 
========= RACECHECK SUMMARY: 2 hazards displayed (0 errors, 2 warnings)
`, findings: []string{
			"warning race: a race between write and read of shared memory in attention.cu:3 and :4 (4 hazards)",
			"warning race: a race between write and read of shared memory in attention.cu:4 (4,194,304 hazards)"}},
		{name: "a race in the style of cuda-memcheck", text: `========= CUDA-MEMCHECK
========= WARN: Race reported between Read access at 0x00000170 in ./attention.cu:4:test(int*, int*)
=========     and Write access at 0x00000148 in ./attention.cu:3:test(int*, int*) [4 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
`, findings: []string{"warning race: a race between write and read of shared memory in attention.cu:3 and :4 (4 hazards)"}},
		{name: "a race over several lines, without lines of the source", text: `========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at
=========     race(float *)+0xb0
=========     and Read access at
=========     race(float *)+0xc0
=========     [1024 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
`, findings: []string{"race: a race between write and read of shared memory in race (1,024 hazards)"}},
		{name: "unwritten memory", text: `========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at vectorAdd(int *)+0x70 in DIR/attention.cu:41
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
========= 
========= ERROR SUMMARY: 1 error
`, findings: []string{"uninitialised-read: a read of 4 bytes of global memory that nobody wrote in attention.cu:41"}},
		{name: "divergent barriers", text: `========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in warp.
=========     at attention(int *)+0xa0 in attention.cu:61
=========     by thread (19,0,0) in block (0,0,0)
========= 
========= Barrier error detected. Divergent thread(s) in block
=========     at attention+0x15520
=========     by thread (128,0,0) in block (0,0,0)
========= Barrier error detected. Invalid arguments.
=========     at attention(int *)+0xb0 in attention.cu:62
========= ERROR SUMMARY: 3 errors
`, findings: []string{
			"barrier: a barrier that not all threads of the warp reach in attention.cu:61",
			"barrier: a barrier that not all threads of the block reach in attention",
			"barrier: a wrong use of a barrier: Invalid arguments in attention.cu:62"}},
		{name: "a fault by a name that is not known", text: `========= COMPUTE-SANITIZER
========= Illegal instruction
=========     at attention(int *)+0xa0 in attention.cu:61
=========     by thread (19,0,0) in block (0,0,0)
========= 
========= ERROR SUMMARY: 1 error
`, findings: []string{"other: Illegal instruction in attention.cu:61"}},
		{name: "a count without a word", text: `========= COMPUTE-SANITIZER
========= ERROR SUMMARY: 7 errors
`, findings: []string{"other: faults that the tool counted and did not describe (7 times)"}},
		{name: "launches that were not looked at", text: `========= COMPUTE-SANITIZER
========= Internal Sanitizer Error: The Sanitizer encountered an error while launching attention and didn't track the launch. Errors might go undetected. (Unable to allocate enough memory to perform the requested operation)
=========
========= ERROR SUMMARY: 0 errors
`, trouble: "didn't track the launch"},
		{name: "the program failed", text: `========= COMPUTE-SANITIZER
========= Error: process didn't terminate successfully
========= Target application returned an error
========= ERROR SUMMARY: 0 errors
`, trouble: "process didn't terminate successfully"},
		{name: "a device that it does not know", text: `========= COMPUTE-SANITIZER
========= Error: Device not supported. Please refer to the "Supported Devices" section of the sanitizer documentation
`, trouble: "Device not supported", unfinished: true},
		{name: "cut off", text: "========= COMPUTE-SANITIZER\n========= Invalid __global__ read of si", unfinished: true},
		{name: "nothing", unfinished: true},
		{name: "what the kernel prints", text: "ERROR SUMMARY: 0 errors\n== ===== ERROR SUMMARY: 0 errors\n", unfinished: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := sources(t, "attention.cu", "include/tile.cuh", "deep/er/attention.cu")
			r := parseCompute(strings.ReplaceAll(c.text, "DIR", files.dir), files)
			if diff := cmp.Diff(c.findings, lines(r)); diff != "" {
				t.Error(diff)
			}
			if r.Finished == c.unfinished {
				t.Errorf("finished: %v", r.Finished)
			}
			if c.trouble == "" && r.Trouble != "" || !strings.Contains(r.Trouble, c.trouble) {
				t.Errorf("trouble: %q", r.Trouble)
			}
			if r.Found() != (len(c.findings) > 0) {
				t.Errorf("found: %v", r.Found())
			}
		})
	}
}

// TestRecorded parses the output of compute-sanitizer 2025.3.1 on an H200 for one program whose
// kernels have one mistake each. Each tool finds its own kind, in its line, and nothing else.
func TestRecorded(t *testing.T) {
	files := sources(t, "san.cu")
	want := map[string]string{
		"memcheck-bounds":        "out-of-bounds: an out-of-bounds read of 4 bytes of global memory in san.cu:17",
		"memcheck-write_bounds":  "out-of-bounds: an out-of-bounds write of 4 bytes of global memory in san.cu:23",
		"memcheck-shared_bounds": "out-of-bounds: an out-of-bounds write of 4 bytes of shared memory in san.cu:43 (1,021 times)",
		"memcheck-misaligned":    "misaligned: a misaligned write of 4 bytes of global memory in san.cu:52 (1,001 times)",
		"racecheck-race":         "race: a race between write and read of shared memory in san.cu:8 and :11 (4,000 hazards)",
		"racecheck-race-all":     "race: a race between write and read of shared memory in san.cu:8 and :11 (3 hazards)",
		"initcheck-uninit":       "uninitialised-read: a read of 4 bytes of global memory that nobody wrote in san.cu:29 (1,000 times)",
		"synccheck-barrier":      "barrier: a barrier that not all threads of the warp reach in san.cu:35 (16 times)",
	}
	recorded, err := filepath.Glob("testdata/compute/*check-*.txt")
	if err != nil || len(recorded) < 33 {
		t.Fatalf("%d recorded outputs, %v", len(recorded), err)
	}
	for _, file := range recorded {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := parseCompute(string(text), files)
		if got := strings.Join(lines(r), "; "); got != want[name] {
			t.Errorf("%s: %s\nwant %s", name, got, want[name])
		}
		// A tool has not examined a kernel that ends its launch with an error.
		failed := strings.Contains(string(text), "Target application returned an error")
		if !r.Finished || failed != (r.Trouble != "") {
			t.Errorf("%s: finished %v, trouble %q", name, r.Finished, r.Trouble)
		}
	}
}

// TestReportsAreBounded checks that a kernel with a fault on every line fills neither memory nor
// page, and that nothing is lost silently.
func TestReportsAreBounded(t *testing.T) {
	files := sources(t, "attention.cu")
	var text strings.Builder
	for i := range 300 {
		text.WriteString("========= Illegal instruction " + strings.Repeat("x", 1000) + "\n=========     at k()+0xa0 in attention.cu:" + strings.Repeat("1", i%9+1) + "\n=========\n")
		text.WriteString("========= Invalid __global__ read of size " + strings.Repeat("9", i%7+1) + "\n=========     at k()+0xa0 in attention.cu:" + strings.Repeat("2", i%9+1) + "\n=========\n")
	}
	r := parseCompute(text.String(), files)
	if len(r.Findings) != maxFindings || r.Hidden == 0 || !r.Found() {
		t.Errorf("%d findings, %d hidden", len(r.Findings), r.Hidden)
	}
	for _, f := range r.Findings {
		if len(f.Text) > maxText+4 {
			t.Errorf("a text of %d bytes", len(f.Text))
		}
	}
}

func FuzzParseCompute(f *testing.F) {
	for _, seed := range []string{
		"========= Error: Race reported between Write access at a()+0x1 in k.cu:1\n=========     and Read access at b()+0x2 in k.cu:2 [3 hazards]\n========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n",
		"========= Invalid __global__ read of size 4 bytes\n=========     at f(int)+0x90 in k.cu:39\n========= ERROR SUMMARY: 1 error\n",
		"========= Barrier error detected. Divergent thread(s) in block\n=========     at 0x10 in k.cu:3:f(int*)\n",
		"========= Race reported between  access at  and and access at [ hazards]\n", "=========\n=========  and\n========= at \n",
	} {
		f.Add(seed)
	}
	recorded, _ := filepath.Glob("testdata/compute/*.txt")
	for _, file := range recorded {
		if text, err := os.ReadFile(file); err == nil {
			f.Add(string(text))
		}
	}
	files := Files{dir: "/k", base: map[string]string{"k.cu": "k.cu"}}
	f.Fuzz(func(t *testing.T, text string) { checkReport(t, parseCompute(text, files)) })
}

// checkReport checks what holds for every report, whatever was printed: the evidence made from it
// can be read again.
func checkReport(t *testing.T, r Report) {
	t.Helper()
	if len(r.Findings) > maxFindings || r.Hidden < 0 || r.Errors < 0 {
		t.Fatalf("%d findings, %d hidden, %d errors", len(r.Findings), r.Hidden, r.Errors)
	}
	if r.Errors > 0 && !r.Found() {
		t.Fatal("errors were counted and none was found")
	}
	for i, f := range r.Findings {
		if f.Kind == "" || f.Text == "" || f.Count < 1 || f.Line < 0 || f.OtherLine < 0 {
			t.Fatalf("%+v", f)
		}
		if filepath.IsAbs(f.File) || strings.Contains(f.File, "..") {
			t.Fatalf("a file outside the kernel's folder: %+v", f)
		}
		if slices.ContainsFunc(r.Findings[:i], func(g gates.Finding) bool { return sameFinding(f, g) }) {
			t.Fatalf("twice: %+v", f)
		}
	}
}

// TestUnprintedErrors checks that errors that the tool counts and does not print are hidden
// findings if there are several findings, because they may be on any line.
func TestUnprintedErrors(t *testing.T) {
	record := func(line string) string {
		return "========= Invalid __global__ read of size 4 bytes\n=========     at scale+0xc0 in k.cu:" + line + "\n=========     by thread (1,0,0) in block (0,0,0)\n========= \n"
	}
	files := Files{dir: "/k", base: map[string]string{"k.cu": "k.cu"}}
	one := parseCompute(record("5")+"========= ERROR SUMMARY: 600 errors\n", files)
	if len(one.Findings) != 1 || one.Findings[0].Count != 600 || one.Hidden != 0 {
		t.Errorf("one line: %+v", one)
	}
	two := parseCompute(record("5")+record("6")+"========= ERROR SUMMARY: 600 errors\n", files)
	if len(two.Findings) != 2 || two.Hidden != 598 {
		t.Errorf("two lines: %+v", two)
	}
}
