"""Finds the fastest configuration of the softmax in Triton by brute force: compiles and times all of them, takes the best.

usage: brute_triton.py [--launches 9] [--compare A B] [--list]

A point is written BLOCK=1024,STAGES=1,num_warps=4. --compare times two of them in turns and prints how fast A is relative to
B. Every timed launch finds a cold L2 cache. The last line of the output is JSON. It needs PyTorch and Triton.
"""
import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time

started = time.perf_counter()
SHAPES = {"square": {"R": 4096, "C": 4096}, "long": {"R": 1024, "C": 16384}}
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "softmax_triton"))


def values(config):
    return {**config.kwargs, "num_warps": config.num_warps}


def name(config):
    return ",".join(f"{n}={v}" for n, v in sorted(values(config).items()))


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launches", type=int, help="timed launches of each point and shape (default 9; 200 with --compare)")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"))
    parser.add_argument("--list", action="store_true", help="print the points and shapes, and compile nothing")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache  # nothing was compiled before
        measure(parser, args)


def measure(parser, args):
    import softmax

    configs = {name(c): c for c in softmax.CONFIGURATIONS}
    if args.list:
        print(json.dumps({"shapes": SHAPES, "points": list(configs)}))
        return
    for point in args.compare or []:
        if point not in configs:
            parser.error(f"there is no point {point}")
    import torch

    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    arrays = {n: [torch.randn(s["R"], s["C"], device="cuda"), torch.empty(s["R"], s["C"], device="cuda")] for n, s in SHAPES.items()}
    kernel = softmax.softmax.fn  # without its tuner

    def launch(point, shape):
        c, s = configs[point], SHAPES[shape]
        kernel[(s["R"],)](*arrays[shape], s["C"], **c.kwargs, num_warps=c.num_warps)

    def one(point, shape):
        flush.zero_()
        start.record()
        launch(point, shape)
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e3

    before = time.perf_counter()
    points = args.compare or list(configs)
    for point in points:
        for shape in SHAPES:
            launch(point, shape)
    torch.cuda.synchronize()
    compiled = time.perf_counter() - before
    for _ in range(1000):  # the clocks of an idle GPU are low
        one(points[0], "square")
    if args.compare:
        ratios = {}
        for shape in SHAPES:
            turns = [[], []]
            for i in range(args.launches or 200):
                for side in (0, 1) if i % 2 else (1, 0):  # so that nobody is always the second
                    turns[side].append(one(points[side], shape))
            ratios[shape] = statistics.median(turns[1]) / statistics.median(turns[0])
        print(json.dumps({"a": points[0], "b": points[1], "ratios": ratios, "ratio": geomean(ratios.values())}))
        return
    micros = {point: geomean([statistics.median(one(point, shape) for _ in range(args.launches or 9)) for shape in SHAPES]) for point in points}
    best = min(micros, key=micros.get)
    print(f"{best}: {micros[best]:.1f} µs")
    result = {"best": values(configs[best]), "seconds": time.perf_counter() - started, "compile_seconds": compiled, "points": len(points), "times": micros}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
