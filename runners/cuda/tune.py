"""Compares a search with the exhaustive truth: tune.py TRUTH.jsonl SEARCH.jsonl.

Prints how far the candidate that the search chose is behind the best of the truth, and how much
measuring each took. The exit status is 1 if it is more than 1 % behind.
"""
import json
import math
import sys


def read(name):
    values, seconds, header, verdict = {}, 0.0, None, None
    for line in open(name):
        entry = json.loads(line)
        header = entry.get("search", header)
        verdict = entry.get("verdict", verdict)
        for kind in ("check", "round", "sanitize"):
            seconds += entry.get(kind, {}).get("seconds", 0)
        r = entry.get("round")
        if r and r.get("speedups"):
            logs = [math.log(x) for x in r["speedups"].values()]
            values.setdefault(r["id"], []).append(sum(logs) / len(logs))
    return {id: sum(v) / len(v) for id, v in values.items()}, seconds, verdict


truth, whole, _ = read(sys.argv[1])
found, seconds, verdict = read(sys.argv[2])
best = max(truth, key=truth.get)
chosen = verdict["id"] if verdict else max(found, key=found.get)
behind = 1 - math.exp(truth.get(chosen, 0) - truth[best])
print(f"  truth: {best}, {math.expm1(truth[best]):+.1%} over the incumbent, {len(truth)} candidates in {whole:.0f} s")
print(f"  search: {chosen}, {behind:.2%} behind the best, {seconds:.0f} s ({seconds / whole:.0%} of the truth), gate: {verdict['outcome'] if verdict else 'not asked'}")
sys.exit(behind > 0.01)
