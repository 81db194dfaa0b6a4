// Package change holds the state of one change: a pull request, a merge group, a push to the
// default branch, or a sweep or a watch of it. Everything that happens to a change is an Event in the journal.
// State is the sum of the events, and says what is still to be done. The package is pure: it reads
// no clock and does no I/O.
//
// A change has one subject in the journal, and every write names the last event
// that its writer knew. So two writers never both act on the same state, and a
// runner's late result is refused by the journal, not by luck. The subject is
// the change's and not a single run's, since the required check sums up all
// runs: it must never be computed from half of them. The attempts at a machine code
// outlive the changes that brought it, and have separate subjects (package attempts).
package change
