// Package command gathers evidence from a repository's own harness: any build command, and any
// bench command that prints JSON lines. It is for kernels that do not fit the device-only cuda
// mode. It times nothing and compares nothing itself: every figure is the harness's claim. So it
// cannot detect the cheats that cuda mode makes impossible: patched timers, work outside the timed
// region, a forged result, an edited input.
//
// # What the commands get
//
// command.build builds each side in a private copy of the kernel's folder. command.bench measures
// it in the same folder, which is then read-only; /tmp is writable and empty for every process.
// Both run in the sandbox: no network, no home, and only PATH and this environment:
//
//	KERNELGATE_MODE       build, test, correctness or performance
//	KERNELGATE_VARIANT    the manifest's variant
//	KERNELGATE_DEFINES    its toggles as compiler flags: -DUSE_CP_ASYNC=1 …
//	KERNELGATE_RESULT_FD  3: the descriptor to print results on
//	KERNELGATE_SHAPES     [{"name":"mission","dims":{"B":1,"S":512}}, …]
//	KERNELGATE_CASES      correctness: [{"shape":"mission","dims":{…},"seed":0,
//	                      "distribution":"normal"}, …]
//	KERNELGATE_SEED       performance: the seed of the inputs
//	KERNELGATE_SAMPLES    performance: how many launches of each shape to time
//	CUDA_VISIBLE_DEVICES  the GPU, if the runner has one; the device files of the host's
//	                      other GPUs are not visible
//
// # What bench prints
//
// bench prints JSON lines on descriptor 3. If no results come there, standard output is read
// instead. On standard output, lines that do not begin with '{' are ignored.
//
//	{"shape":"mission","us":[11.2,11.1]}
//	        times of launches in order; ns for nanoseconds, times in the manifest's unit
//	{"shape":"mission","seed":0,"distribution":"normal","elements":4096,
//	 "max_abs":1e-3,"mean_abs":1e-5,"norm":1e-4,"bad":0,"nan":0}      (on one line)
//	        error figures of one output; inf, unwritten, deterministic and hash may follow
//	{"error":"no kernel image for this GPU"}
//	        why it could not measure
//
// In correctness mode it prints figures for every case. Cases that it leaves out stay missing, and
// the gate says so. In performance mode it prints times and figures for every shape. The figures
// are those of the outputs that it timed: without them nobody would know that the timed outputs
// were right. seed and distribution are optional there.
//
// A manifest with command.test needs none of the figures. The test command runs in the built folder
// with KERNELGATE_MODE=test, its exit status is the correctness gate, and bench is asked only for
// times. That suits a harness that already has a test program. The timed outputs are then compared
// with nothing.
//
// A line is at most 1 MiB long. A process prints at most 10,000 lines and 16 MiB in all. Unknown
// keys are mistakes.
//
// The JSON of nvbench (--json) and of Google Benchmark (--benchmark_format=json) is also read as
// times, from either place. Both write to a file of any name, so /dev/fd/3 works.
//
// # How a round is measured
//
// Launches inside one process share their allocations, clocks and module placement. They are not
// independent, and an interval computed from them is too narrow. So a process gives one sample per
// shape, the median of its launches. A round is six fresh processes, one after the other: baseline,
// candidate and a second run of the baseline as control, in random order and back again. No two
// processes run at the same time, so the baseline always runs alone and no separate solo samples
// are taken.
package command
