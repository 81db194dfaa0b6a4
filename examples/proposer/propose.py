"""A proposer for kernelgate tune: changes one toggle of the best candidate at a time.

Each line of standard input is the state of the search. The answer is one line with candidates; an
empty list ends the search.
"""
import json
import sys

for line in sys.stdin:
    state = json.loads(line)
    tried = {(t["variant"], frozenset(t.get("toggles", {}).items())) for t in state["tried"]}
    raced = [t for t in state["tried"] if t.get("speedup") is not None]
    best = max(raced, key=lambda t: t["speedup"])
    candidates = []
    for toggle in state["space"]["toggles"]:
        for value in toggle["values"]:
            toggles = {**best.get("toggles", {}), toggle["name"]: value}
            if (best["variant"], frozenset(toggles.items())) not in tried:
                candidates.append({"variant": best["variant"], "toggles": toggles})
    print(json.dumps({"candidates": candidates[: state["candidates_left"]]}), flush=True)
