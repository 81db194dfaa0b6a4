"""Times and checks a kernel, and prints what kernelgate's command mode reads.

Copy this file beside your kernel. It needs Python 3.8 and PyTorch, nothing else.

    # bench.py; kernel.yaml: command: {build: [make], bench: [python3, bench.py]}
    import torch, kernelgate_bench, my_kernel

    def problem(dims, seed, distribution):
        g = torch.Generator("cuda").manual_seed(seed)
        x = torch.randn(dims["N"], device="cuda", generator=g)
        return (lambda: my_kernel.scale(x)), 2 * x.double()

    kernelgate_bench.run(problem, abs=1e-3, rel=1e-3)

`problem` returns a function that launches the kernel once and returns its output
tensor, and the expected output in float64. Inputs follow from the seed alone.
"""

import ctypes
import hashlib
import json
import math
import os
import sys
import time


class Torch:
    """Times with CUDA events around one launch, on a cold L2."""

    def __init__(self, torch):
        self.torch = torch
        l2 = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        self.flush = torch.empty(max(2 * l2, 1 << 20), dtype=torch.uint8, device="cuda")

    def time(self, launch):
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flush.zero_()
        start.record()
        out = launch()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e6, out

    def poison(self, out):
        # The allocator hands the same memory out again, so this reaches kernels
        # that return a new tensor as well as those that write in place.
        if out.is_floating_point():
            out.fill_(math.nan)

    def digest(self, out):
        out = out.detach().contiguous().cpu()
        return hashlib.sha256(ctypes.string_at(out.data_ptr(), out.numel() * out.element_size())).hexdigest()

    def compare(self, out, want, abs, rel):
        torch = self.torch
        got, want = out.detach().double().flatten(), want.detach().double().flatten().to(out.device)
        if got.numel() != want.numel():
            raise ValueError("the output has %d elements, expected %d" % (got.numel(), want.numel()))
        finite = torch.isfinite(got)
        err = torch.where(finite, (got - want).abs(), torch.zeros_like(want))
        bad = ~finite | (err > abs + rel * want.abs())
        return figures(
            got.numel(), err.max().item(), err.mean().item(), err.norm().item(), want.norm().item(),
            int(bad.sum()), int(torch.isnan(got).sum()), int(torch.isinf(got).sum()))


class Plain:
    """Does without PyTorch: outputs are lists of numbers, and the clock is the host's."""

    def __init__(self, clock=time.perf_counter_ns):
        self.clock = clock

    def time(self, launch):
        start = self.clock()
        out = launch()
        return self.clock() - start, out

    def poison(self, out):
        out[:] = [math.nan] * len(out)

    def digest(self, out):
        return hashlib.sha256(" ".join(float(v).hex() for v in out).encode()).hexdigest()

    def compare(self, out, want, abs, rel):
        if len(out) != len(want):
            raise ValueError("the output has %d elements, expected %d" % (len(out), len(want)))
        err = [math.fabs(g - w) if math.isfinite(g) else 0.0 for g, w in zip(out, want)]
        bad = sum(not math.isfinite(g) or e > abs + rel * math.fabs(w) for g, w, e in zip(out, want, err))
        return figures(
            len(out), max(err), math.fsum(err) / len(err), math.sqrt(math.fsum(e * e for e in err)), math.sqrt(math.fsum(w * w for w in want)),
            bad, sum(math.isnan(g) for g in out), sum(math.isinf(g) for g in out))


def figures(elements, max_abs, mean_abs, distance, size, bad, nan, inf):
    # A norm error over an expected output of zeros has no size; 1 stands for wholly wrong.
    norm = distance / size if size else float(distance > 0)
    return {"elements": elements, "max_abs": max_abs, "mean_abs": mean_abs, "norm": norm, "bad": bad, "nan": nan, "inf": inf}


def run(problem, abs=0.0, rel=0.0, warmup=5, backend=None, env=None, out=None):
    """Does what the environment asks for. An element is bad when |error| > abs + rel * |expected|."""
    env = os.environ if env is None else env
    if out is None:
        out = os.fdopen(int(env["KERNELGATE_RESULT_FD"]), "w") if "KERNELGATE_RESULT_FD" in env else sys.stdout

    def emit(**line):
        out.write(json.dumps(line, allow_nan=False) + "\n")
        out.flush()

    try:
        backend = backend or default_backend()
        if env.get("KERNELGATE_MODE") == "correctness":
            for case in json.loads(env["KERNELGATE_CASES"]):
                emit(**correctness(problem, case, backend, abs, rel))
            return
        seed, samples = int(env.get("KERNELGATE_SEED", "0")), int(env.get("KERNELGATE_SAMPLES", "50"))
        for shape in json.loads(env["KERNELGATE_SHAPES"]):
            times, checked = performance(problem, shape, backend, seed, samples, warmup, abs, rel)
            emit(shape=shape["name"], ns=times)
            for found in checked:
                emit(shape=shape["name"], **found)
    except Exception as failed:
        emit(error="%s: %s" % (type(failed).__name__, failed))
        raise SystemExit(1)


def default_backend():
    try:
        import torch
    except ImportError:
        return Plain()
    if torch.cuda.is_available():
        return Torch(torch)
    raise RuntimeError("PyTorch sees no CUDA device")


def correctness(problem, case, backend, abs, rel):
    launch, want = problem(case["dims"], case["seed"], case["distribution"])
    out = launch()
    first, line = backend.digest(out), backend.compare(out, want, abs, rel)
    backend.poison(out)
    again = backend.digest(launch())
    line.update(shape=case["shape"], seed=case["seed"], distribution=case["distribution"], hash=first, deterministic=first == again)
    return line


def performance(problem, shape, backend, seed, samples, warmup, abs, rel):
    """Times launches over two inputs in turn, so that no launch can repeat the last one's output, and checks the
    last timed output on each."""
    inputs = [problem(shape["dims"], seed + i, "normal") for i in range(2)]
    times, last = [], [None, None]
    for i in range(warmup + max(samples, 2)):
        turn = i % 2
        if last[turn] is not None:
            backend.poison(last[turn])
        ns, last[turn] = backend.time(inputs[turn][0])
        if i >= warmup:
            times.append(ns)
    return times, [backend.compare(last[turn], inputs[turn][1], abs, rel) for turn in range(2)]
