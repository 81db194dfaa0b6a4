package worker

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/cuda/oracle"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// look sends the outputs of both sides and of the reference.
func (d *desk) look(evidence gates.Case, p *tensor.Problem, sheet *oracle.InputBatch, reference *oracle.Reference) error {
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
	for i, a := range reference.Args {
		if a.Array() && a.Writes() {
			values := make([]float64, a.Elements)
			tensor.Decode(a.DType, values, reference.Layout.Array(expected, i))
			want = append(want, values)
		}
	}
	l := &runners.CaseDump{Case: evidence, Outputs: runners.DumpedOutputs(p.Args, want)}
	keep := func(room int, to func(*runners.DumpedOutput, []byte)) error {
		slot, err := fetch(d.rooms[room], sheet.Layout.Size)
		if err != nil {
			return err
		}
		at := 0
		for i, a := range p.Args {
			if a.Array() && a.Writes() {
				to(&l.Outputs[at], sheet.Layout.Array(slot, i))
				at++
			}
		}
		return nil
	}
	if err := keep(first, func(o *runners.DumpedOutput, data []byte) { o.Candidate = data }); err != nil {
		return err
	}
	if evidence.Baseline != nil {
		if err := keep(candidateRooms, func(o *runners.DumpedOutput, data []byte) { o.Baseline = data }); err != nil {
			return err
		}
	}
	return d.send(Reply{Look: l})
}
