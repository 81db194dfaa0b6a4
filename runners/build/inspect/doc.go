// Package inspect runs tools that observe a running kernel, and parses their output: NVIDIA's
// compute-sanitizer around the process that launches, the C compiler's sanitizers within the
// process that calls, and Nsight Compute (ncu), which reads performance counters. It judges no
// finding and no counter. ncu's durations are not used as timings, because profiling changes clocks
// and replays launches.
//
// A tool's output is partly untrusted: names of functions and files come from the code under test,
// and a kernel may print into the program's output. So a tool's messages are read from its own log,
// and counters from ncu's report file, never from the stream that the program shares. Reports are
// read line by line, bounded in length and number, and output that is not understood is no pass:
// see [Report.Finished].
package inspect
