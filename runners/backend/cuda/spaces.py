"""Compares `kernelgate tune` with brute force, side by side: spaces.py KERNELGATE RESULTS [SPACE...].

For each search space: the script of the space times all points, then a search with the default options looks for the best one,
then the script times the two winners in turns. The table in RESULTS/spaces.txt has the times of both until they had a winner, and
how fast the search's winner is relative to that of the script. Both start without anything compiled, and with their compilers
read before. The exit status is 1 if a part fails, if a search takes more than twice the time of its script, or if its winner is
more than 1 % slower.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CUDA, CPU = HERE + "/testdata/spaces", os.path.dirname(HERE) + "/cpu/testdata/spaces"
# The folder of the kernel, the script with its arguments, and the point that the manifest has.
SPACES = {
    "rmsnorm": (CUDA + "/rmsnorm", [CUDA + "/brute.py", "rmsnorm"], "BLOCK=64,ROWS=4,WIDTH=1"),
    "matmul": (CUDA + "/matmul", [CUDA + "/brute.py", "matmul"], "THREAD_N=4,TILE_K=16,TILE_M=64,TILE_N=32,UNROLL=1"),
    "softmax_triton": (CUDA + "/softmax_triton", [CUDA + "/brute_triton.py"], "BLOCK=256,STAGES=1,num_warps=2"),
    "stencil": (CPU + "/stencil", [CPU + "/brute.py"], "LANES=4,ROWS=1,UNROLL=1,VECTORS=1"),
}
WHOLE, WARM, BRUTE, TUNE, COMPARE = 235, 40, 45, 110, 20  # limits in seconds
deadline = time.monotonic() + WHOLE


class Failed(Exception):
    pass


def run(words, limit, log, cwd=None, env=None, ends=(0,)):
    """Runs a program with all that it starts, and returns its output and its seconds."""
    limit = min(limit, deadline - time.monotonic())
    if limit < 1:
        raise Failed(f"no time is left of {WHOLE} s")
    called = " ".join(map(os.path.basename, words[:2]))
    before = time.perf_counter()
    with open(log, "w") as errors:
        process = subprocess.Popen(words, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True, start_new_session=True)
        try:
            out, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            for sign in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, sign)
                    process.communicate(timeout=3)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    pass
            raise Failed(f"{called} took more than {limit:.0f} s (see {os.path.basename(log)})")
    seconds = time.perf_counter() - before
    if process.returncode not in ends:
        with open(log) as f:
            last = (f.read().strip().splitlines() or ["it says nothing"])[-1]
        raise Failed(f"{called} ends with {process.returncode}: {last[:200]}")
    return out, seconds


def answer(out):
    """The JSON in the last line of a script."""
    return json.loads(out.strip().splitlines()[-1])


def written(values):
    return ",".join(f"{name}={value}" for name, value in sorted(values.items()))


def winner(log):
    """Reads the point that a search ends with from its log: the best of its race."""
    with open(log) as f:
        lines = [json.loads(line) for line in f if line.endswith("\n")]
    space = lines[0]["search"]["space"]
    found = space["incumbent"]
    ended = False
    for line in lines:
        found = (line.get("end") or {}).get("best") or found
        ended = ended or "end" in line
    if not ended:
        raise Failed("the search has no end in its log")
    variant, *words = found.split(",")
    values = dict(space["own"].get(variant, {}))
    values.update((name, int(value)) for name, value in (word.split("=") for word in words))
    if "autotune" in values:
        words = space["configurations"][values.pop("autotune")].split(", ")
        chosen = dict(word.split("=") for word in words if "=" in word)
        values.update((name, value) for name, value in chosen.items() if name not in ("num_stages", "num_ctas", "maxnreg"))
    return written(values)


def repository(folder, name, source):
    """Makes a repository with one kernel and the policy of the spaces."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, f"{folder}/kernels/{name}", ignore=shutil.ignore_patterns("__pycache__"))
    os.makedirs(folder + "/.github")
    shutil.copy(CUDA + "/policy.yaml", folder + "/.github/kernelgate.yaml")
    git = ["git", "-C", folder, "-c", "user.name=spaces.py", "-c", "user.email=spaces.py@example.com"]
    for words in (["init", "--quiet", "-b", "main"], ["add", "--all"], ["commit", "--quiet", "-m", "base"]):
        subprocess.run(git + words, check=True)


def measure(gate, results, name, env):
    """Returns one row of the table."""
    source, script, default = SPACES[name]
    script = [sys.executable, *script]
    here = f"{results}/spaces-{name}"
    shutil.rmtree(here, ignore_errors=True)
    os.makedirs(here)
    repository(here + "/repository", name, source)
    # The programs and libraries of the script are in the page cache, as those of the search are.
    run([*script, "--compare", default, default, "--launches", "1"], WARM, here + "/warm.log")
    out, brute_seconds = run(script, BRUTE, here + "/brute.log")
    with open(here + "/brute.txt", "w") as f:
        f.write(out)
    brute = answer(out)
    best = written(brute["best"])
    words = [gate, "tune", name, "--no-gate", "--results", here + "/results"]
    out, tune_seconds = run(words, TUNE, here + "/tune.log", cwd=here + "/repository", env=env, ends=(0, 1))
    with open(here + "/tune.txt", "w") as f:
        f.write(out)
    logs = [f"{folder}/{file}" for folder, _, files in os.walk(here + "/results") for file in files if file == "search.jsonl"]
    if len(logs) != 1:
        raise Failed(f"the search has left {len(logs)} logs")
    found = winner(logs[0])
    compared = {"ratio": 1.0}
    if found != best:
        out, _ = run([*script, "--compare", found, best], COMPARE, here + "/compare.log")
        compared = answer(out)
        with open(here + "/compare.txt", "w") as f:
            f.write(out)
    return {
        "space": name, "points": brute["points"], "brute_seconds": brute_seconds, "compile_seconds": brute["compile_seconds"],
        "tune_seconds": tune_seconds, "time": tune_seconds / brute_seconds, "speed": compared["ratio"], "ratios": compared.get("ratios"),
        "brute": best, "tune": found, "brute_gain": brute["times"][default] / brute["times"][best],
    }


def main():
    gate, results, *names = sys.argv[1:]
    gate, results = os.path.abspath(gate), os.path.abspath(results)
    table = [["space", "points", "brute s (compile)", "tune s", "tune/brute", "speed of tune's", "gain of brute's", "winners: tune, brute"]]
    bad = 0
    rows = []
    # No point is compiled, but the compilers are in the page cache, kernelgate knows their digests, and it has its own kernels.
    env = {**os.environ, "XDG_CACHE_HOME": results + "/spaces-cache"}
    shutil.rmtree(env["XDG_CACHE_HOME"], ignore_errors=True)
    os.makedirs(env["XDG_CACHE_HOME"])
    try:
        run([gate, "doctor"], WARM, results + "/spaces-doctor.log", env=env, ends=range(4))
        run([gate, "runner", "--self-test", "--labels", "gpu", "--state", results + "/spaces-state"], WARM, results + "/spaces-test.log", env=env, ends=range(4))
    except Failed as e:
        print(e)
    for name in names or SPACES:
        try:
            row = measure(gate, results, name, env)
        except Exception as e:  # the other spaces have their turn
            bad += 1
            table.append([name, "failed: " + (str(e) or type(e).__name__)])
            continue
        rows.append(row)
        bad += row["time"] > 2 or row["speed"] < 0.99
        table.append([
            name, str(row["points"]), f"{row['brute_seconds']:.1f} ({row['compile_seconds']:.1f})", f"{row['tune_seconds']:.1f}",
            f"{row['time']:.2f}", f"{row['speed']:.4f}", f"{row['brute_gain']:.2f}x",
            row["tune"] + (" (both)" if row["tune"] == row["brute"] else ", " + row["brute"]),
        ])
    for folder in (env["XDG_CACHE_HOME"], results + "/spaces-state"):
        shutil.rmtree(folder, ignore_errors=True)
    widths = [max(len(row[i]) for row in table if len(row) == len(table[0])) for i in range(len(table[0]) - 1)]
    text = "".join("  ".join([cell.ljust(width) for cell, width in zip(row, widths + [0])]).rstrip() + "\n" for row in table)
    with open(results + "/spaces.txt", "w") as f:
        f.write(text)
    with open(results + "/spaces.json", "w") as f:
        json.dump(rows, f, indent=1)
    print(text, end="")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
