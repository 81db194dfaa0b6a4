package policy

import (
	"cmp"
	"fmt"
	"time"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// An Explain says for which shapes a difference in speed is explained. An explanation asks nothing of a change and decides nothing.
type Explain struct {
	Shapes  *Shapes           `yaml:"shapes" eg:"[mission]" default:"(the target that differs most, and the shape that lost most)" doc:"Shapes to profile, of those whose times differ."`
	Timeout quantity.Duration `yaml:"timeout" eg:"20s" default:"30s" doc:"Time limit for profiling. What is not explained by then is left out."`
}

func (x *Explain) fill(*strict.Node) {
	x.Timeout = cmp.Or(x.Timeout, quantity.Duration(30*time.Second))
}

func (x *Explain) String() string {
	switch {
	case x == nil:
		return compare.None
	case x.Shapes == nil:
		return fmt.Sprintf("where the times differ most, within %v", x.Timeout)
	}
	return fmt.Sprintf("on %s, within %v", x.Shapes, x.Timeout)
}

// compareExplain shows a change, which neither tightens nor loosens anything.
func compareExplain(l *compare.List, path string, old, new *Explain) {
	if was, is := old.String(), new.String(); was != is {
		l.Add(path, was, is, compare.Changes)
	}
}
