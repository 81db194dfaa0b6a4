// Package change is what the bot knows of one thing under the gate: a pull
// request, a merge group, a push to the default branch or a sweep of it. Everything that
// happens to it is an Event in the journal; State is what the events add up to,
// and says what is still to be done. The package is pure: it reads no clock,
// asks nobody and writes nothing.
//
// A change has one subject in the journal, and every write names the last event
// that its writer knew. So two writers never both act on the same state, and a
// runner's late result is refused by the journal, not by luck. The subject is
// the change's and not a single run's, since the required check sums up all
// runs: it must never be computed from half of them. What was measured of a machine
// code outlives the changes that brought it, and is an Account under a subject of its own.
package change
