package gates

import "github.com/kernelgate/kernelgate/gates/facts"

// Facts name these parts of evidence and verdicts, so package facts declares them: it imports nothing of this package.
type (
	Input       = facts.Input       // what a kernel is run on
	Finding     = facts.Finding     // what a sanitizer saw
	FindingKind = facts.FindingKind // what kind of mistake that is
	Estimate    = facts.Estimate    // a figure with its interval
	Loss        = facts.Loss        // a merge that made a kernel slower
	Detail      = facts.Detail      // one more thing that a gate found
)

const (
	KindRace          = facts.KindRace
	KindOutOfBounds   = facts.KindOutOfBounds
	KindMisaligned    = facts.KindMisaligned
	KindUninitialised = facts.KindUninitialised
	KindBarrier       = facts.KindBarrier
	KindUseAfterFree  = facts.KindUseAfterFree
	KindUndefined     = facts.KindUndefined
	KindLeak          = facts.KindLeak
	KindOther         = facts.KindOther
)
