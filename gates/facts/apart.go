package facts

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates/number"
)

// An ApartFromBaseline is timed launches whose outputs are so far from the baseline's that one of
// the two must be wrong, and of which too few were compared with the reference.
type ApartFromBaseline struct {
	Launches, Compared int
	Unseen             float64 // the share of wrong launches that may have been missed
	Asked              float64
}

func (a ApartFromBaseline) Sentence() string {
	return fmt.Sprintf("In %d timed launches the two sides are so far apart that one of them is wrong, and only %d were compared with the reference: wrong launches may be missed if they are fewer than %s of all (asked at most %s)",
		a.Launches, a.Compared, number.Share(a.Unseen), number.Share(a.Asked))
}

// CompareMore is the advice to it.
type CompareMore struct{}

func (CompareMore) Step(Reader) string {
	return "make both sides agree with the reference on the timed inputs, fix the baseline first if it is wrong, or allow more rounds or a faster reference"
}
