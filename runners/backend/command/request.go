package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
)

// A mode is the purpose for which a harness is started.
type mode string

const (
	building    mode = "build"
	proving     mode = "test"
	correctness mode = "correctness"
	performance mode = "performance"
)

// resultFD is the first of the sandbox's extra files.
const resultFD = 3

// A request is what one process of a harness must do. It never reveals which side the process
// measures.
type request struct {
	mode    mode
	variant string
	defines []string
	shapes  []manifest.Shape
	cases   []runners.Case
	seed    uint64
	samples int
}

type shapeText struct {
	Name string         `json:"name"`
	Dims map[string]int `json:"dims"`
}

type caseText struct {
	Shape        string         `json:"shape"`
	Dims         map[string]int `json:"dims"`
	Seed         uint64         `json:"seed"`
	Distribution string         `json:"distribution"`
}

// env returns the request as the whole environment of a process.
func (r request) env(path string) ([]string, error) {
	env := []string{
		"PATH=" + cmp.Or(path, "/usr/local/bin:/usr/bin:/bin"), "LC_ALL=C", "HOME=/tmp", "TMPDIR=/tmp",
		"KERNELGATE_MODE=" + string(r.mode), "KERNELGATE_VARIANT=" + r.variant, "KERNELGATE_DEFINES=" + strings.Join(r.defines, " "),
	}
	if r.mode == building {
		return env, nil
	}
	shapes := []shapeText{}
	for _, s := range r.shapes {
		shapes = append(shapes, shapeText{s.Name, dimsOf(s)})
	}
	text, err := json.Marshal(shapes)
	if err != nil {
		return nil, fmt.Errorf("writing the shapes for the bench command: %w", err)
	}
	env = append(env, "KERNELGATE_RESULT_FD="+strconv.Itoa(resultFD), "KERNELGATE_SHAPES="+string(text))
	if r.mode == proving {
		return env, nil
	}
	if r.mode == performance {
		return append(env, "KERNELGATE_SEED="+strconv.FormatUint(r.seed, 10), "KERNELGATE_SAMPLES="+strconv.Itoa(r.samples)), nil
	}
	cases := []caseText{}
	for _, c := range r.cases {
		cases = append(cases, caseText{c.Shape.Name, dimsOf(c.Shape), c.Seed, string(c.Distribution)})
	}
	if text, err = json.Marshal(cases); err != nil {
		return nil, fmt.Errorf("writing the cases for the bench command: %w", err)
	}
	return append(env, "KERNELGATE_CASES="+string(text)), nil
}

func dimsOf(s manifest.Shape) map[string]int {
	dims := map[string]int{}
	for _, d := range s.Dims {
		dims[d.Name] = d.Value
	}
	return dims
}
