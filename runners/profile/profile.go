// Package profile runs Nsight Compute (ncu) around a program that launches a named kernel and reads the counters
// that it reports. It judges no counter, and its durations are no timings: profiling changes clocks and
// replays launches.
//
// A kernel may print, and what it prints appears among the program's own output. So that a kernel can neither
// forge a counter nor an excuse for having none, [NCU.Run] reads ncu's words from ncu's own log and the counters
// from ncu's report file, never from the stream that the program shares.
package profile

// A Launch is one profiled launch of a kernel.
type Launch struct {
	ID      int
	Kernel  string
	Metrics []Metric // in ncu's order; a counter without a value is left out
}

// A Metric is one counter. A percentage is kept as ncu writes it: 45.2 with the unit %.
type Metric struct {
	Name  string
	Unit  string
	Value float64 // finite
}
