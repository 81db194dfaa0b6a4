"""Tests of kernelgate_bench.py without PyTorch: the clock is handed in."""

import io
import json
import math
import unittest

import kernelgate_bench as bench


class Clock:
    """Ticks as told, one tick a call."""

    def __init__(self, *steps):
        self.now, self.steps, self.calls = 0, steps, 0

    def __call__(self):
        self.now += self.steps[self.calls % len(self.steps)]
        self.calls += 1
        return self.now


def double(dims, seed, distribution):
    x = [float(seed + i) for i in range(dims["N"])]
    return (lambda: [2 * v for v in x]), [2 * v for v in x]


def run(problem, mode, backend=None, **options):
    out = io.StringIO()
    env = {
        "KERNELGATE_MODE": mode, "KERNELGATE_SEED": "7", "KERNELGATE_SAMPLES": "4",
        "KERNELGATE_SHAPES": json.dumps([{"name": "mission", "dims": {"N": 8}}]),
        "KERNELGATE_CASES": json.dumps([{"shape": "mission", "dims": {"N": 8}, "seed": s, "distribution": "normal"} for s in (0, 1)]),
    }
    code = 0
    try:
        bench.run(problem, backend=backend or bench.Plain(Clock(10, 250)), env=env, out=out, **options)
    except SystemExit as ended:
        code = ended.code
    return [json.loads(line) for line in out.getvalue().splitlines()], code


class Bench(unittest.TestCase):
    def test_performance(self):
        lines, code = run(double, "performance")
        self.assertEqual(code, 0)
        self.assertEqual(lines[0], {"shape": "mission", "ns": [250] * 4})
        self.assertEqual(lines[1], {
            "shape": "mission", "elements": 8, "max_abs": 0, "mean_abs": 0, "norm": 0, "bad": 0, "nan": 0, "inf": 0})
        self.assertEqual(len(lines), 3)

    def test_correctness(self):
        lines, _ = run(double, "correctness")
        self.assertEqual([(l["shape"], l["seed"], l["distribution"], l["deterministic"]) for l in lines],
                         [("mission", 0, "normal", True), ("mission", 1, "normal", True)])
        self.assertNotEqual(lines[0]["hash"], lines[1]["hash"])

    def test_wrong_output(self):
        def off(dims, seed, distribution):
            launch, want = double(dims, seed, distribution)
            return (lambda: [v + 0.5 for v in launch()]), want
        line = run(off, "correctness", abs=0.25)[0][0]
        self.assertEqual((line["bad"], line["max_abs"], line["mean_abs"]), (8, 0.5, 0.5))
        self.assertAlmostEqual(line["norm"], math.sqrt(8 * 0.25) / math.sqrt(sum(4 * i * i for i in range(8))))

    def test_not_finite(self):
        def odd(dims, seed, distribution):
            launch, want = double(dims, seed, distribution)
            return (lambda: [math.nan, math.inf] + launch()[2:]), want
        line = run(odd, "correctness")[0][0]
        self.assertEqual((line["nan"], line["inf"], line["bad"], line["max_abs"]), (1, 1, 2, 0))

    def test_zeros_for_an_expected_zero(self):
        line = run(lambda dims, seed, distribution: ((lambda: [0.0, 1.0]), [0.0, 0.0]), "correctness")[0][0]
        self.assertEqual(line["norm"], 1)

    def test_writes_in_place_once_then_skips(self):
        def lazy(dims, seed, distribution):
            launch, want = double(dims, seed, distribution)
            kept = []
            def once():
                if not kept:
                    kept.extend(launch())
                return kept
            return once, want
        lines, _ = run(lazy, "performance")
        self.assertEqual(lines[1]["nan"], 8)

    def test_not_deterministic(self):
        def drifts(dims, seed, distribution):
            launch, want = double(dims, seed, distribution)
            calls = []
            def next():
                calls.append(1)
                return [v + len(calls) * 1e-9 for v in launch()]
            return next, want
        self.assertFalse(run(drifts, "correctness", abs=1)[0][0]["deterministic"])

    def test_exception(self):
        def fails(dims, seed, distribution):
            raise RuntimeError("no kernel image")
        self.assertEqual(run(fails, "performance"), ([{"error": "RuntimeError: no kernel image"}], 1))

    def test_wrong_size(self):
        lines, code = run(lambda dims, seed, distribution: ((lambda: [1.0]), [1.0, 2.0]), "correctness")
        self.assertEqual((lines, code), ([{"error": "ValueError: the output has 1 elements, expected 2"}], 1))


unittest.main()
