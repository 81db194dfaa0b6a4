package report

import "github.com/kernelgate/kernelgate/gates"

// A sign is a mark before a line that shows a result.
type sign int

const (
	signNone sign = iota
	signPass
	signFail  // proven to miss what is asked
	signDefer // measured, and not decided
	signInform
	signMissing
	signError // the runner's fault
)

// signs is how each is shown. A glyph is one cell wide in every terminal, which emoji are not.
var signs = map[sign]struct{ emoji, glyph, colour string }{
	signNone:    {"⚪", "·", ""},
	signPass:    {"✅", "✓", green},
	signFail:    {"❌", "✗", red},
	signDefer:   {"❓", "?", yellow},
	signInform:  {"ℹ️", "i", yellow},
	signMissing: {"❓", "!", yellow},
	signError:   {"⚠️", "⚠", red},
}

// The colours of a terminal.
const red, green, yellow = "31", "32", "33"

// Sign is the mark of a verdict, by what the author has to do: a change that is proven to miss what is
// asked must be fixed, one that is not decided needs more evidence.
func Sign(o gates.Outcome, r gates.Reason) string { return signs[signOfVerdict(o, r)].emoji }

func signOfVerdict(o gates.Outcome, r gates.Reason) sign {
	switch o {
	case gates.Pass:
		return signPass
	case gates.Defer:
		return signOfReason(r)
	}
	return signError
}

func signOfReason(r gates.Reason) sign {
	switch {
	case r == gates.ReasonInconclusive:
		return signDefer
	case r == gates.ReasonRunner:
		return signError
	}
	return signFail
}

func signOf(s gates.Status) sign {
	switch s {
	case gates.Passed:
		return signPass
	case gates.Failed:
		return signFail
	case gates.Open:
		return signDefer
	case gates.Informs:
		return signInform
	case gates.Missing:
		return signMissing
	}
	return signNone
}

func signOfGate(g gates.GateResult) sign {
	if g.Status == gates.Failed {
		return signOfReason(g.Reason)
	}
	return signOf(g.Status)
}

// result is a status as a table shows it: the mark, and the word for those who
// cannot tell marks apart. The cell is empty where nothing was asked of the row.
func result(s gates.Status) line {
	word := string(s)
	switch s {
	case gates.NotRun, "":
		return cell(dash)
	case gates.Open:
		word = "not decided"
	case gates.Informs:
		word = "for information"
	}
	return line{mark(signOf(s)), text(string(nbsp) + word)}
}
