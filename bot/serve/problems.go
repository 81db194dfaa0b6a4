package serve

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// problems are an operator's mistakes, told all at once.
type problems []string

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return strict.Mistake{Err: errors.New(strings.Join(p, "\n"))}
}
