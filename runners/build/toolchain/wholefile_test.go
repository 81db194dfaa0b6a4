package toolchain

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A file of which only the entry is built would pass although nobody could compile what was merged: ptxas reports the
// errors of other kernels only where it generates code for them.
func TestOtherKernelsOfAFileMustCompile(t *testing.T) {
	c := keptCUDA(t)
	text := "extern \"C\" __global__ void entry(float* x) { x[0] = 1; }\n" + read(t, "testdata/toobig.cu")
	mustRefuseBuild(t, c, NVCCBuild{Dir: folder(t, map[string]string{"k.cu": text}), Source: "k.cu", Entries: []string{"entry"}, Arch: "sm_89"},
		"uses too much shared data")
}

// BenchmarkEntryOfManyKernels compares a build of 40 kernels with one in which ptxas generates code only for the first.
// docs/decisions/whole-file.md says why builds do not do that.
func BenchmarkEntryOfManyKernels(b *testing.B) {
	c, err := foundCUDA()
	if err != nil {
		b.Skip(err)
	}
	ptxas := filepath.Join(c.Home, "bin", "ptxas")
	dir := b.TempDir()
	source, ptx := filepath.Join(dir, "many.cu"), filepath.Join(dir, "many.ptx")
	if err := os.WriteFile(source, []byte(manyKernels(40)), 0o644); err != nil {
		b.Fatal(err)
	}
	var front, all, entry time.Duration
	for b.Loop() {
		front += timed(b, c.NVCC, "-ptx", "-arch=sm_89", "-ccbin", c.HostCompiler, "-o", ptx, source)
		all += timed(b, ptxas, "-arch=sm_89", ptx, "-o", filepath.Join(dir, "all.cubin"))
		entry += timed(b, ptxas, "-arch=sm_89", "--entry", "many0", ptx, "-o", filepath.Join(dir, "entry.cubin"))
	}
	b.ReportMetric(float64(front)/float64(front+all), "front/whole")
	b.ReportMetric(float64(front+all)/float64(front+entry), "whole/entry")
	if whole, alone := codeOf(b, filepath.Join(dir, "all.cubin"), "many0"), codeOf(b, filepath.Join(dir, "entry.cubin"), "many0"); whole != alone {
		b.Errorf("the entry has different instructions if it is built without the others")
	}
}

// manyKernels returns a source with products of matrices in tiles of different sizes.
func manyKernels(n int) string {
	var text strings.Builder
	text.WriteString(`#include <mma.h>
using namespace nvcuda;
template <int ROWS, int COLUMNS, int DEPTH> __device__ void multiply(const __half *a, const __half *b, float *c, int n)
{
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[ROWS][COLUMNS];
    for (auto &row : sums)
        for (auto &sum : row)
            wmma::fill_fragment(sum, 0);
    for (int k = 0; k < n; k += 16 * DEPTH)
        for (int d = 0; d < DEPTH; d++)
            for (int r = 0; r < ROWS; r++)
                for (int s = 0; s < COLUMNS; s++) {
                    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
                    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
                    wmma::load_matrix_sync(left, a + 16 * r * n + k + 16 * d, n);
                    wmma::load_matrix_sync(right, b + 16 * s * n + k + 16 * d, n);
                    wmma::mma_sync(sums[r][s], left, right, sums[r][s]);
                }
    for (int r = 0; r < ROWS; r++)
        for (int s = 0; s < COLUMNS; s++)
            wmma::store_matrix_sync(c + 16 * r * n + 16 * s, sums[r][s], n, wmma::mem_row_major);
}
`)
	for i := range n {
		fmt.Fprintf(&text, "extern \"C\" __global__ void many%d(const __half *a, const __half *b, float *c, int n) { multiply<%d, %d, %d>(a, b, c, n); }\n",
			i, 1+i%4, 1+i/4%5, 1+i/20)
	}
	return text.String()
}

// timed returns the processor time of a program: other programs on the machine do not count.
func timed(b *testing.B, name string, args ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(name, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", name, err, out)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// codeOf returns the instructions of a kernel.
func codeOf(b *testing.B, path, symbol string) string {
	b.Helper()
	image, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	f, err := readCubin(image)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range f.sections {
		if s.Name == ".text."+symbol {
			return string(s.Data)
		}
	}
	b.Fatalf("%s has no kernel %s", path, symbol)
	return ""
}
