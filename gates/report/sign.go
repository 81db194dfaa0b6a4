package report

import "github.com/kernelgate/kernelgate/gates"

// A sign is a mark before a line that says how it came out.
type sign int

const (
	signNone sign = iota
	signPass
	signFail
	signOpen
	signInform
	signMissing
	signDefer
	signError
)

func signOf(s gates.Status) sign {
	switch s {
	case gates.Passed:
		return signPass
	case gates.Failed:
		return signFail
	case gates.Open:
		return signOpen
	case gates.Informs:
		return signInform
	case gates.Missing:
		return signMissing
	}
	return signNone
}

func signOfOutcome(o gates.Outcome) sign {
	switch o {
	case gates.Pass:
		return signPass
	case gates.Defer:
		return signDefer
	}
	return signError
}

// result is a status as a table shows it: the mark, and the word for those who
// cannot tell marks apart.
func result(s gates.Status) line {
	word := string(s)
	switch s {
	case gates.Informs:
		word = "informs"
	case gates.NotRun, "":
		word = "not run"
	}
	return resultWord(s, word)
}

// rowResult leaves the cell empty where nothing was asked of the row.
func rowResult(s gates.Status) line {
	if s == gates.NotRun || s == "" {
		return cell(dash)
	}
	return result(s)
}

func resultWord(s gates.Status, word string) line {
	return line{mark(signOf(s)), text(string(nbsp) + word)}
}
