package gates

// Work is a kind of work of a step.
type Work string

// Kinds of work, in the order in which they are shown.
const (
	WorkMemory      Work = "memory"      // making room for arguments, and loading code
	WorkInputs      Work = "inputs"      // drawing inputs, and laying them out for the sides
	WorkLaunches    Work = "launches"    // of the sides, with what brings the device into its first state
	WorkComparisons Work = "comparisons" // of outputs with each other
	WorkReference   Work = "reference"   // computing expected outputs, and comparing with them
)

// Works returns all kinds of work.
func Works() []Work {
	return []Work{WorkMemory, WorkInputs, WorkLaunches, WorkComparisons, WorkReference}
}

// Spent is how many seconds of a step each kind of work took. What they lack of the step's seconds went into starting processes
// and creating their contexts, and into waiting for them.
type Spent map[Work]float64

// Total is the time of all work.
func (s Spent) Total() (seconds float64) {
	for _, one := range s {
		seconds += one
	}
	return seconds
}
