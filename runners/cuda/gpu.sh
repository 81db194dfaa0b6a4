#!/usr/bin/env bash
# Everything that kernelgate claims of a GPU, in one script for a host with one (nvcc, ncu, git, and for rivals and spread
# python3 with torch, triton and cupy; no Go). Build bin/gpu with `make gpu` first, here or elsewhere.
#
# usage: runners/cuda/gpu.sh RESULTS [STEP...]    steps: doctor cheats stages rivals defers rebench accuracy spread
set -uo pipefail
cd "$(dirname "$0")/../.."
results=$(realpath -m "$1"); shift
steps=${*:-doctor cheats stages rivals defers rebench accuracy spread}
mkdir -p "$results"
export HOME=${HOME:-/root} PATH=$PATH:/usr/local/cuda/bin
gate=$PWD/bin/gpu/kernelgate
failed=0

# expect WORD NAME ARGS…: one check, whose verdict must begin with the word, kept under its name.
expect() {
  local want=$1 name=$2 start=$EPOCHREALTIME; shift 2
  "$gate" check "$@" --json --results "$results/$name.part" >"$results/$name.json" 2>"$results/$name.log"
  local took; took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}')
  local got; got=$(sed -E 's/.*"outcome":"([A-Z]+)"(,"reason":"([a-z-]+)")?.*/\1 \3/' "$results/$name.json" | head -c 60)
  echo "$name: $got in $took s (expected $want)"
  if [[ "$got" != "$want"* ]]; then failed=1; tail -3 "$results/$name.log"; fi
  mv "$results/$name.part"/*/* "$results/" 2>/dev/null
  for f in evidence.json verdict.json report.md build.log; do [ -e "$results/$f" ] && mv "$results/$f" "$results/$name.$f"; done
  rm -rf "$results/$name.part" "$results/$name.json"
}

# changed NAME FILE SED…: a branch on which a source of the FP8 attention kernel is edited.
changed() {
  git worktree add --quiet --detach "$results/tree-$1" HEAD && sed -i "$3" "$results/tree-$1/kernels/sdpa_fp8/$2"
  if git -C "$results/tree-$1" diff --quiet; then echo "$1: the edit changed nothing"; failed=1; fi
}

for step in $steps; do
  echo "== $step"
  case $step in
  doctor) "$gate" doctor ;;
  cheats) (cd runners/cuda && ../../bin/gpu/cuda.test -test.v -test.run "KernelsOnGPU|TensorMapOnGPU" -test.timeout 200s) | grep -E '^ *--- ' || failed=1 ;;
  stages)
    expect "PASS" stage1 sdpa_fp8 --baseline-variant stage0 --variant stage1 --policy h200
    expect "PASS" stage2 sdpa_fp8 --baseline-variant stage1 --variant stage2 --policy h200
    expect "DEFER too-slow" stage3a sdpa_fp8 --baseline-variant stage2 --variant stage3a --policy h200
    ;;
  rivals)
    # Their Python may lie anywhere; the sandbox shows what is named.
    KERNELGATE_READ=$(python3 -c 'import sys; print(sys.prefix + ":" + sys.base_prefix)') \
      "$gate" check sdpa_fp8 --baseline-variant stage0 --variant stage1 --policy h200 --rivals --results "$results/rivals" >"$results/rivals.txt" 2>"$results/rivals.log"
    sed -n '/^Rivals/,/^Resources/p' "$results/rivals.txt" | head -n -1
    ;;
  defers)
    # The historical bug: what was summed so far is not rescaled when a larger maximum appears.
    changed broken stage6_fp8.cu 's/rows.o\[i\]\[j\] \* a + mine/rows.o[i][j] + mine/'
    expect "DEFER correctness" broken --dir "$results/tree-broken" --base HEAD --policy h200 sdpa_fp8
    # Four times the blocks per SM leave a quarter of the registers.
    changed spills stage6_fp8.cu 's|512 / THREADS|2048 / THREADS|'
    expect "DEFER resources" spills --dir "$results/tree-spills" --base HEAD --policy h200 sdpa_fp8
    for tree in "$results"/tree-*; do git worktree remove --force "$tree"; done
    ;;
  rebench)
    # Cold (an empty build cache), then again: the second compiles nothing.
    export XDG_CACHE_HOME=$results/cache
    expect "PASS" cold sdpa_fp8 --baseline-variant stage1 --variant stage2 --policy h200
    expect "PASS" warm sdpa_fp8 --baseline-variant stage1 --variant stage2 --policy h200
    unset XDG_CACHE_HOME
    rm -rf "$results/cache"
    ;;
  accuracy) (cd runners/cuda && KERNELGATE_GPU_LONG=$results ../../bin/gpu/cuda.test -test.v -test.run AccuracyOnGPU -test.timeout "${ACCURACY_SECONDS:-900}s" 2>&1) | grep -v '^=== ' | head -40 || failed=1 ;;
  spread) python3 runners/cuda/spread.py "$results" || failed=1 ;;
  *) echo "no step is named $step"; exit 2 ;;
  esac
done
exit $failed
