package policy

import "github.com/kernelgate/kernelgate/policies/strict"

// Existing says how to treat a finding that the baseline has as well. The change did not cause it,
// so by default it is reported and decides nothing.
type Existing string

const (
	ExistingReports Existing = "report"
	ExistingDefers  Existing = "defer"
)

// existings ends with the strictest.
var existings = []Existing{ExistingReports, ExistingDefers}

func (e *Existing) UnmarshalStrict(n *strict.Node) { strict.Word(n, e, existings) }
func (e *Existing) JSONSchema() map[string]any     { return strict.WordSchema(existings) }
