//go:build race

package controller_test

// watched is whether the race detector is at work.
const watched = true
