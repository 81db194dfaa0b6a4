package manifest

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/ident"
)

func TestIsSource(t *testing.T) {
	cpu := parseFile(t, "../sdpa_cpu/kernel.yaml")
	cuda := parseFile(t, "testdata/sdpa_fp8.yaml")
	command := parseFile(t, "testdata/command.yaml")
	for _, tt := range []struct {
		name string
		m    *Manifest
		file string
		want bool
	}{
		{"a source", cpu, "stage2.c", true},
		{"a header", cpu, "fp8.h", true},
		{"a new source", cpu, "stage9.c", true},
		{"the reference", cpu, "reference.c", false},
		{"the reference, spelt otherwise", cpu, "Reference.C", false},
		{"the reference, the long way", cpu, "./reference.c", false},
		{"the manifest", cpu, "kernel.yaml", false},
		{"another format", cpu, "notes.md", false},
		{"a folder below", cpu, "sub/stage2.c", false},
		{"a folder beside", cpu, "../other/stage2.c", false},
		{"absolute", cpu, "/stage2.c", false},
		{"nothing", cpu, "", false},
		{"a line break", cpu, "a\n.c", false},
		{"a glob that crosses folders", cuda, "include/a/b.h", true},
		{"a dot is a dot", cuda, "stage5xcu", false},
		{"a plain header where only others are named", cuda, "fp8.h", false},
		{"anything", command, "src/a/main.rs", true},
		{"the manifest where anything goes", command, "kernel.yaml", false},
		{"a manifest below", command, "src/kernel.yaml", false},
		{"the folder above where anything goes", command, "..", false},
		{"backslashes", command, `..\x`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.m.IsSource(tt.file); got != tt.want {
				t.Errorf("IsSource(%q) = %v, want %v", tt.file, got, tt.want)
			}
		})
	}
}

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.c", "a.c", true},
		{"*.c", "a/b.c", false},
		{"**/*.c", "b.c", true},
		{"**/*.c", "a/b/b.c", true},
		{"a/**", "a/b/c", true},
		{"a/**", "b/a/c", false},
		{"?.c", "a.c", true},
		{"?.c", "/.c", false},
		{"a+.c", "aa.c", false},
		{"a+.c", "a+.c", true},
	} {
		if got := ident.Glob(tt.pattern).MatchString(tt.name); got != tt.want {
			t.Errorf("Glob(%q) on %q = %v, want %v", tt.pattern, tt.name, got, tt.want)
		}
	}
}

func TestFlags(t *testing.T) {
	good := map[Mode][]string{
		ModeCPU: {
			"-O0", "-O3", "-Os", "-Ofast", "-march=native", "-march=x86-64-v3", "-march=armv8-a", "-mtune=native", "-ffast-math",
			"-fno-math-errno", "-fno-unroll-loops", "-funroll-loops", "-ftree-vectorize", "-fno-tree-slp-vectorize",
			"-ffp-contract=off", "-std=c11", "-std=gnu++20", "-Wall", "-Werror=vla", "-g", "-lm", "-DTILE", "-DTILE=64", "-DX=1.5e-3",
		},
		ModeCUDA: {
			"-O3", "--use_fast_math", "-std=c++17", "-lineinfo", "-maxrregcount=128", "-DTILE=64", "--expt-relaxed-constexpr",
			"--expt-extended-lambda", "--fmad=false", "--ftz=true", "-Xptxas=-O3", "-Xptxas=-dlcm=ca",
		},
	}
	bad := []string{
		"", "-", "-I.", "-I", "-include", "-include=x.h", "-o", "-ox", "-B", "-B.", "-fplugin=x.so", "-fplugin", "-Wl,-rpath,x", "-Wl", "-Wa,x", "-Wp,-include,x",
		"-Xcompiler", "-ccbin", "--compiler-bindir=x", "@file", "x.c", "/etc/passwd", "-D", "-DX=/etc", "-DX=\"a\"", "-DX=a b", "-DX(a)=b",
		"-O3 -I.", "-O3\n-I.", "-std=c++17/..", "-specs=x", "-wrapper", "-Xlinker", "-Xptxas=-o", "-Xptxas=-O3,-o", "-rdc=true", "-march=../x",
		"-fprofile-use=x", "-fdump-tree-all", "-lfoo", "-L.", "-M", "-MF", "-E", "-S", "-c", "-x", "-pipe", "--run", "-maxrregcount=9999", "-fno-x=/a",
	}
	for mode, flags := range good {
		for _, flag := range flags {
			if !flagLists[mode].allowed.MatchString(flag) {
				t.Errorf("%s: %q is refused", mode, flag)
			}
		}
		for _, flag := range bad {
			if flagLists[mode].allowed.MatchString(flag) {
				t.Errorf("%s: %q is allowed", mode, flag)
			}
		}
	}
	for _, flag := range []string{"-o", "-O3,-o", "--output-file=x", ""} {
		if ptxasAllowed.MatchString(flag) {
			t.Errorf("behind -Xptxas: %q is allowed", flag)
		}
	}
	for mode, list := range flagLists {
		if strings.Contains(list.allowed.String(), "/") {
			t.Errorf("%s: a flag may carry a path", mode)
		}
	}
}
