package report

import (
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
)

const (
	dash  = number.Dash
	minus = number.Minus
	nbsp  = number.NBSP
)

func orDash[T ~string](s T) string {
	if strings.TrimSpace(string(s)) == "" {
		return dash
	}
	return string(s)
}

// The units of amounts come from evidence: they are made one line of visible text.

func amount(x float64, unit string) string    { return number.Amount(x, clean(unit)) }
func amountOf(x *float64, unit string) string { return number.AmountOf(x, clean(unit)) }

// change is an amount before and after.
func change(from, to *float64, unit string) string { return number.Change(from, to, clean(unit)) }
