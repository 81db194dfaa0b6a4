package toolchain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/entryname"
)

// said is the script's description of a cubin.
type said struct {
	Symbol  string       `json:"symbol"`
	Warps   int          `json:"warps"`
	CTAs    int          `json:"ctas"`
	Shared  int          `json:"shared"`
	Scratch []Scratch    `json:"scratch"`
	Passed  []Passed     `json:"passed"`
	Tensors []tensorSaid `json:"tensors"` // the maps of tensor descriptors; none if the code takes their addresses
	Flags   int          `json:"flags"`   // that come with such an address
	Unmet   []string     `json:"unmet"`   // ways to launch that there are not here
	PTXAS   []string     `json:"ptxas"`   // the assembler and its flags
	Line    int          `json:"line"`
	Tuning  []string     `json:"autotune"`      // the configurations that @triton.autotune offers
	Chosen  string       `json:"configuration"` // the one of them that this is
}

// readStrictly parses the description of a build: an unknown field belongs to a different compiler.
func readStrictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows it")
	}
	return nil
}

// readTriton makes a Cubin from Triton's output.
func (o nvccOutput) readTriton(b TritonBuild, kind manifest.Special) (*Cubin, error) {
	cubin := &Cubin{Image: o.Image, Log: o.Log}
	if o.Refusal != "" {
		cubin.Diagnostics = diagnosticsIn(o.Log, b.Dir)
		return nil, cubin.refuse("%s", o.Refusal)
	}
	var s said
	if err := readStrictly([]byte(o.Usage), &s); err != nil {
		return nil, cubin.refuse("what the build of %s says of the launch cannot be read: %v", b.Source, err)
	}
	if len(s.Unmet) > 0 {
		return nil, cubin.refuse("%s needs what kernelgate cannot launch with yet: %s", b.Source, entryname.Quote(strings.Join(s.Unmet, ", ")))
	}
	f, err := cubin.readImage(b.Source, s.Symbol, min(max(s.Line, 0), maxLine))
	if err != nil {
		return nil, err
	}
	k := &cubin.Kernels[0]
	for _, configuration := range s.Tuning[:min(len(s.Tuning), maxTuning)] {
		cubin.Autotune = append(cubin.Autotune, entryname.Quote(configuration))
	}
	if s.Chosen != "" {
		cubin.Chosen = entryname.Quote(s.Chosen)
	}
	const forbidden = "%s would be launched as its machine code does not allow: the build says %v"
	passed, err := s.described(kind)
	if err != nil {
		return nil, cubin.refuse(forbidden, b.Source, err)
	}
	cubin.Start = &Start{Block: [3]int{32 * min(max(s.Warps, 0), maxBlockThreads), 1, 1}, Shared: s.Shared, Cluster: s.CTAs, Passed: passed}
	// Triton's releases have none, one or two pointers to scratch memory behind the arguments.
	pointers := len(k.Params) - len(cubin.Start.sizes())
	if pointers < 0 || pointers > len(s.Scratch) {
		pointers = len(s.Scratch)
	}
	cubin.Start.Scratch = s.Scratch[:pointers]
	for _, m := range s.Scratch[pointers:] {
		if m.Size != 0 {
			return nil, cubin.refuse("%s: the build asks for scratch memory and the code takes no pointer to it", b.Source)
		}
	}
	err = cubin.Start.check(f, *k)
	if err == nil {
		err = cubin.Start.checkPassed(*k, len(kind.Arguments))
	}
	if err == nil && s.CTAs < 1 {
		err = fmt.Errorf("a cluster of %d blocks", s.CTAs)
	}
	if err != nil {
		return nil, cubin.refuse(forbidden, b.Source, err)
	}
	for _, p := range s.Passed {
		if a := kind.Arguments[p.Argument]; p.Pointer() != strings.HasPrefix(a.Type, "*") || a.Type == "none" {
			return nil, cubin.refuse("%s takes the argument %s as %s, and the manifest passes %s", b.Source, a.Name, p.Type, a.Type)
		}
	}
	return cubin, cubin.readFigures(f, o.Log, tritonArch(b.Arch))
}

const (
	maxLine   = 1 << 20
	maxTuning = 200 // configurations of one kernel
)

// readImage reads a cubin with the one kernel that is launched.
func (c *Cubin) readImage(source, symbol string, line int) (*cubinFile, error) {
	f, err := readCubin(c.Image)
	if err != nil {
		return nil, c.refuse("%s: %v", source, err)
	}
	entries := f.entries()
	if !slices.Contains(entries, symbol) || len(symbol) > entryname.MaxMangled {
		return nil, c.refuse("%s was built to a cubin without the kernel %s: it has %s", source, entryname.Quote(symbol), entryname.Quote(strings.Join(entries[:min(len(entries), 8)], ", ")))
	}
	if foreign := f.foreign(); len(foreign) > 0 {
		return nil, c.refuse("%s calls %s, which it does not define: a kernel must not launch kernels or use the device runtime", source, entryname.Quote(strings.Join(foreign, ", ")))
	}
	params, err := f.params(symbol)
	if err == nil {
		c.Code, err = f.machineCode()
	}
	if err != nil {
		return nil, c.refuse("%s: %v", source, err)
	}
	c.Globals = f.globals()
	c.Kernels = []Kernel{{Symbol: symbol, Name: symbol, Params: params, CodeSize: f.codeSize(symbol), Line: line}}
	return f, nil
}

// readFigures reads the resources from the code and, if there is one, from ptxas's report.
func (c *Cubin) readFigures(f *cubinFile, log, arch string) error {
	k := &c.Kernels[0]
	k.Usage = f.usage(k.Symbol, arch)
	if log == "" {
		return nil
	}
	report, err := readPTXAS(log)
	if err != nil {
		return c.refuse("the assembler's report of %s is garbled: %v", entryname.Quote(k.Symbol), err)
	}
	c.Warnings = report.Warnings
	for _, u := range report.Entries {
		if u.Name == k.Symbol {
			k.Usage.raiseAll(u)
		}
	}
	return nil
}
