package pyref

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A Mistake is what is wrong with a reference, as the rest of a sentence about it.
type Mistake struct {
	Text string `json:"text"`
	Line int    `json:"line,omitempty"` // of its file; 0 where none is known
	// Missing is a package that the reference imports and that this host's Python does not have.
	Missing string `json:"missing,omitempty"`
}

func (m *Mistake) Error() string {
	if m.Line > 0 {
		return fmt.Sprintf("%s (line %d)", m.Text, m.Line)
	}
	return m.Text
}

// A Client asks a reference's process for outputs. Any process that has the two pipes may be one, but only one at a time.
type Client struct {
	To      *os.File
	From    *os.File
	Memory  *Memory
	Timeout time.Duration // of one case

	late func()        // ends the process that does not answer; nil where another does
	end  func() string // says how the process ended; nil where nobody here knows

	mu     sync.Mutex
	reader *bufio.Reader
}

// argument is what a request says of one.
type argument struct {
	Name   string          `json:"name"`
	Kind   string          `json:"kind"` // of a scalar: integer, number or truth; of an array's elements: float, int, uint or bool
	Value  string          `json:"value,omitempty"`
	Access manifest.Access `json:"access,omitempty"`
	Shape  []int           `json:"shape"`
	// Input and Output are where an array begins in the memory. Inputs are in Format, outputs in float64.
	Input  int            `json:"input"`
	Output int            `json:"output"`
	Format manifest.DType `json:"format,omitempty"`
}

type request struct {
	Arguments []argument     `json:"arguments"`
	Dims      map[string]int `json:"dims"`
	Memory    int            `json:"memory"` // bytes of it that are used
}

type reply struct {
	Ready    bool   `json:"ready"`
	Arrays   string `json:"arrays"`
	Version  string `json:"version"`
	Computed int    `json:"computed"` // outputs that are in the memory
	Error    string `json:"error"`
	Line     int    `json:"line"`
	Missing  string `json:"missing"`
}

const maxHeader = 1 << 20

// Expected is the outputs of a problem, in the order of the manifest. With original, inputs are what they were before they were
// quantised. The error is a *Mistake where the reference is at fault.
func (c *Client) Expected(p *tensor.Problem, original bool) ([][]float64, error) {
	outputs, err := c.Compute(p, func(in tensor.Seen, format manifest.DType, to []byte) error {
		values := in.Real
		if original {
			values = in.Original
		}
		tensor.Encode(format, to, values)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var want [][]float64
	for _, data := range outputs {
		values := make([]float64, len(data)/8)
		tensor.Decode(manifest.F64, values, data)
		want = append(want, values)
	}
	return want, nil
}

// A Fill writes the values of an input, in a format that holds them exactly.
type Fill func(in tensor.Seen, format manifest.DType, to []byte) error

// Compute has the reference compute the outputs of a problem, whose inputs need not be drawn here. They are float64, in the order
// of the manifest, and valid until the next call. The error is a *Mistake where the reference is at fault.
func (c *Client) Compute(p *tensor.Problem, fill Fill) ([][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, inputs := requestOf(p)
	memory, err := c.Memory.room(q.Memory)
	if err != nil {
		return nil, err
	}
	arrays := map[string][]byte{} // the inputs
	for i, in := range inputs {
		if in.Array() && in.Reads() {
			a := q.Arguments[i]
			to := memory[a.Input:][:a.Format.Bytes(in.Elements)]
			if err := fill(in, a.Format, to); err != nil {
				return nil, err
			}
			arrays[a.Name] = to
		}
	}
	var outputs [][]byte
	var names []string
	for i, in := range inputs {
		if in.Array() && in.Writes() {
			outputs, names = append(outputs, memory[q.Arguments[i].Output:][:8*in.Elements]), append(names, in.Name)
		}
	}
	if err := c.within(c.Timeout, p.Shape.String(), func() error { return c.compute(q, outputs) }); err != nil {
		return nil, err
	}
	for i, data := range outputs {
		if hasNaN(data) && !natural(q, arrays) {
			return nil, &Mistake{Text: fmt.Sprintf("returns NaN in %s for finite inputs on %s", names[i], p.Shape)}
		}
	}
	return outputs, nil
}

// compute waits until the outputs are in the memory. Their sizes are the manifest's, whatever the process says.
func (c *Client) compute(q request, outputs [][]byte) error {
	if err := c.send(q); err != nil {
		return err
	}
	r, err := c.receive()
	if err != nil {
		return err
	}
	if r.Computed != len(outputs) {
		return &Mistake{Text: "answers with something else than its outputs (do not write to descriptor 4)"}
	}
	return nil
}

// requestOf is what a reference is given: arrays as real numbers, scalars and dims by name. The arguments are those of the
// problem that are returned beside it.
func requestOf(p *tensor.Problem) (q request, inputs []tensor.Seen) {
	q.Dims = map[string]int{}
	for _, name := range p.Shape.Dims.Names() {
		q.Dims[name], _ = p.Shape.Dims.Get(name)
	}
	room := func(bytes int) (at int) {
		at = q.Memory
		q.Memory += (bytes + alignment - 1) / alignment * alignment
		return at
	}
	for _, a := range p.Reference() {
		if a.Of < 0 {
			continue // a dim, which is passed anyway
		}
		inputs = append(inputs, a)
		if !a.Array() {
			q.Arguments = append(q.Arguments, scalar(a.Arg))
			continue
		}
		array := argument{Name: a.Name, Kind: elementKind(a.DType), Access: a.Access, Shape: append([]int{}, a.Shape...)}
		if a.Reads() {
			array.Format = exactFormat(a.Arg)
			array.Input = room(array.Format.Bytes(a.Elements))
		}
		if a.Writes() {
			array.Output = room(8 * a.Elements)
		}
		q.Arguments = append(q.Arguments, array)
	}
	q.Memory = max(q.Memory, alignment) // nothing cannot be mapped
	return q, inputs
}

// alignment of arrays, which serves all instructions of a CPU.
const alignment = 64

// exactFormat is the smaller of two formats that holds every value of an array: float32, or float64 for wide integers, doubles,
// and products of a value and a scale.
func exactFormat(a tensor.Arg) manifest.DType {
	switch a.DType {
	case manifest.F64, manifest.I32, manifest.U32, manifest.I64, manifest.U64:
		return manifest.F64
	}
	if a.Scales >= 0 {
		return manifest.F64
	}
	return manifest.F32
}

// scalar is one by its bits, which are what the kernel gets.
func scalar(a tensor.Arg) argument {
	var value [1]float64
	tensor.Decode(a.DType, value[:], a.Bytes)
	s := argument{Name: a.Name, Value: strconv.FormatFloat(value[0], 'g', -1, 64)}
	switch elementKind(a.DType) {
	case "float":
		s.Kind = "number"
	case "bool":
		s.Kind = "truth"
	default:
		s.Kind, s.Value = "integer", strconv.FormatFloat(value[0], 'f', 0, 64)
	}
	return s
}

func elementKind(d manifest.DType) string {
	switch d {
	case manifest.I8, manifest.I16, manifest.I32, manifest.I64, manifest.U8, manifest.U16, manifest.U32, manifest.Int4:
		return "int"
	case manifest.U64:
		return "uint"
	case manifest.Bool:
		return "bool"
	}
	return "float"
}

// natural reports whether the inputs account for a NaN: infinities may make one, and so may zeros that something is divided by.
func natural(q request, arrays map[string][]byte) bool {
	for _, a := range q.Arguments {
		data, ok := arrays[a.Name]
		if !ok {
			continue
		}
		values := make([]float64, len(data)/a.Format.Size())
		tensor.Decode(a.Format, values, data)
		zeros := len(values) > 0
		for _, v := range values {
			if math.IsInf(v, 0) || math.IsNaN(v) {
				return true
			}
			zeros = zeros && v == 0
		}
		if zeros {
			return true
		}
	}
	return false
}

// hasNaN looks for a NaN among float64 values, with all processors.
func hasNaN(data []byte) bool {
	var found atomic.Bool
	var wait sync.WaitGroup
	part := max((len(data)/8+runtime.NumCPU()-1)/runtime.NumCPU(), 1<<16) * 8
	for part := range slices.Chunk(data, part) {
		wait.Go(func() {
			for ; len(part) > 0; part = part[8:] {
				if v := math.Float64frombits(binary.LittleEndian.Uint64(part)); v != v {
					found.Store(true)
					return
				}
			}
		})
	}
	wait.Wait()
	return found.Load()
}

// loaded waits for the first reply.
func (c *Client) loaded() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.within(startTimeout, "", func() error {
		r, err := c.receive()
		if err == nil && !r.Ready {
			err = &Mistake{Text: "answers before it is asked (do not write to descriptor 4)"}
		}
		return err
	})
}

// within does something that may take so long and no longer.
func (c *Client) within(limit time.Duration, on string, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
	}
	if c.late != nil {
		c.late()
	}
	if on == "" {
		return &Mistake{Text: fmt.Sprintf("takes longer than %v to load", limit)}
	}
	return &Mistake{Text: fmt.Sprintf("takes longer than %v on %s (make it faster, or the shape smaller)", limit, on)}
}

// send writes one request. A process that is gone shows when its answer is read.
func (c *Client) send(header any) error {
	text, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("writing to the reference: %w", err)
	}
	_, _ = c.To.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
	return nil
}

func (c *Client) receive() (reply, error) {
	if c.reader == nil {
		c.reader = bufio.NewReaderSize(c.From, 1<<20)
	}
	var r reply
	var size [4]byte
	if _, err := io.ReadFull(c.reader, size[:]); err != nil {
		return r, c.gone(err)
	}
	n := binary.LittleEndian.Uint32(size[:])
	if n > maxHeader {
		return r, &Mistake{Text: "answers with something else than its outputs (do not write to descriptor 4)"}
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(c.reader, text); err != nil {
		return r, c.gone(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, &Mistake{Text: "answers with something else than its outputs (do not write to descriptor 4)"}
	}
	if r.Error != "" {
		return r, &Mistake{Text: printable(r.Error), Line: r.Line, Missing: printable(r.Missing)}
	}
	return r, nil
}

// gone is what it means that no answer comes.
func (c *Client) gone(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("reading from the reference: %w", err)
	}
	if c.end == nil {
		return &Mistake{Text: "ended before it answered"}
	}
	return &Mistake{Text: c.end()}
}

// printable is a text of the reference's in one line.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F {
			return ' '
		}
		return r
	}, text)
}
