package inspect

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestClassifyTestdata classifies the texts in testdata, which are named after their problem. Some
// are recorded, some are handmade.
func TestClassifyTestdata(t *testing.T) {
	kinds := map[string]Problem{
		"no_permission":   {Kind: noPermission},
		"no_kernels":      {Kind: noKernels, Names: []string{"fill_poison", "sdpa_fp8_v2"}},
		"busy":            {Kind: busy},
		"no_profiler":     {Kind: noProfiler},
		"unknown_metrics": {Kind: metricsUnknown, Names: []string{"sm__teh_cycles", "dram__speed.avg"}},
	}
	for name, want := range kinds {
		files, err := filepath.Glob("testdata/ncu/" + name + "_*.txt")
		if err != nil || len(files) == 0 {
			t.Fatalf("no text for %s: %v", name, err)
		}
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				p := classify(read(t, filepath.Base(file)))
				if p == nil || p.Kind != want.Kind {
					t.Fatalf("got %+v, want %s", p, want.Kind)
				}
				// Recordings may name any kernels and any first unknown metric.
				if len(p.Names) == 0 && len(want.Names) > 0 {
					t.Errorf("%+v names nothing", p)
				}
				if strings.Contains(file, "_handmade") {
					if diff := cmp.Diff(want.Names, p.Names); diff != "" {
						t.Error(diff)
					}
				}
				if p.Detail == "" || p.Remedy == "" {
					t.Errorf("%+v says too little", p)
				}
			})
		}
	}
}

func TestClassify(t *testing.T) {
	tests := []struct {
		name, out string
		kind      problemKind
		names     []string
	}{
		{"permission told as a warning", "==WARNING== ERR_NVGPUCTRPERM - no\n==WARNING== No kernels were profiled.\n", noPermission, nil},
		{"lock of another user", "==ERROR== Failed to open lock file /tmp/nsight-compute-lock\n", busy, nil},
		{"stub library", "==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).\n==ERROR== The application returned an error code (1).\n", noProfiler, nil},
		{"metrics not to be had", "==ERROR== Failed to access the following 2 metrics: nvlrx__bytes.sum, nvltx__bytes.sum\n", metricsUnknown, []string{"nvlrx__bytes.sum", "nvltx__bytes.sum"}},
		{"a metric asked for twice", "==ERROR== Failed to find metric a__b\n==ERROR== Failed to find metric a__b\n", metricsUnknown, []string{"a__b"}},
		{"could not find", "==ERROR== The executable /opt/x could not be found\n", notFound, nil},
		{"could not find, the other way round", "==ERROR== Could not find the section files\n", notFound, nil},
		{"no such program", "==ERROR== '/opt/x' does not exist or is not an executable.\n", notFound, nil},
		{"program failed", "==PROF== Disconnected from process 1\n==ERROR== The application returned an error code (3).\n==WARNING== No kernels were profiled.\n", programFailed, nil},
		{"no kernels, old wording", "==PROF== No kernels were profiled\n", noKernels, nil},
		{"behind a print without a line's end", "50%==ERROR== ERR_NVGPUCTRPERM\n", noPermission, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := classify(tt.out)
			if p == nil || p.Kind != tt.kind || !slices.Equal(p.Names, tt.names) {
				t.Errorf("got %+v, want %s %v", p, tt.kind, tt.names)
			}
		})
	}
}

func TestClassifyNothing(t *testing.T) {
	for name, out := range map[string]string{
		"empty":            "",
		"success":          "==PROF== Connected to process 1\n==PROF== Profiling \"k\" - 0: 0%....100% - 4 passes\n==PROF== Report: /tmp/x.ncu-rep\n",
		"a program's word": "No kernels were profiled, ERR_NVGPUCTRPERM\n",
		"a mere warning":   "==WARNING== Could not find the stock sections, using others\n",
		"an unknown error": "==ERROR== The moon is in the wrong house\n",
	} {
		t.Run(name, func(t *testing.T) {
			if p := classify(out); p != nil {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestProblemWords(t *testing.T) {
	p := classify(read(t, "no_kernels_handmade.txt"))
	want := "ncu: No kernels were profiled (launched were fill_poison, sdpa_fp8_v2): " +
		"check that the program launches the kernel under this name, and more often than launches are skipped"
	if p.String() != want {
		t.Errorf("got  %s\nwant %s", p, want)
	}
	p = classify(read(t, "no_permission_handmade.txt"))
	if p.Kind != noPermission || !strings.Contains(p.Remedy, "NVreg_RestrictProfilingToAdminUsers=0") || !strings.Contains(p.Remedy, "CAP_SYS_ADMIN") {
		t.Errorf("%+v is not told with the remedy", p)
	}
}

func FuzzClassify(f *testing.F) {
	f.Add("==ERROR== Failed to find metric regex:^a\\.(sum)$\n==WARNING== No kernels were profiled.\nAvailable Kernels:\n1. k\n")
	f.Add("==ERROR== Failed to access the following 2 metrics: a,, b.")
	f.Fuzz(func(t *testing.T, out string) {
		p := classify(out)
		if p == nil {
			return
		}
		if !strings.Contains(out, p.Detail) || p.Remedy == "" || slices.Contains(p.Names, "") {
			t.Errorf("%+v", p)
		}
	})
}
