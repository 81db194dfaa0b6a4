// Package weights reads the trace of a profiler, and finds how often a step of the traced program launches a kernel
// at each shape of its manifest. It runs nothing, and it trusts nothing in a trace.
package weights

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// A Trace is the launches of one program, in the order of their start.
type Trace struct {
	Tool     manifest.TraceTool
	Digest   string // of the file
	Launches []Launch
	Ranges   []Range
	Devices  map[int]string // names by number, where they are known
}

// A Launch is one kernel on a GPU. Times are in microseconds.
type Launch struct {
	Name   string
	Device int
	Grid   [3]int
	Called float64 // when the program launched it; Start where that is not known
	Start  float64
	Micros float64
	Dims   [][]int // of the inputs of the operator that launched it; nil where not recorded
}

// A Range is a part of the program that it has named itself.
type Range struct {
	Name       string
	Start, End float64
}

// maxTrace is the most that is read of a trace, after decompression.
const maxTrace = 16 << 30

// Read reads a trace: the Chrome trace of torch's profiler, which may be compressed, or the SQLite export of nsys.
func Read(file string) (*Trace, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usage.Errorf("reading the trace: %w", err)
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return nil, usage.Errorf("reading the trace: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	in := bufio.NewReader(f)
	magic, _ := in.Peek(16)
	var t *Trace
	switch {
	case strings.HasPrefix(string(magic), "SQLite format 3"):
		t, err = readNsys(file)
	case strings.HasPrefix(string(magic), "\x1f\x8b"):
		zip, zipped := gzip.NewReader(in)
		if zipped != nil {
			return nil, usage.Errorf("%s: is not a gzip file: %w", file, zipped)
		}
		t, err = ReadTorch(io.LimitReader(zip, maxTrace))
	case strings.HasSuffix(file, ".nsys-rep") || strings.HasSuffix(file, ".qdrep"):
		return nil, usage.Errorf("%s: is a report in nsys' own format (export it: nsys export --type sqlite %s)", file, file)
	default:
		t, err = ReadTorch(io.LimitReader(in, maxTrace))
	}
	if err != nil {
		return nil, usage.Errorf("%s: %w", file, err)
	}
	if len(t.Launches) == 0 {
		return nil, usage.Errorf("%s: no kernel of a GPU is in the trace (record it with ProfilerActivity.CUDA, or nsys profile --trace cuda,nvtx)", file)
	}
	t.Digest = "sha256:" + hex.EncodeToString(hash.Sum(nil))
	return t, nil
}

var errNoTrace = errors.New("is neither a Chrome trace of torch's profiler nor an SQLite export of nsys (write one with prof.export_chrome_trace, or nsys export --type sqlite)")

// profilerStep is how torch's profiler names the steps of its schedule.
var profilerStep = regexp.MustCompile(`^ProfilerStep#\d+$`)

// steps is the ranges that are steps: those of the given name, with a number behind it or without; by default those of
// torch's profiler.
func (t *Trace) steps(name string) []Range {
	is := profilerStep
	if name != "" {
		is = regexp.MustCompile(`^` + regexp.QuoteMeta(name) + `[ #:_.-]*\d*$`)
	}
	var all []Range
	for _, r := range t.Ranges {
		if is.MatchString(r.Name) && r.End > r.Start {
			all = append(all, r)
		}
	}
	return all
}
