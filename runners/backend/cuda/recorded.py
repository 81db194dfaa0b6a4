"""Checks what recorded inputs of a real model show that random inputs do not.

usage: recorded.py KERNELGATE RESULTS

The small transformer of weights.py runs one step, and the inputs of its last norm are recorded. A norm that clamps where only
the model's activations go is right on normal inputs, and deferred on the recording. A norm that does less work where the mean
is that of an activation is faster on the recording alone: it passes if the policy's goal is about recordings, and only then.
"""
import json
import pathlib
import shutil
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parents[2] / "bot" / "mcp" / "python" / "src"))

# The norm in use refines its scale, which takes time on every input: it never finds a mean above HIGH.
HIGH = "1e9"
SCALE = "    scale = 1.0 / tl.sqrt(tl.sum(v * v, 0) / columns + 1e-6)\n"
REFINED = f"""    mean = tl.sum(v * v, 0) / columns + 1e-6
    scale = 1.0 / tl.sqrt(mean)
    for _ in range(tl.where(tl.sum(v, 0) / columns > {HIGH}, 1, 64)):
        scale = scale * (1.5 - 0.5 * mean * scale * scale)
"""
CLAMPS = ("v * scale", "tl.minimum(v, 6.0) * scale")
KNOWS = (HIGH, "0.3")
POLICY = """version: 1
gates:
  correctness: {shapes: all, seeds: [0, 1], distributions: [%s], norm_error: "<= 1%%"}
  performance: {target: {shapes: [decode], %s}, rounds: {min: 6, max: 12}}
rules: [{name: default}]
"""
BOTH, ANY, GAIN = "normal, recorded", 'speedup: ">= -10%"', 'speedup: ">= +5%"'
# Each case: the edit of the norm, the distributions, the goal, and the verdict.
CASES = {
    "clamps, on normal inputs": (CLAMPS, "normal", ANY, ("PASS", None)),
    "clamps, on the recording": (CLAMPS, BOTH, ANY, ("DEFER", "correctness")),
    "knows activations, a goal on random inputs": (KNOWS, BOTH, GAIN, ("DEFER", "too-slow")),
    "knows activations, a goal on recordings": (KNOWS, BOTH, "inputs: recorded, " + GAIN, ("PASS", None)),
}


def record(file):
    """Stores the inputs of the last norm of a step."""
    import kernelgate
    import weights

    model = weights.Model()
    with kernelgate.record(str(file), of=(weights, "norm"), names=["x", "g", None], call=sum(weights.launches().values())):
        model.step(weights.USED)


def edited(file, before, after):
    text = file.read_text()
    if before not in text:
        sys.exit(f"{file} has no {before!r}")
    file.write_text(text.replace(before, after))


def main(gate, results, store=record, arguments=()):
    repo, rules = results / "recorded", results / "recorded-policy.yaml"
    shutil.rmtree(repo, ignore_errors=True)
    shutil.copytree(here / "testdata" / "weights", repo / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    kernel = repo / "kernels" / "norm"
    edited(kernel / "norm.py", SCALE, REFINED)
    (kernel / "inputs").mkdir()
    store(kernel / "inputs" / "decode.safetensors")
    lines = subprocess.run([gate, "record", "inputs/decode.safetensors", "--shape", "decode"], cwd=kernel, check=True, capture_output=True, text=True).stdout
    with open(kernel / "kernel.yaml", "a") as f:
        f.write("\n" + lines)
    git = ["git", "-C", str(repo), "-c", "user.name=recorded.py", "-c", "user.email=recorded.py@example.com"]

    def commit(branch):
        subprocess.run([*git, "add", "--all"], check=True)
        subprocess.run([*git, "commit", "--quiet", "-m", branch], check=True)

    subprocess.run(["git", "init", "--quiet", "-b", "main", str(repo)], check=True)
    commit("base")
    failed = False
    for name, (edit, kinds, goal, want) in CASES.items():
        subprocess.run([*git, "checkout", "--quiet", "-B", "change", "main"], check=True)
        edited(kernel / "norm.py", *edit)
        commit("change")
        rules.write_text(POLICY % (kinds, goal))
        out = results / ("recorded-" + "".join(c if c.isalpha() else "-" for c in name))
        shutil.rmtree(out, ignore_errors=True)
        subprocess.run([gate, "check", "norm", "--base", "main", "--policy", str(rules), "--results", str(out), *arguments], cwd=repo, stdout=subprocess.DEVNULL)
        verdict = json.loads(next(out.glob("*/verdict.json")).read_text())
        got = (verdict["outcome"], verdict.get("reason"))
        failed = failed or got != want
        print(f"{name}: {got[0]}{f' ({got[1]})' if got[1] else ''}: {verdict['summary']}" + ("" if got == want else f", BUT EXPECTED {want}"))
    return failed


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
