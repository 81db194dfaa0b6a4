// Package why says why a kernel became faster or slower, from what a profiler counted of both sides.
//
// [Explain] compares three profiles of one launch on the same inputs: the baseline's, the baseline's
// once more, and the candidate's. The two of the baseline differ by noise alone, so a counter that moves
// no more than they do has not moved. Of the counters that moved, a list of rules (causes.go) estimates
// how much of the time each mechanism takes on both sides. The one whose share of the time changed most,
// in the direction of the difference, is the cause. If none explains a notable part, no cause is named.
//
// The package judges nothing, and knows neither evidence nor policies. The rules are documented for
// readers in docs/why.md.
package why
