"""Runs the median filter and prints what kernelgate asks for: JSON lines on descriptor 3."""
import ctypes
import json
import os
import random
import time

library = ctypes.CDLL("./libmedian.so")
out = os.fdopen(int(os.environ["KERNELGATE_RESULT_FD"]), "w")


def launch(x, n):
    """Runs the kernel once; returns its output and its time on the processor in nanoseconds, without that of other programs."""
    y = (ctypes.c_float * n)(*[float("nan")] * n)
    start = time.thread_time_ns()
    library.median(x, y, ctypes.c_long(n))
    spent = time.thread_time_ns() - start
    return list(y), spent


def inputs(n, seed, distribution):
    draw = random.Random(f"{seed} {distribution}")
    size = 8 if distribution == "large" else 1
    return (ctypes.c_float * (n + 4))(*[draw.gauss(0, size) for _ in range(n + 4)])


def figures(x, got):
    """Compares an output with the median by sorting."""
    want = [sorted(x[i : i + 5])[2] for i in range(len(got))]
    nan = sum(g != g for g in got)
    errors = [abs(g - w) for g, w in zip(got, want) if g == g]
    norm = sum(w * w for w in want) ** 0.5 or 1
    return {
        "elements": len(got), "nan": nan, "bad": nan + sum(e > 1e-6 for e in errors), "max_abs": max(errors, default=0),
        "mean_abs": sum(errors) / len(got), "norm": sum(e * e for e in errors) ** 0.5 / norm,
    }


def tell(**line):
    print(json.dumps(line), file=out, flush=True)


if os.environ["KERNELGATE_MODE"] == "correctness":
    for case in json.loads(os.environ["KERNELGATE_CASES"]):
        x = inputs(case["dims"]["N"], case["seed"], case["distribution"])
        y, _ = launch(x, case["dims"]["N"])
        tell(shape=case["shape"], seed=case["seed"], distribution=case["distribution"], **figures(x, y))
else:
    for shape in json.loads(os.environ["KERNELGATE_SHAPES"]):
        n = shape["dims"]["N"]
        times = []
        for i in range(int(os.environ["KERNELGATE_SAMPLES"])):
            x = inputs(n, f"{os.environ['KERNELGATE_SEED']} {i}", "normal")
            y, ns = launch(x, n)
            times.append(ns)
        tell(shape=shape["name"], ns=times)
        tell(shape=shape["name"], **figures(x, y))
