package worker

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/oracle"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// dump sends the outputs of both sides and of the reference.
func (d *caseSession) dump(evidence gates.Case, p *tensor.Problem, batch *oracle.InputBatch, reference *oracle.Reference) error {
	fetch := func(from driver.Buffer, size int) ([]byte, error) {
		data := make([]byte, size)
		if err := d.stream.ToHost(data, from.Slice(0, int64(size))); err != nil {
			return nil, fmt.Errorf("reading outputs back: %w", err)
		}
		return data, d.stream.Synchronize()
	}
	expected, err := fetch(reference.Slot, reference.Layout.Size)
	if err != nil {
		return err
	}
	var want [][]float64
	for _, o := range tensor.Outputs(reference.Args) {
		values := make([]float64, o.Elements)
		tensor.Decode(o.DType, values, reference.Layout.Array(expected, o.Of))
		want = append(want, values)
	}
	l := &runners.CaseDump{Case: evidence, Outputs: runners.DumpedOutputs(p.Args, want)}
	keep := func(slot int, to func(*runners.DumpedOutput, []byte)) error {
		data, err := fetch(d.slots[slot], batch.Layout.Size)
		if err != nil {
			return err
		}
		for k, o := range tensor.Outputs(p.Args) {
			to(&l.Outputs[k], o.Values(batch.Layout.Array(data, o.Of)))
		}
		return nil
	}
	if err := keep(first, func(o *runners.DumpedOutput, data []byte) { o.Candidate = data }); err != nil {
		return err
	}
	if evidence.Baseline != nil {
		if err := keep(candidateSlots, func(o *runners.DumpedOutput, data []byte) { o.Baseline = data }); err != nil {
			return err
		}
	}
	return d.send(Reply{Look: l})
}
