#!/usr/bin/env python3
"""How far the p50 of one kernel moves from run to run, by three harnesses on the same GPU: kernelgate's own (from
accuracy.json, which the accuracy test wrote), triton.testing.do_bench, and a plain loop of events. A run is a fresh
process, as it is in CI: inside one process every harness repeats itself.

usage: spread.py FOLDER    (with accuracy.json and loops.cu in it; prints and writes spread.json)
"""
import json
import os
import statistics
import subprocess
import sys

import cupy
import torch  # imported before the children start, so that each pays for its context alone
import triton

REPEAT, N = 20, 65536


def kernel(cubin):
    function = cupy.RawModule(path=cubin).get_function("scale")
    x = torch.randn(N, device="cuda")
    y = torch.empty_like(x)
    args = (x.data_ptr(), y.data_ptr(), cupy.int32(N))
    return lambda: function((N // 256,), (256,), args)


def do_bench(launch):
    return triton.testing.do_bench(launch, return_mode="median") * 1e3


def event_loop(launch):
    for _ in range(100):
        launch()
    times = []
    for _ in range(500):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        launch()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times)


def in_fresh_process(harness, cubin):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, repr(harness(kernel(cubin))).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        value = float(answer.read())
    os.waitpid(child, 0)
    return value


def main():
    folder = sys.argv[1]
    cubin = os.path.join(folder, "loops.cubin")
    subprocess.run(["nvcc", "-cubin", "-O3", "-arch=sm_90", os.path.join(folder, "loops.cu"), "-o", cubin], check=True)
    with open(os.path.join(folder, "accuracy.json")) as file:
        runs = {"kernelgate": json.load(file)["kinds"]["equal, ±2 %"]["p50_us"][:REPEAT]}
    for name, harness in (("triton.testing.do_bench", do_bench), ("plain event loop", event_loop)):
        runs[name] = [in_fresh_process(harness, cubin) for _ in range(REPEAT)]
    result = {}
    for name, values in runs.items():
        middle = statistics.median(values)
        result[name] = {
            "repetitions": len(values), "median_us": middle, "cv_percent": 100 * statistics.stdev(values) / statistics.mean(values),
            "range_percent": 100 * (max(values) - min(values)) / middle, "p50_us": values,
        }
        print(f"{name:26} median {middle:8.3f} us  cv {result[name]['cv_percent']:.3f} %  range {result[name]['range_percent']:.3f} %")
    with open(os.path.join(folder, "spread.json"), "w") as file:
        json.dump(result, file, indent=2)


if __name__ == "__main__":
    main()
