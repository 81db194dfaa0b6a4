"""Checks that the weighted verdict agrees with the measured change of a whole step.

usage: weights.py KERNELGATE RESULTS

A small transformer with random weights runs one step: a prompt and then some tokens. torch's profiler traces it,
kernelgate weights writes the launches of its norm into the manifest, and kernelgate check compares three variants
of the norm with the one in use. The same variants are then put into the model, and the steps of both are timed in
turn. In the step, the kernel before has just written the inputs of the norm, so the shapes whose arguments fit into the
L2 cache are written down as warm, and the verdict has a sum with these cold and one with these warm. A launch in the step
is between the two, so the measured change must overlap with the interval that reaches over both.
"""
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import sys

import torch

here = pathlib.Path(__file__).resolve().parent / "testdata" / "weights"
sys.path.insert(0, str(here / "norm"))
import norm as source  # noqa: E402

WIDTH, PROMPT, BATCH, LAYERS, TOKENS = 2048, 4096, 8, 4, 3
USED, CANDIDATES = 32, (4, 8, 1)
POLICY = """version: 1
gates:
  correctness: {shapes: all, seeds: [0], distributions: [normal], norm_error: "<= 1%"}
  performance: {target: {weighted: ">= +1%"}, rounds: {min: 6, max: 20}}
rules: [{name: default}]
"""


@torch.library.custom_op("weights::norm", mutates_args=())
def norm(x: torch.Tensor, g: torch.Tensor, warps: int) -> torch.Tensor:
    y = torch.empty_like(x)
    source.norm[(x.shape[0],)](x, g, y, x.shape[1], BLOCK=x.shape[1], num_warps=warps)
    return y


class Model:
    def __init__(self):
        make = lambda *shape: torch.randn(*shape, device="cuda") / shape[0] ** 0.5  # noqa: E731
        self.layers = [(torch.ones(WIDTH, device="cuda"), make(WIDTH, WIDTH), torch.ones(WIDTH, device="cuda"), make(WIDTH, WIDTH)) for _ in range(LAYERS)]
        self.last = torch.ones(WIDTH, device="cuda")
        self.prompt, self.token = make(PROMPT, WIDTH), make(BATCH, WIDTH)

    def forward(self, x, warps):
        for before, mix, between, out in self.layers:
            x = x + torch.softmax(norm(x, before, warps) @ mix, dim=1)
            x = x + torch.relu(norm(x, between, warps) @ out)
        return norm(x, self.last, warps)

    def step(self, warps):
        self.forward(self.prompt, warps)
        x = self.token
        for _ in range(TOKENS):
            x = self.forward(x, warps)


def launches():
    """What the trace must show."""
    each = 2 * LAYERS + 1
    return {"prompt": each, "decode": each * TOKENS}


def trace(model, file):
    schedule = torch.profiler.schedule(wait=1, warmup=2, active=10)
    with torch.profiler.profile(record_shapes=True, schedule=schedule) as prof:
        for _ in range(13):
            model.step(USED)
            torch.cuda.synchronize()
            prof.step()
    prof.export_chrome_trace(str(file))


def timed(model, warps):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    model.step(warps)
    end.record()
    end.synchronize()
    return 1e3 * start.elapsed_time(end)


def measured(model, warps, pairs=200):
    """The change of a whole step in microseconds, with a 99 % interval."""
    for _ in range(20):
        timed(model, USED), timed(model, warps)
    changes = []
    for i in range(pairs):
        if i % 2:
            was, now = timed(model, USED), timed(model, warps)
        else:
            now, was = timed(model, warps), timed(model, USED)
        changes.append(was - now)
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(changes, k=pairs)) for _ in range(2000))
    return statistics.median(changes), medians[9], medians[-10]


def main(gate, results):
    repo = results / "weights"
    shutil.rmtree(repo, ignore_errors=True)
    shutil.copytree(here, repo / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    (repo / ".github").mkdir()
    (repo / ".github" / "kernelgate.yaml").write_text(POLICY)
    git = ["git", "-C", str(repo), "-c", "user.name=weights.py", "-c", "user.email=weights.py@example.com"]
    subprocess.run(["git", "init", "--quiet", "-b", "main", str(repo)], check=True)
    model, file = Model(), results / "weights-trace.json.gz"
    for warps in (USED, *CANDIDATES):
        model.step(warps)
    torch.cuda.synchronize()
    trace(model, file)
    subprocess.run([gate, "weights", str(file), "--dir", str(repo), "--kernel", "norm", "--write"], check=True)
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    warm = [shape for shape, rows in {"decode": BATCH, "prompt": PROMPT}.items() if 2 * 4 * rows * WIDTH < cache]
    manifest = repo / "kernels" / "norm" / "kernel.yaml"
    manifest.write_text(manifest.read_text().replace("  tool: torch\n", f"  warm: [{', '.join(warm)}]\n  tool: torch\n"))
    print(f"warm, of an L2 cache of {cache >> 20} MiB: {', '.join(warm)}")
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "base"], check=True)
    failed = False
    for warps in CANDIDATES:
        out = results / f"weights-{warps}"
        shutil.rmtree(out, ignore_errors=True)
        subprocess.run([gate, "check", "norm", "--baseline-variant", "default", "--variant", f"default,WARPS={warps}", "--results", str(out)], cwd=repo, stdout=subprocess.DEVNULL)
        verdict = json.loads(next(out.glob("*/verdict.json")).read_text())
        evidence = json.loads(next(out.glob("*/evidence.json")).read_text())
        if evidence["weights"]["launches"] != launches() or evidence["weights"]["warm"] != warm:
            print(f"the evidence has {evidence['weights']}, and the model makes {launches()}, of which {warm} are warm")
            failed = True
        weighted = verdict.get("weighted")
        if weighted is None:
            print(f"WARPS={warps}: {verdict['outcome']}, without a weighted speedup: {verdict['summary']}")
            failed = True
            continue
        if warm and "weighted_warm" not in verdict:
            print(f"WARPS={warps}: {verdict['outcome']}, without a sum of warm launches: {verdict['summary']}")
            failed = True
            continue
        sums = [weighted["saved_us"]] + ([verdict["weighted_warm"]["saved_us"]] if warm else [])
        change, low, high = measured(model, warps)
        agree = low <= max(s["upper"] for s in sums) and min(s["lower"] for s in sums) <= high
        said = " and ".join(f"{s['value']:.1f} us [{s['lower']:.1f}, {s['upper']:.1f}]" for s in sums)
        failed = failed or not agree
        print(f"WARPS={warps}: {verdict['outcome']}, saves {said} per step; measured {change:.1f} us [{low:.1f}, {high:.1f}]: {'agree' if agree else 'DIFFER'}")
    return failed


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
