#!/usr/bin/env bash
# Looks for bad accesses (memcheck) and races (racecheck) in every variant, at small shapes of uneven size: the
# project's own worker launches them under compute-sanitizer. For a host with a GPU, nvcc and python3; build
# bin/gpu/kernelgate with `make gpu` first, or name the program in KERNELGATE.
#
# usage: kernels/sdpa_fp8/sanitize.sh [VARIANT...]    prints where it ran and one line a variant; fails on an error, a
# race or a warning. evidence/sanitize.txt is what it printed for all of them.
set -uo pipefail
cd "$(dirname "$0")"
export PATH=$PATH:/usr/local/cuda/bin
gate=$(realpath "${KERNELGATE:-../../bin/gpu/kernelgate}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for program in nvcc compute-sanitizer nvidia-smi python3 "$gate"; do
  command -v "$program" >/dev/null || { echo "$program is missing: install the CUDA toolkit, or run make gpu"; exit 2; }
done
gpu=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)

# block VARIANT: its part of kernel.yaml, in one line.
block() { awk -v name="  $1:" '/^[a-z]/ {inside = 0} /^  [a-z0-9_]+:/ {inside = index($0, name) == 1} inside' kernel.yaml | tr '\n' ' '; }

# request VARIANT TOGGLES S D CAUSAL INPUTS: what the worker is to launch. Toggles are NAME: VALUE, with commas.
request() {
  python3 - "$@" "$work/$1.cubin" <<'PYTHON'
import json, sys
variant, toggles, s, d, causal, inputs, image = sys.argv[1:]
dims = [{"name": n, "value": int(v)} for n, v in (("B", 1), ("H", 2), ("S", s), ("D", d), ("causal", causal))]
values = dict((n.strip(), int(v)) for n, v in (t.split(":") for t in toggles.split(",") if t))
print(json.dumps({"task": "launch", "manifest": open("kernel.yaml").read(), "timeout": 120 * 10**9, "launches": 1,
                  "candidate": {"image": image, "variant": variant, "toggles": values},
                  "cases": [{"shape": {"name": "small", "dims": dims}, "seed": 1, "distribution": inputs, "file": ""}]}))
PYTHON
}

# check VARIANT: builds it, launches it under both tools, and says what they found.
check() {
  local text toggles source arch=$gpu defines='' shapes=("70 64 0 normal" "600 64 0 normal" "200 64 0 large") found='' bad=0
  text=$(block "$1")
  source=$(sed -nE 's/.*source: ([a-z0-9_]+\.cu).*/\1/p' <<<"$text")
  toggles=$(sed -nE 's/.*toggles: \{([^}]*)\}.*/\1/p' <<<"$text")
  if [ -z "$source" ]; then echo "$1: kernel.yaml has no such variant"; return 1; fi
  if grep -qE "arch: \[[^]]*${gpu}a" <<<"$text"; then arch=${gpu}a; fi
  if ! grep -q "limits:" <<<"$text"; then shapes+=("150 64 1 normal" "130 128 1 normal" "130 128 1 large"); fi
  defines=$(tr ',' '\n' <<<"$toggles" | sed -nE 's/ *([A-Z_]+): *([0-9]+).*/-D\1=\2/p')
  # shellcheck disable=SC2086
  if ! nvcc -cubin -O3 -std=c++17 -lineinfo -gencode="arch=compute_${arch#sm_},code=$arch" $defines "$source" -o "$work/$1.cubin" >"$work/$1.log" 2>&1; then
    echo "$1: does not compile: $(grep -m1 error "$work/$1.log")"; return 1
  fi
  for tool in memcheck racecheck; do
    # The driver is asked for parameters until it says that there are no more: no fault of the kernel.
    local clean='ERROR SUMMARY: 0 errors' quiet='--report-api-errors no'
    if [ $tool = racecheck ]; then clean='RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)' quiet=''; fi
    for shape in "${shapes[@]}"; do
      # shellcheck disable=SC2086
      request "$1" "$toggles" $shape >"$work/$1.json"
      if compute-sanitizer --tool $tool --error-exitcode 9 $quiet "$gate" gpu-worker "$work/$1.json" >"$work/$1.log" 2>&1 && grep -qF "$clean" "$work/$1.log"; then continue; fi
      bad=1
      found+=" [$tool, S D causal inputs = $shape: $(grep -m1 -E '(Error|Warning|Invalid|Race|Program hit|kernelgate:).*' "$work/$1.log" | sed 's/^=* *//' | cut -c1-160) … $(tail -1 "$work/$1.log" | sed 's/^=* *//')]"
    done
  done
  if [ $bad = 0 ]; then found=" memcheck clean, racecheck clean at ${#shapes[@]} shapes"; fi
  echo "$1 ($arch):$found"
  return $bad
}

version() { "$1" --version | grep -m1 -oE '[0-9]+\.[0-9]+\.[0-9.]+'; }
changes=$(git status --porcelain --untracked-files=no . | wc -l)
echo "$(date -u +%FT%TZ), commit $(git rev-parse HEAD) with $changes changed files here, $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)," \
  "nvcc $(version nvcc), compute-sanitizer $(version compute-sanitizer)"

variants=("$@")
if [ $# = 0 ]; then mapfile -t variants < <(awk '/^variants:/ {inside = 1; next} /^[a-z]/ {inside = 0} inside && /^  [a-z0-9_]+:/ {sub(/:.*/, ""); print $1}' kernel.yaml); fi
for variant in "${variants[@]}"; do
  check "$variant" >"$work/$variant.line" &
  echo $! >"$work/$variant.pid"
done
failed=0
for variant in "${variants[@]}"; do
  wait "$(cat "$work/$variant.pid")" || failed=1
  cat "$work/$variant.line"
done
exit $failed
