"""Finds the fastest point of the stencil by brute force: compiles all of them, times all of them, takes the best.

usage: brute.py [--launches 9] [--points POINT...] [--compare A B] [--list]

A point is written LANES=8,ROWS=2,UNROLL=5,VECTORS=2. --compare times two points in turns and prints how fast A is relative to B.
The last line of the output is JSON. It needs gcc (or CC), and no other program.
"""
import argparse
import concurrent.futures
import itertools
import json
import math
import os
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
VALUES = {"LANES": [4, 8, 16], "ROWS": [1, 2, 4], "UNROLL": [1, 5], "VECTORS": [1, 2, 4]}
SHAPES = {"square": {"R": 1024, "C": 1024}, "wide": {"R": 256, "C": 4096}}
CC = os.environ.get("CC", "gcc")
started = time.perf_counter()


def build(file, point):
    defines = ["-D" + word for word in point.split(",")]
    subprocess.run([CC, "-O3", "-march=native", "-shared", "-fPIC", *defines, "-o", file, HERE + "/stencil/stencil.c"], check=True)
    return file


def times(folder, files, runs, launches):
    """Returns the times of each file in µs, a list for each shape."""
    all_times = []
    for shape in SHAPES.values():
        words = [folder + "/driver", str(runs), str(launches), str(shape["R"]), str(shape["C"]), *files]
        lists = [[] for _ in files]
        for line in subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines():
            index, *micros = line.split()
            lists[int(index)] += map(float, micros)
        all_times.append(lists)
    return [list(of_file) for of_file in zip(*all_times)]


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launches", type=int, help="timed launches of each point and shape (default 9; 200 with --compare)")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"))
    parser.add_argument("--points", nargs="+", metavar="POINT", help="only these points")
    parser.add_argument("--list", action="store_true", help="print the points and shapes, and compile nothing")
    args = parser.parse_args()
    points = [",".join(f"{n}={v}" for n, v in zip(VALUES, values)) for values in itertools.product(*VALUES.values())]
    if args.list:
        print(json.dumps({"values": VALUES, "shapes": SHAPES, "points": points}))
        return
    chosen = args.compare or args.points or points
    for point in chosen:
        if point not in points:
            parser.error(f"there is no point {point}")
    points = chosen
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            files = list(pool.map(build, [f"{folder}/{i}.so" for i in range(len(points))], points))
        subprocess.run([CC, "-O2", "-o", folder + "/driver", HERE + "/driver.c", "-ldl"], check=True)
        compiled = time.perf_counter() - started
        if args.compare:
            a, b = times(folder, files, runs=args.launches or 200, launches=1)
            ratios = {s: statistics.median(y) / statistics.median(x) for s, x, y in zip(SHAPES, a, b)}
            print(json.dumps({"a": points[0], "b": points[1], "ratios": ratios, "ratio": geomean(ratios.values())}))
            return
        lists = times(folder, files, runs=1, launches=args.launches or 9)
    micros = {point: geomean([statistics.median(shape) for shape in of_point]) for point, of_point in zip(points, lists)}
    best = min(micros, key=micros.get)
    print(f"{best}: {micros[best]:.1f} µs")
    settings = {toggle: int(value) for toggle, value in (word.split("=") for word in best.split(","))}
    result = {"best": settings, "seconds": time.perf_counter() - started, "compile_seconds": compiled, "points": len(points), "times": micros}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
