//go:build race

package gates

import "github.com/kernelgate/kernelgate/gates/stats"

// The race detector makes arithmetic many times slower, and has nothing to find
// in it.
const simulatedResamples = stats.MinResamples
