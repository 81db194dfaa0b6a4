package facts

import "fmt"

// A ReplayPasses is a recording on which a kernel could answer from memory.
type ReplayPasses struct{ Input }

func (r ReplayPasses) Sentence() string {
	return fmt.Sprintf("A kernel could remember the answer to %s inputs: on %s, the answer to the recording without noise is within the policy's bounds", r.Distribution, r.Label())
}

// RaiseNoise is the advice to it.
type RaiseNoise struct{}

func (RaiseNoise) Step(Reader) string {
	return "in the manifest of the base branch, raise vary.noise of the recording, or delete its vary: it is then compared, and nothing is timed on it"
}

// A ReplayNotTried is a recording without a case that shows that its answer cannot be remembered.
type ReplayNotTried struct{ Shape, Recording string }

func (r ReplayNotTried) Sentence() string {
	return fmt.Sprintf("%s, %s inputs with secret noise", r.Shape, r.Recording)
}
