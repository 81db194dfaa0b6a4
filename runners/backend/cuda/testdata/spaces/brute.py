"""Finds the fastest point of a CUDA search space by brute force: compiles all points with NVRTC, times them all, takes the best.

usage: brute.py SPACE [--launches 9] [--jobs N] [--compare A B] [--list]    (SPACE: rmsnorm or matmul)

A point is written BLOCK=256,ROWS=1,WIDTH=4. --compare times two points in turns and prints how fast A is relative to B. Every
timed launch finds a cold L2 cache. The last line of the output is JSON. It needs a driver and NVRTC, which a CUDA installation
and the wheels of PyTorch have, and no package of Python.
"""
import argparse
import array
import concurrent.futures
import ctypes
import glob
import itertools
import json
import math
import os
import random
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ARCH = "sm_90"
FLUSH = 256 << 20  # bytes to write before a launch: several times the L2 cache
SPACES = {
    "rmsnorm": {
        "values": {"BLOCK": [64, 128, 256, 512, 1024], "ROWS": [1, 2, 4], "WIDTH": [1, 2, 4, 8]},
        "shapes": {"square": {"R": 4096, "C": 4096}, "long": {"R": 2048, "C": 8192}, "short": {"R": 16384, "C": 1024}},
        "arrays": lambda s: [s["R"] * s["C"], s["C"], s["R"] * s["C"]],
        "scalars": lambda s: [s["R"], s["C"]],
        "grid": lambda p, s: (-(-s["R"] // p["ROWS"]), 1, 1),
        "block": lambda p: (p["BLOCK"] // p["ROWS"], p["ROWS"], 1),
    },
    "matmul": {
        "values": {"THREAD_N": [4, 8], "TILE_K": [16, 32], "TILE_M": [64, 128], "TILE_N": [16, 32, 64, 128, 256], "UNROLL": [1, 2, 4, 8, 16]},
        "shapes": {"cube": {"M": 1024, "N": 1024, "K": 1024}, "flat": {"M": 2048, "N": 2048, "K": 512}},
        "arrays": lambda s: [s["M"] * s["K"], s["K"] * s["N"], s["M"] * s["N"]],
        "scalars": lambda s: [s["M"], s["N"], s["K"]],
        "grid": lambda p, s: (s["N"] // p["TILE_N"], s["M"] // p["TILE_M"], 1),
        "block": lambda p: (p["TILE_N"] // p["THREAD_N"] * (p["TILE_M"] // 8), 1, 1),
    },
}
started = time.perf_counter()


def name(point):
    return ",".join(f"{toggle}={value}" for toggle, value in sorted(point.items()))


def load(*files):
    """Opens the first library that there is."""
    for file in files:
        try:
            return ctypes.CDLL(file)
        except OSError:
            pass
    sys.exit(f"brute.py: there is no {files[-1]}")


def nvrtc():
    folders = ["/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", *(f"{path}/nvidia/*/lib" for path in sys.path if path)]
    found = [file for folder in folders for file in sorted(glob.glob(f"{folder}/libnvrtc.so.1[23]"), reverse=True)]
    for file in found[:1]:  # NVRTC opens its second library by its name, which must be known by then
        load(*glob.glob(os.path.dirname(file) + "/libnvrtc-builtins.so.1[23].*"), file)
    return load(*found, "libnvrtc.so.13", "libnvrtc.so.12")


def compile_point(space, point):
    """Returns the cubin of a point, or what the compiler says against it."""
    with open(f"{HERE}/{space}/{space}.cu", "rb") as f:
        source = f.read()
    lib, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    options = [f"--gpu-architecture={ARCH}".encode(), *(f"-D{toggle}={value}".encode() for toggle, value in point.items())]
    if lib.nvrtcCreateProgram(ctypes.byref(program), source, space.encode() + b".cu", 0, None, None) != 0:
        return "NVRTC takes no program"
    if lib.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)) != 0:
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetProgramLog(program, log)
        return log.value.decode(errors="replace")
    lib.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetCUBIN(program, cubin)
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw


class GPU:
    """The first GPU, with two events and a buffer that pushes everything else out of the L2 cache."""

    def __init__(self):
        self.cuda = load("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.start, self.stop = ctypes.c_void_p(), ctypes.c_void_p()
        for event in (self.start, self.stop):
            self.call("cuEventCreate", ctypes.byref(event), 0)
        self.flush = self.allocate(FLUSH)

    def call(self, function, *args):
        if (code := getattr(self.cuda, function)(*args)) != 0:
            raise RuntimeError(f"{function} returns {code}")

    def allocate(self, size):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer

    def array(self, elements, pattern):
        """An array that repeats the pattern."""
        values = (pattern * -(-4 * elements // len(pattern)))[: 4 * elements]
        pointer = self.allocate(len(values))
        self.call("cuMemcpyHtoD_v2", pointer, values, ctypes.c_size_t(len(values)))
        return pointer

    def function(self, cubin, entry):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        return function

    def time(self, function, grid, block, args):
        """Launches once, and returns the microseconds."""
        micros = ctypes.c_float()
        pointers = (ctypes.c_void_p * len(args))(*(ctypes.addressof(a) for a in args))
        self.call("cuMemsetD8Async", self.flush, 0, ctypes.c_size_t(FLUSH), None)
        self.call("cuEventRecord", self.start, None)
        self.call("cuLaunchKernel", function, *grid, *block, 0, None, pointers, None)
        self.call("cuEventRecord", self.stop, None)
        self.call("cuEventSynchronize", self.stop)
        self.call("cuEventElapsedTime", ctypes.byref(micros), self.start, self.stop)
        return micros.value * 1e3


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("space", choices=SPACES)
    parser.add_argument("--launches", type=int, help="timed launches of each point and shape (default 9; 200 with --compare)")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilations at a time (default: one for each processor)")
    parser.add_argument("--list", action="store_true", help="print the points and shapes, and compile nothing")
    args = parser.parse_args()
    space = SPACES[args.space]
    points = [dict(zip(space["values"], values)) for values in itertools.product(*space["values"].values())]
    if args.list:
        launches = {n: {name(p): [space["grid"](p, s), space["block"](p)] for p in points} for n, s in space["shapes"].items()}
        print(json.dumps({"values": space["values"], "shapes": space["shapes"], "launches": launches}))
        return
    if args.compare:
        known = {name(p): p for p in points}
        for point in args.compare:
            if point not in known:
                parser.error(f"there is no point {point}")
        points = [known[point] for point in args.compare]

    nvrtc()  # before the processes start, so that they share it
    with concurrent.futures.ProcessPoolExecutor(min(args.jobs, len(points))) as pool:
        cubins = list(pool.map(compile_point, [args.space] * len(points), points))
    compiled = time.perf_counter() - started
    built = [(point, cubin) for point, cubin in zip(points, cubins) if isinstance(cubin, bytes)]
    if len(built) < len(points):
        log = next(cubin for cubin in cubins if isinstance(cubin, str))
        print(f"{len(points) - len(built)} of {len(points)} points do not compile: {log.strip()}", file=sys.stderr)
    if not built or args.compare and len(built) < 2:
        sys.exit(1)

    gpu = GPU()
    functions = [(point, gpu.function(cubin, args.space)) for point, cubin in built]
    random.seed(1)
    pattern = array.array("f", (random.gauss(0, 1) for _ in range(1 << 16))).tobytes()
    medians = []  # of each shape, in the order of the points
    for shape in space["shapes"].values():
        values = [*(gpu.array(n, pattern) for n in space["arrays"](shape)), *(ctypes.c_int(n) for n in space["scalars"](shape))]
        one = lambda point, function: gpu.time(function, space["grid"](point, shape), space["block"](point), values)
        for _ in range(0 if medians else 1000):  # the clocks of an idle GPU are low
            one(*functions[0])
        if args.compare:
            for pair in functions * 3:
                one(*pair)
            turns = [[], []]
            for i in range(args.launches or 200):
                for side in (0, 1) if i % 2 else (1, 0):  # so that nobody is always the second
                    turns[side].append(one(*functions[side]))
            medians.append([statistics.median(times) for times in turns])
        else:
            medians.append([])
            for pair in functions:
                one(*pair)
                medians[-1].append(statistics.median(one(*pair) for _ in range(args.launches or 9)))
    if args.compare:
        ratios = {n: b / a for n, (a, b) in zip(space["shapes"], medians)}
        print(json.dumps({"a": args.compare[0], "b": args.compare[1], "ratios": ratios, "ratio": geomean(ratios.values())}))
        return
    micros = {name(point): geomean(times) for (point, _), times in zip(built, zip(*medians))}
    best = min((point for point, _ in built), key=lambda point: micros[name(point)])
    print(f"{name(best)}: {micros[name(best)]:.1f} µs")
    result = {"best": best, "seconds": time.perf_counter() - started, "compile_seconds": compiled, "points": len(points), "times": micros}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
