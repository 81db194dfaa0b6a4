// Package inspect runs tools that look on while a kernel runs, and reads what they print: NVIDIA's compute-sanitizer
// around the process that launches, the C compiler's own sanitizers within the process that calls, and Nsight Compute
// (ncu), which counts. It judges no finding and no counter, and ncu's durations are no timings: profiling changes
// clocks and replays launches.
//
// What a tool prints is partly a stranger's: names of functions and files come from the code under test, and a kernel
// may print among the program's own output. So a tool's words are read from its own log, and counters from ncu's
// report file, never from the stream that the program shares. A report is read line by line, bounded in length and
// number, and what is not understood is no pass: see [Report.Finished].
package inspect
