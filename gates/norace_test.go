//go:build !race

package gates

import "github.com/kernelgate/kernelgate/gates/stats"

const simulatedResamples = stats.DefaultResamples
