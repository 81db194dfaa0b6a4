"""Compares a search with the exhaustive truth: tune.py TRUTH.jsonl SEARCH.jsonl.

Prints how far the winner of the race is behind the best of the truth, and how much measuring each
took until then. The exit status is 1 if it is more than 1 % behind, or took more than a third of the
time that the truth took.
"""
import json
import math
import sys


def read(name):
    """Returns the mean log speedup of each candidate within the policy's guards, the seconds and the winner before the gate was asked, and its verdicts."""
    values, shapes, guards, seconds, winner, verdicts = {}, {}, {}, 0.0, None, []
    for line in open(name):
        entry = json.loads(line)
        guards = entry.get("search", {}).get("guards", guards)
        if "verdict" in entry:
            verdicts.append(entry["verdict"]["outcome"])
        if "attempt" in entry:
            winner = winner or entry["attempt"]["id"]
        if winner:
            continue
        for kind in ("check", "round", "sanitize"):
            seconds += entry.get(kind, {}).get("seconds", 0)
        r = entry.get("round")
        if r and r.get("speedups"):
            logs = [math.log(x) for x in r["speedups"].values()]
            values.setdefault(r["id"], []).append(sum(logs) / len(logs))
            for shape, ratio in r["speedups"].items():
                shapes.setdefault((r["id"], shape), []).append(math.log(ratio))
    mean = lambda v: sum(v) / len(v)
    within = lambda id: all(mean(shapes[id, shape]) >= math.log(limit) for shape, limit in guards.items())
    return {id: mean(v) for id, v in values.items() if within(id)}, seconds, winner, verdicts


truth, whole, _, _ = read(sys.argv[1])
found, seconds, winner, verdicts = read(sys.argv[2])
truth["the incumbent"] = 0.0
best, bound = max(truth, key=truth.get), 0.01
winner = winner or "the incumbent"
behind = 1 - math.exp(truth[winner] - truth[best]) if winner in truth else math.inf
print(f"  truth: {best}, {math.expm1(truth[best]):+.1%} over the incumbent, {len(truth) - 1} candidates within the guards, {whole:.0f} s")
print(f"  search: {winner}, {behind:.2%} behind the best, {seconds:.0f} s ({seconds / whole:.0%} of the truth), gate: {', '.join(verdicts) or 'not asked'}")
sys.exit(behind > bound or seconds > whole / 3)
