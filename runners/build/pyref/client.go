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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

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
	Socket  *os.File      // hands memory of a GPU over
	Timeout time.Duration // of one case

	late func()        // ends the process that does not answer; nil where another does
	end  func() string // says how the process ended; nil where nobody here knows

	mu     sync.Mutex
	reader *bufio.Reader
	device string // where PyTorch computes, once it is loaded
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
	// GPU is the size of the memory of the GPU that the arrays lie in, in place of the memory on the host. New says that it was
	// just handed over.
	GPU int64 `json:"gpu,omitempty"`
	New bool  `json:"new,omitempty"`
}

type reply struct {
	Ready    bool   `json:"ready"`
	Arrays   string `json:"arrays"`
	Version  string `json:"version"`
	Device   string `json:"device"`   // where PyTorch computes
	Computed int    `json:"computed"` // outputs that are in the memory
	NaN      []int  `json:"nan"`      // those that have one
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
	q, seen := requestOf(p)
	memory, err := c.Memory.room(q.Memory)
	if err != nil {
		return nil, err
	}
	for i, in := range seen {
		if a := q.Arguments[i]; in.Array() && in.Reads() {
			if err := fill(in, a.Format, memory[a.Input:][:a.Format.Bytes(in.Elements)]); err != nil {
				return nil, err
			}
		}
	}
	if err := c.compute(p, q, seen, fill); err != nil {
		return nil, err
	}
	var outputs [][]byte
	for i, in := range seen {
		if in.Array() && in.Writes() {
			outputs = append(outputs, memory[q.Arguments[i].Output:][:8*in.Elements])
		}
	}
	return outputs, nil
}

// A GPU has the arrays of a case in its memory.
type GPU interface {
	// Room makes room for so many bytes, and returns the size of the memory. The file is how another process gets at it, or nil
	// if the reference's process has got it before.
	Room(bytes int) (size int64, file *os.File, err error)
	// Write writes the values of an input there.
	Write(in tensor.Seen, format manifest.DType, at int) error
	// Read is a [Fill] for the same values.
	Read(in tensor.Seen, format manifest.DType, to []byte) error
}

// ComputeOn is Compute with arrays in the memory of the GPU that the reference computes on. It returns where the outputs begin
// there.
func (c *Client) ComputeOn(g GPU, p *tensor.Problem) ([]int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, seen := requestOf(p)
	size, file, err := g.Room(q.Memory)
	if err != nil {
		return nil, err
	}
	if q.GPU = size; file != nil {
		q.New = true
		err := unix.Sendmsg(int(c.Socket.Fd()), []byte{0}, unix.UnixRights(int(file.Fd())), nil, 0)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("handing memory to the reference: %w", err)
		}
	}
	var outputs []int
	for i, in := range seen {
		a := q.Arguments[i]
		if in.Array() && in.Reads() {
			if err := g.Write(in, a.Format, a.Input); err != nil {
				return nil, err
			}
		}
		if in.Array() && in.Writes() {
			outputs = append(outputs, a.Output)
		}
	}
	return outputs, c.compute(p, q, seen, g.Read)
}

// compute waits until the outputs are in the memory.
func (c *Client) compute(p *tensor.Problem, q request, seen []tensor.Seen, read Fill) error {
	var r reply
	if err := c.within(c.Timeout, p.Shape.String(), func() (err error) {
		if err := c.send(q); err != nil {
			return err
		}
		r, err = c.receive()
		return err
	}); err != nil {
		return err
	}
	var names []string
	for _, in := range seen {
		if in.Array() && in.Writes() {
			names = append(names, in.Name)
		}
	}
	if r.Computed != len(names) || slices.ContainsFunc(r.NaN, func(i int) bool { return i < 0 || i >= len(names) }) {
		return &Mistake{Text: "answers with something else than its outputs (do not write to descriptor 4)"}
	}
	if len(r.NaN) == 0 {
		return nil
	}
	natural, err := naturalNaN(q, seen, read)
	if err == nil && !natural {
		err = &Mistake{Text: fmt.Sprintf("returns NaN in %s for finite inputs on %s", names[r.NaN[0]], p.Shape)}
	}
	return err
}

// requestOf is what a reference is given: arrays as real numbers, scalars and dims by name. The arguments are those of the
// problem that are returned with it.
func requestOf(p *tensor.Problem) (q request, seen []tensor.Seen) {
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
		seen = append(seen, a)
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
	return q, seen
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

// naturalNaN reports whether the inputs account for a NaN: infinities may make one, and so may zeros that something is divided by.
func naturalNaN(q request, seen []tensor.Seen, read Fill) (bool, error) {
	for i, in := range seen {
		if !in.Array() || !in.Reads() {
			continue
		}
		format := q.Arguments[i].Format
		data, values := make([]byte, format.Bytes(in.Elements)), make([]float64, in.Elements)
		if err := read(in, format, data); err != nil {
			return false, err
		}
		tensor.Decode(format, values, data)
		zeros := len(values) > 0
		for _, v := range values {
			if math.IsInf(v, 0) || math.IsNaN(v) {
				return true, nil
			}
			zeros = zeros && v == 0
		}
		if zeros {
			return true, nil
		}
	}
	return false, nil
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
		c.device = r.Device
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
