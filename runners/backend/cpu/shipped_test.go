package cpu

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// shipped writes the kernel that comes with the program into a folder.
func shipped(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files, err := fs.Sub(kernels.Shipped, "sdpa_cpu")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Every stage of the shipped attention kernel is right on every kind of input
// and on ragged shapes, except stage 3b, which is not.
func TestShippedStages(t *testing.T) {
	dir := shipped(t)
	text, err := os.ReadFile(filepath.Join(dir, "kernel.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse("kernel.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(`version: 1
gates:
  correctness:
    shapes: [small, batch]
    seeds: [0]
    distributions: [normal, uniform, dominant, large, constant]
    secret_cases: 10
    norm_error: "<= 0.1%"
    max_abs_error: "<= 0.06"
    determinism: true
    end_to_end: {mean_abs_error: "<= 0.02", bad_elements: "<= 1%"}
rules:
  - name: default
`))
	if err != nil {
		t.Fatal(err)
	}
	for variant, outcome := range map[string]gates.Outcome{
		"stage0": gates.Pass, "stage1": gates.Pass, "stage2": gates.Pass, "stage3a": gates.Pass, "stage3b": gates.Defer,
	} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			job := runners.Job{Manifest: m, Policy: p, Trusted: dir, Candidate: runners.Side{Dir: dir, Variant: variant}}
			w := newWorker(t, job, Config{Scratch: t.TempDir(), LaunchTimeout: 20 * time.Second, Getenv: func(string) string { return "" }})
			e, err := gather.Gather(t.Context(), job, w, silent{})
			if err != nil {
				t.Fatal(err)
			}
			if v := gates.Judge(p, "test.yaml", e); v.Outcome != outcome {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
		})
	}
}

// The C side decodes FP8 and rounds to FP16 exactly as the Go side does: all 256
// codes, and for FP16 every midpoint between neighbours and a hair beside it.
func TestFormatsAgree(t *testing.T) {
	dir := shipped(t)
	var values []float32
	for bits := range uint32(0x7c00) {
		here, next := make([]float64, 1), make([]float64, 1)
		tensor.Decode(manifest.F16, here, []byte{byte(bits), byte(bits >> 8)})
		tensor.Decode(manifest.F16, next, []byte{byte(bits + 1), byte((bits + 1) >> 8)})
		tie := float32((here[0] + next[0]) / 2)
		if bits == 0x7bff {
			tie = 65520 // half way to what would come behind the largest
		}
		values = append(values, tie, math.Nextafter32(tie, 0), math.Nextafter32(tie, 1e9))
	}
	program := `#include "fp8.h"
#include <stdio.h>
int main(void)
{
    for (int code = 0; code < 256; code++)
        printf("%.9g\n", (double)e4m3_decode((uint8_t)code));
    uint32_t bits;
    while (scanf("%u", &bits) == 1)
        printf("%u\n", f16_from_float(float_from_bits(bits)));
    return 0;
}
`
	source, exe := filepath.Join(dir, "formats.c"), filepath.Join(dir, "formats")
	if err := os.WriteFile(source, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cc", "-O2", source, "-o", exe, "-lm").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var input strings.Builder
	for _, v := range values {
		fmt.Fprintln(&input, math.Float32bits(v))
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Stdin = strings.NewReader(input.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	if len(lines) != 256+len(values) {
		t.Fatalf("%d lines, want %d", len(lines), 256+len(values))
	}
	for code := range 256 {
		want := make([]float64, 1)
		tensor.Decode(manifest.E4M3, want, []byte{byte(code)})
		got, err := strconv.ParseFloat(strings.Replace(lines[code], "-nan", "nan", 1), 64)
		if err != nil || got != want[0] && !(math.IsNaN(got) && math.IsNaN(want[0])) {
			t.Errorf("code %#02x decodes to %s in C, %v in Go", code, lines[code], want[0])
		}
	}
	for i, v := range values {
		want := make([]byte, 2)
		tensor.Encode(manifest.F16, want, []float64{float64(v)})
		if got, _ := strconv.Atoi(lines[256+i]); got != int(want[0])|int(want[1])<<8 {
			t.Errorf("%v rounds to %#04x in C, %#02x%02x in Go", v, got, want[1], want[0])
		}
	}
}
