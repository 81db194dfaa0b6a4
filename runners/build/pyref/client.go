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
	"strconv"
	"strings"
	"sync"
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
}

type request struct {
	Arguments []argument     `json:"arguments"`
	Dims      map[string]int `json:"dims"`
}

type reply struct {
	Ready   bool   `json:"ready"`
	Arrays  string `json:"arrays"`
	Version string `json:"version"`
	Sizes   []int  `json:"sizes"`
	Error   string `json:"error"`
	Line    int    `json:"line"`
	Missing string `json:"missing"`
}

const maxHeader = 1 << 20

// Expected is the outputs of a problem, in the order of the manifest. With original, inputs are what they were before they were
// quantised. The error is a *Mistake where the reference is at fault.
func (c *Client) Expected(p *tensor.Problem, original bool) ([][]float64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, inputs, wanted := requestOf(p, original)
	var want [][]float64
	err := c.within(c.Timeout, p.Shape.String(), func() error {
		if err := c.send(q, inputs); err != nil {
			return err
		}
		r, err := c.receive()
		if err != nil {
			return err
		}
		want, err = c.outputs(r, wanted)
		return err
	})
	if err != nil {
		return nil, err
	}
	if name, ok := unnatural(inputs, wanted, want); !ok {
		return nil, &Mistake{Text: fmt.Sprintf("returns NaN in %s for finite inputs on %s", name, p.Shape)}
	}
	return want, nil
}

// requestOf is what a reference is given: arrays as real numbers, scalars and dims by name.
func requestOf(p *tensor.Problem, original bool) (q request, inputs [][]float64, wanted []tensor.Arg) {
	q.Dims = map[string]int{}
	for _, name := range p.Shape.Dims.Names() {
		q.Dims[name], _ = p.Shape.Dims.Get(name)
	}
	for _, a := range p.Reference() {
		if a.Of < 0 {
			continue // a dim, which is passed anyway
		}
		if !a.Array() {
			q.Arguments = append(q.Arguments, scalar(a.Arg))
			continue
		}
		q.Arguments = append(q.Arguments, argument{Name: a.Name, Kind: elementKind(a.DType), Access: a.Access, Shape: append([]int{}, a.Shape...)})
		if a.Reads() {
			values := a.Real
			if original {
				values = a.Original
			}
			inputs = append(inputs, values)
		}
		if a.Writes() {
			wanted = append(wanted, a.Arg)
		}
	}
	return q, inputs, wanted
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

// unnatural names an output with a NaN that no input accounts for: infinities may make one, and so may zeros that something is
// divided by.
func unnatural(inputs [][]float64, wanted []tensor.Arg, want [][]float64) (name string, ok bool) {
	for _, values := range inputs {
		zeros := len(values) > 0
		for _, v := range values {
			if math.IsInf(v, 0) || math.IsNaN(v) {
				return "", true
			}
			zeros = zeros && v == 0
		}
		if zeros {
			return "", true
		}
	}
	for i, values := range want {
		for _, v := range values {
			if math.IsNaN(v) {
				return wanted[i].Name, false
			}
		}
	}
	return "", true
}

// outputs reads the arrays behind a reply. Their sizes are the manifest's, whatever the process says.
func (c *Client) outputs(r reply, wanted []tensor.Arg) ([][]float64, error) {
	if len(r.Sizes) != len(wanted) {
		return nil, &Mistake{Text: "answers with something else than its outputs (do not write to descriptor 4)"}
	}
	var all [][]float64
	for i, a := range wanted {
		if r.Sizes[i] != 8*a.Elements {
			return nil, &Mistake{Text: fmt.Sprintf("answers with %d bytes for %s, which has %d elements", r.Sizes[i], a.Name, a.Elements)}
		}
		data := make([]byte, r.Sizes[i])
		if _, err := io.ReadFull(c.reader, data); err != nil {
			return nil, c.gone(err)
		}
		values := make([]float64, a.Elements)
		for k := range values {
			values[k] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*k:]))
		}
		all = append(all, values)
	}
	return all, nil
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
func (c *Client) send(header any, arrays [][]float64) error {
	text, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("writing to the reference: %w", err)
	}
	out := bufio.NewWriterSize(c.To, 1<<20)
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(text))))
	out.Write(text)
	var word [8]byte
	for _, values := range arrays {
		for _, v := range values {
			binary.LittleEndian.PutUint64(word[:], math.Float64bits(v))
			if _, err := out.Write(word[:]); err != nil {
				return nil
			}
		}
	}
	_ = out.Flush()
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
