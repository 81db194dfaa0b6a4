// Package long marks tests that take long or measure real time: simulations, series of kills and faults, attacks on the clock,
// every compiler and architecture. make test leaves them out. make test-long runs the tests that call this package, and no others,
// one package after the other. It finds the calls in the text, so they stand in the test function itself (.ci/test-long).
package long

import (
	"os"
	"testing"
)

const env = "KERNELGATE_LONG"

// On reports whether this run is for long tests. A test that does less in other runs asks it.
func On() bool { return os.Getenv(env) != "" }

// Test skips t unless this run is for long tests.
func Test(t testing.TB) {
	t.Helper()
	if !On() {
		t.Skip("it takes long: make test-long runs it (" + env + "=yes)")
	}
}

// Times returns how often a test repeats something: many times in a run for long tests.
func Times(few, many int) int {
	if On() {
		return many
	}
	return few
}
