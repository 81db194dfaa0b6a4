package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// A report is the parsed output of one process of a harness.
type report struct {
	times   map[string][]float64 // nanoseconds by shape, in the order printed
	figures []figure
	problem string // the harness's own error message
}

// A figure holds the errors of one output, as the harness reports them.
type figure struct {
	line          int
	shape         string
	seed          *uint64
	distribution  string
	errors        gates.Errors
	deterministic *bool
	hash          string
}

// A vocabulary is the set of shapes and the unit that a report may use.
type vocabulary struct {
	asked  []manifest.Shape
	others []string // shapes of the manifest that were not requested and are ignored
	unit   manifest.Unit
}

// needs says which kinds of results a process must print.
type needs struct{ times, figures bool }

func (n needs) met(r *report) bool {
	return (!n.times || len(r.times) > 0) && (!n.figures || len(r.figures) > 0)
}

// read parses the output of a process. Standard output counts only for the kinds of results that
// did not come on the result descriptor.
func (v vocabulary) read(results, stdout []byte, n needs) (*report, error) {
	r, err := v.stream(results, false)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d, %w", resultFD, err)
	}
	if n.met(r) || r.problem != "" {
		return r, nil
	}
	said, err := v.stream(stdout, true)
	if err != nil {
		return nil, fmt.Errorf("standard output, %w", err)
	}
	if len(r.times) == 0 {
		r.times = said.times
	}
	if len(r.figures) == 0 {
		r.figures = said.figures
	}
	r.problem = said.problem
	return r, nil
}

func (v vocabulary) stream(text []byte, noise bool) (*report, error) {
	found, err := objects(text, noise)
	if err != nil {
		return nil, err
	}
	r := &report{times: map[string][]float64{}}
	for _, o := range found {
		read := v.line
		switch {
		case o.has("benchmarks") && o.has("context"):
			read = v.googleBenchmark
		case o.has("benchmarks"):
			read = v.nvbench
		}
		if err := read(o, r); err != nil {
			return nil, fmt.Errorf("line %d: %w", o.line, err)
		}
	}
	return r, nil
}

// known reports whether a shape was requested. A shape that the manifest does not have is an error;
// otherwise the mistake would show only as a missing shape.
func (v vocabulary) known(name string) (asked bool, err error) {
	names := make([]string, len(v.asked))
	for i, s := range v.asked {
		names[i] = s.Name
	}
	if slices.Contains(names, name) {
		return true, nil
	}
	if slices.Contains(v.others, name) {
		return false, nil
	}
	return false, fmt.Errorf("there is no shape %q (asked for %s)", oneLine(name), strings.Join(names, ", "))
}

// missing says what the report lacks on the first shape that lacks something.
func (r *report) missing(shapes []manifest.Shape, n needs) string {
	for _, s := range shapes {
		if n.times && len(r.times[s.Name]) == 0 {
			return fmt.Sprintf("no times for %s (print {\"shape\":%q,\"us\":[…]})", s.Name, s.Name)
		}
		if n.figures && !slices.ContainsFunc(r.figures, func(f figure) bool { return f.shape == s.Name }) {
			return fmt.Sprintf("no error figures of the outputs that it timed on %s (print {\"shape\":%q,\"elements\":…,\"max_abs\":…,…} in performance mode too)", s.Name, s.Name)
		}
	}
	return ""
}
