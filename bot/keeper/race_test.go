//go:build race

package keeper_test

// watched is whether the race detector is at work.
const watched = true
