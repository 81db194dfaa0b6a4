package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// A torchEvent is an event of a Chrome trace. Times are microseconds.
type torchEvent struct {
	Phase    string          `json:"ph"`
	Category string          `json:"cat"`
	Name     string          `json:"name"`
	Time     float64         `json:"ts"`
	Duration float64         `json:"dur"`
	Args     json.RawMessage `json:"args"`
}

// torchArgs is what is read of an event's args.
type torchArgs struct {
	External    *int64            `json:"External id"`
	Correlation *int64            `json:"correlation"`
	Device      int               `json:"device"`
	Grid        []int             `json:"grid"`
	Dims        []json.RawMessage `json:"Input Dims"`
}

// ReadTorch reads a Chrome trace as torch's profiler writes it. A kernel names the call that launched it by its
// correlation, and the operator by its External id; with record_shapes=True the operator has the dims of its inputs.
func ReadTorch(in io.Reader) (*Trace, error) {
	r := &torchReader{
		trace:     &Trace{Tool: manifest.TraceTorch, Devices: map[int]string{}},
		called:    map[int64]float64{},
		operators: map[int64][][]int{},
	}
	dec := json.NewDecoder(in)
	open, err := dec.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return nil, errNoTrace
	}
	found := open == json.Delim('[') // a list of events without anything around it is a Chrome trace, too
	if found {
		err = r.events(dec)
	}
	for open == json.Delim('{') && err == nil && dec.More() {
		var key json.Token
		if key, err = dec.Token(); err != nil {
			break
		}
		switch key {
		case "traceEvents":
			found = true
			if list, tokenErr := dec.Token(); tokenErr != nil || list != json.Delim('[') {
				return nil, errors.New("traceEvents: is not a list (export the trace again)")
			}
			err = r.events(dec)
		case "deviceProperties":
			err = r.devices(dec)
		default:
			var skipped json.RawMessage
			err = dec.Decode(&skipped)
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("byte %d: is not valid JSON: %w (the program may have ended before the trace was complete)", dec.InputOffset(), err)
	case !found:
		return nil, errNoTrace
	}
	return r.finish(), nil
}

type torchReader struct {
	trace     *Trace
	called    map[int64]float64 // when the program made the call of a correlation
	operators map[int64][][]int // dims of an operator's inputs, by its id
	of        []torchLink       // of the launches of trace
}

type torchLink struct{ correlation, external *int64 }

// events reads a list of events, and its end.
func (r *torchReader) events(dec *json.Decoder) error {
	for dec.More() {
		var e torchEvent
		if err := dec.Decode(&e); err != nil {
			var kind *json.UnmarshalTypeError
			if errors.As(err, &kind) {
				continue // an event of a different form
			}
			return err
		}
		r.add(e)
	}
	_, err := dec.Token()
	return err
}

func (r *torchReader) devices(dec *json.Decoder) error {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return err
	}
	var all []struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
	}
	if json.Unmarshal(raw, &all) == nil {
		for _, d := range all {
			r.trace.Devices[d.ID] = d.Name
		}
	}
	return nil
}

func (r *torchReader) add(e torchEvent) {
	if e.Phase != "X" || !finite(e.Time) || !finite(e.Duration) || e.Duration < 0 {
		return
	}
	var args torchArgs
	switch e.Category {
	case "kernel", "cpu_op", "cuda_runtime", "cuda_driver":
		if json.Unmarshal(e.Args, &args) != nil {
			return
		}
	case "user_annotation":
		r.trace.Ranges = append(r.trace.Ranges, Range{e.Name, e.Time, e.Time + e.Duration})
		return
	default:
		return
	}
	switch {
	case e.Category == "kernel":
		l := Launch{Name: e.Name, Device: args.Device, Grid: [3]int{1, 1, 1}, Called: e.Time, Start: e.Time, Micros: e.Duration}
		copy(l.Grid[:], args.Grid)
		r.trace.Launches = append(r.trace.Launches, l)
		r.of = append(r.of, torchLink{args.Correlation, args.External})
	case e.Category == "cpu_op" && args.External != nil && args.Dims != nil:
		r.operators[*args.External] = arrays(args.Dims)
	case args.Correlation != nil && e.Category != "cpu_op":
		r.called[*args.Correlation] = e.Time
	}
}

// arrays is the dims of those inputs that are arrays. A scalar has none; a list of arrays is one input with several.
func arrays(raw []json.RawMessage) [][]int {
	all := [][]int{}
	for _, input := range raw {
		var one []int
		var several [][]int
		switch {
		case json.Unmarshal(input, &one) == nil:
			if len(one) > 0 {
				all = append(all, one)
			}
		case json.Unmarshal(input, &several) == nil:
			all = append(all, slices.DeleteFunc(several, func(dims []int) bool { return len(dims) == 0 })...)
		}
	}
	return all
}

// finish links the launches with their calls and operators: an event may stand behind those that name it.
func (r *torchReader) finish() *Trace {
	for i, link := range r.of {
		l := &r.trace.Launches[i]
		if link.correlation != nil {
			if at, ok := r.called[*link.correlation]; ok {
				l.Called = at
			}
		}
		if link.external != nil {
			l.Dims = r.operators[*link.external]
		}
	}
	r.trace.sort()
	return r.trace
}

// sort puts the launches into the order of their start, whatever the order of the file.
func (t *Trace) sort() {
	slices.SortStableFunc(t.Launches, func(a, b Launch) int {
		switch {
		case a.Start < b.Start:
			return -1
		case a.Start > b.Start:
			return 1
		}
		return 0
	})
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
