// Package tune searches the fastest way to build a kernel, within the space that its manifest
// declares, and has the ordinary gate prove the winner.
//
// A [Proposer] suggests candidates of a [Space]. A [Search] takes them through the steps of a [Lab],
// cheapest first: build, compare outputs, and then a [Race], in which every round times each
// remaining arm paired with the incumbent, and arms leave that are proven slower. The best goes
// through the sanitizers and the gate. Every result is in the [Log] before the search acts on it, so
// that the search is a function of its log and its seed: it can be resumed at any moment, and
// replayed without a GPU ([Replay]).
//
// Read search.go first, then race.go. Run connects the search with a repository. The package judges
// no kernel: package arm asks the gates about every step, and the verdict is that of package gates.
package tune
