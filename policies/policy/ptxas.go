package policy

import (
	"fmt"
	"iter"
	"maps"
	"strings"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A PTXASGate bounds what the compiler reports about the candidate.
type PTXASGate struct {
	Enforcement
	Registers     *CountBudget                    `yaml:"registers" eg:"{max: 128, increase: \"<= 8\"}" doc:"Registers per thread."`
	StaticShared  *BytesBudget                    `yaml:"static_shared_memory" eg:"<= 48KiB" doc:"Shared memory that the source declares, per block."`
	DynamicShared *BytesBudget                    `yaml:"dynamic_shared_memory" eg:"<= 64KiB" doc:"Shared memory that the launch requests, per block, at the largest shape."`
	Shared        *BytesBudget                    `yaml:"shared_memory" eg:"{max: 99KiB, increase: \"<= 4KiB\"}" doc:"Static and dynamic shared memory together."`
	SpillStores   *BytesBudget                    `yaml:"spill_stores" eg:"<= 0B" doc:"Bytes of registers that are spilled to memory, per thread."`
	SpillLoads    *BytesBudget                    `yaml:"spill_loads" eg:"<= 0B" doc:"Bytes of spilled registers that are read back, per thread."`
	Stack         *BytesBudget                    `yaml:"stack" eg:"<= 16B" doc:"Stack frame per thread."`
	CodeSize      *BytesBudget                    `yaml:"code_size" eg:"<= 64KiB" doc:"Size of the machine code of the kernel."`
	BlocksPerSM   *quantity.Bound[quantity.Count] `yaml:"blocks_per_sm" eg:">= 2" bounds:"(>= or >)" doc:"Occupancy, computed from the tables of the architecture."`
}

// Limits reports whether the gate limits anything. If not, it only shows the figures.
func (g *PTXASGate) Limits() bool {
	shown := PTXASGate{Enforcement: g.Enforcement}
	return *g != shown
}

// A Budget is a limit, and how much the candidate may add to the baseline.
type Budget[T quantity.Count | quantity.Bytes] struct {
	Max      *T                 `yaml:"max" eg:"128" doc:"Maximum for the candidate."`
	Increase *quantity.Bound[T] `yaml:"increase" eg:"<= 8" bounds:"(<= or <)" doc:"Candidate minus baseline."`
}

// The two kinds of budgets: for counts and for bytes.
type (
	CountBudget = Budget[quantity.Count]
	BytesBudget = Budget[quantity.Bytes]
)

// UnmarshalStrict also reads the short form: registers: "<= 128".
func (b *Budget[T]) UnmarshalStrict(n *strict.Node) {
	if _, scalar := n.Text(); scalar {
		var limit quantity.Bound[T]
		switch {
		case !n.Decode(&limit):
		case limit.Op != quantity.AtMost:
			n.Errorf("%q is not an upper limit (write \"<= %s\")", limit, fmt.Sprint(limit.Value))
		default:
			b.Max = &limit.Value
		}
		return
	}
	type fields Budget[T] // without this method
	n.Decode((*fields)(b))
}

func (b *Budget[T]) JSONSchema() map[string]any {
	var bound quantity.Bound[T]
	var value T
	orNone := func(s map[string]any) map[string]any {
		return map[string]any{"anyOf": []any{s, map[string]any{"enum": []any{"none", nil}}}}
	}
	return map[string]any{"title": "bound (<=), or a mapping", "anyOf": []any{
		bound.JSONSchema(),
		map[string]any{
			"type": "object", "additionalProperties": false,
			"properties": map[string]any{
				"max":      orNone(any(&value).(strict.Schemer).JSONSchema()),
				"increase": orNone(bound.JSONSchema()),
			},
		},
	}}
}

func (b *Budget[T]) check(n *strict.Node) {
	if b == nil {
		return
	}
	if b.Max == nil && b.Increase == nil {
		n.Errorf("sets no limit (write max or increase)")
	}
	if b.Increase != nil && b.Increase.Lower() {
		n.Child("increase").Errorf("%q asks for an increase (write \"<=\")", b.Increase)
	}
}

func (g *PTXASGate) check(n *strict.Node, _ rest) {
	g.Registers.check(n.Child("registers"))
	for field, b := range g.sizes() {
		b.check(n.Child(field))
	}
	if g.BlocksPerSM != nil && !g.BlocksPerSM.Lower() {
		n.Child("blocks_per_sm").Errorf("%q asks for low occupancy (write \">=\")", g.BlocksPerSM)
	}
}

// sizes returns the budgets in bytes with their fields, in the order of reports.
func (g *PTXASGate) sizes() iter.Seq2[string, *BytesBudget] {
	return func(yield func(string, *BytesBudget) bool) {
		_ = yield("static_shared_memory", g.StaticShared) &&
			yield("dynamic_shared_memory", g.DynamicShared) &&
			yield("shared_memory", g.Shared) &&
			yield("spill_stores", g.SpillStores) &&
			yield("spill_loads", g.SpillLoads) &&
			yield("stack", g.Stack) &&
			yield("code_size", g.CodeSize)
	}
}

func (g PTXASGate) String() string {
	asked := g.Registers.asked("registers")
	for field, b := range g.sizes() {
		asked = append(asked, b.asked(strings.ReplaceAll(field, "_", " "))...)
	}
	if g.BlocksPerSM != nil {
		asked = append(asked, "blocks per SM "+g.BlocksPerSM.String())
	}
	return orNothing(asked, "no limit; the figures are shown")
}

func (b *Budget[T]) asked(name string) []string {
	var asked []string
	if b != nil && b.Max != nil {
		asked = append(asked, fmt.Sprintf("%s %v", name, quantity.Bound[T]{Op: quantity.AtMost, Value: *b.Max}))
	}
	if b != nil && b.Increase != nil {
		asked = append(asked, fmt.Sprintf("%s increase %v", name, b.Increase))
	}
	return asked
}

func (g *PTXASGate) compare(l *compare.List, path string, old *PTXASGate) {
	compareEnforcement(l, path, old.Enforcement, g.Enforcement)
	compareBudget(l, path+".registers", old.Registers, g.Registers)
	budgets := maps.Collect(old.sizes())
	for field, b := range g.sizes() {
		compareBudget(l, path+"."+field, budgets[field], b)
	}
	compareBound(l, path+".blocks_per_sm", old.BlocksPerSM, g.BlocksPerSM, compare.Tightens)
}

func compareBudget[T quantity.Count | quantity.Bytes](l *compare.List, path string, old, new *Budget[T]) {
	was, is := orNone(old), orNone(new)
	compare.Limit(l, path+".max", was.Max, is.Max, compare.Tightens)
	compareBound(l, path+".increase", was.Increase, is.Increase, compare.Tightens)
}

func (g *PTXASGate) narrow([]string, []int64) *PTXASGate { return g }
