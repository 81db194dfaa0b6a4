package runners

import (
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

// Spend does some work and adds its time to what was spent; nil counts nothing.
func Spend(spent gates.Spent, kind gates.Work, do func() error) error {
	if spent == nil {
		return do()
	}
	start := time.Now()
	err := do()
	spent[kind] += time.Since(start).Seconds()
	return err
}
