package manifest

import (
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Peak is the kind of arithmetic whose peak rate bounds the kernel.
type Peak string

var peaks = []Peak{"fp8", "fp16", "bf16", "tf32", "fp32", "fp64", "int8"}

func (p *Peak) UnmarshalStrict(n *strict.Node) { strict.Word(n, p, peaks) }
func (p *Peak) JSONSchema() map[string]any     { return strict.WordSchema(peaks) }

// Work is the least work that a problem of given dims needs. With a device's peak rates it gives a
// time that no kernel can beat.
type Work struct {
	FLOPs Expr `yaml:"flops" required:"true" eg:"4*B*H*S*S*D" doc:"Number of operations of one launch."`
	Bytes Expr `yaml:"bytes" required:"true" eg:"5*B*H*S*D" doc:"Number of bytes that one launch must read and write at least."`
	Peak  Peak `yaml:"peak" required:"true" eg:"fp8" doc:"The arithmetic that bounds the kernel."`
}

// FLOPs returns the operations of one launch; 0 if the manifest has no work.
func (m *Manifest) FLOPs(dims Dims) (float64, error) {
	if m.Work == nil {
		return 0, nil
	}
	return m.Work.FLOPs.amount(m.Env(dims, nil))
}

// Bytes returns the memory traffic of one launch; 0 if the manifest has no work.
func (m *Manifest) Bytes(dims Dims) (float64, error) {
	if m.Work == nil {
		return 0, nil
	}
	return m.Work.Bytes.amount(m.Env(dims, nil))
}

func (e *Expr) amount(env Env) (float64, error) {
	v, err := e.within(env, 0, maxWhole)
	return float64(v), err
}

// A Tolerance says how far an element may differ from the reference's.
type Tolerance struct {
	Abs float64 `yaml:"abs" elsewhere:"atol absolute" eg:"0.06" default:"0" bounds:"(not negative)" doc:"Allowed absolute error of an element."`
	Rel float64 `yaml:"rel" elsewhere:"rtol relative" eg:"0.01" default:"0" bounds:"(not negative)" doc:"Allowed error relative to the expected value. It is added to abs."`
}

// ToleranceOf returns the tolerance of an output, or of a member of one: its own, or else the manifest's.
func (m *Manifest) ToleranceOf(output string) Tolerance {
	if own, ok := m.OwnTolerances()[output]; ok {
		return own
	}
	return m.Tolerance
}

// OwnTolerances returns the tolerances of the outputs that have their own; nil if none has.
func (m *Manifest) OwnTolerances() map[string]Tolerance {
	var own map[string]Tolerance
	add := func(name string, t *Tolerance) {
		if t == nil {
			return
		}
		if own == nil {
			own = map[string]Tolerance{}
		}
		own[name] = *t
	}
	for i := range m.Arguments {
		a := &m.Arguments[i]
		add(a.Name, a.Tolerance)
		for _, f := range a.Fields {
			add(a.memberName(&f), f.Tolerance)
		}
	}
	return own
}

func (t *Tolerance) ValidateStrict(n *strict.Node) {
	for field, v := range map[string]float64{"abs": t.Abs, "rel": t.Rel} {
		if v < 0 {
			n.Child(field).Errorf("%v is negative (write e.g. 0.06)", v)
		}
	}
	if n.Clean() && n.Mapping() && len(n.Pairs()) == 0 {
		n.Errorf("is empty (write e.g. {abs: 0.06}, or {abs: 0} for an exact kernel)")
	}
}
