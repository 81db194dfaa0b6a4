#!/usr/bin/env bash
# Checks everything that kernelgate claims about GPUs, on a host with a GPU. It needs nvcc, ncu and
# git and, for rivals, spaces and spread, python3 with torch, triton and cupy; it needs no Go. Build bin/gpu with `make gpu` first, here or elsewhere.
#
# usage: runners/backend/cuda/gpu.sh RESULTS [STEP...]    steps: doctor selftest reference cheats hacks lone inputs warm recorded pyref steps public triton tritonpkg examples newcomer builds sanitize stages pulls candidates sweep choose showcase everywhere toggles defers rebench tune speed huge spaces energy accuracy spread why pairs weights cost
# ONLY='stage6_.*' leaves out the checks of other names.
# The step pairs explains pairs of kernels that this repository does not have: PAIRS names their folder, see docs/why.md.
# The step cost reads a report that the step stages has left, in several ways, and says how long each takes.
set -uo pipefail
cd "$(dirname "$0")/../../.."
results=$(realpath -m "$1"); shift
steps=${*:-doctor selftest reference cheats hacks lone inputs warm recorded pyref steps public triton tritonpkg examples newcomer builds sanitize stages pulls candidates sweep choose showcase everywhere toggles defers rebench tune speed huge spaces energy accuracy spread why weights}
mkdir -p "$results"
export HOME=${HOME:-/root} PATH=$PATH:/usr/local/cuda/bin
gate=$PWD/bin/gpu/kernelgate
failed=0

# expect WORD NAME ARGS…: runs one check. Its verdict must begin with the word; its results are kept
# under the name.
expect() {
  local want=$1 name=$2 start=$EPOCHREALTIME f; shift 2
  if ! [[ $name =~ ^(${ONLY:-.*})$ ]]; then return; fi
  "$gate" check "$@" --json --results "$results/$name.part" >"$results/$name.json" 2>"$results/$name.log"
  local took; took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}')
  local got; got=$(sed -E 's/.*"outcome":"([A-Z]+)"(,"reason":"([a-z-]+)")?.*/\1 \3/' "$results/$name.json" | head -c 60)
  echo "$name: $got in $took s (expected $want)"
  for f in evidence.json verdict.json report.md build.log; do mv "$results/$name.part"/*/"$f" "$results/$name.$f" 2>/dev/null; done
  mv "$results/$name.part"/*/*.ncu-rep "$results/$name.ncu-rep" 2>/dev/null
  rm -rf "$results/$name.part" "$results/$name.json"
  if [[ "$got" != "$want"* ]]; then failed=1; tail -3 "$results/$name.log"; return 1; fi
}

# untimed POLICY VARIANT…: runs checks that time nothing, so all variants run at once. The policy is
# everywhere (every shape, seed and distribution) or sanitize.
untimed() {
  local policy=$1 variant base child children=(); shift
  for variant; do
    base=stage5
    if [ "$variant" = stage5 ]; then base=stage4; fi
    expect "PASS" "${policy}_$variant" sdpa_fp8 --baseline-variant $base --variant "$variant" --policy "kernels/sdpa_fp8/$policy.yaml" &
    children+=($!)
  done
  for child in "${children[@]}"; do wait "$child" || failed=1; done
}

# changed NAME FILE SED…: makes a branch with an edited source of the FP8 attention kernel.
changed() {
  git worktree add --quiet --detach "$results/tree-$1" HEAD && sed -i "$3" "$results/tree-$1/kernels/sdpa_fp8/$2"
  if git -C "$results/tree-$1" diff --quiet; then echo "$1: the edit changed nothing"; failed=1; fi
}

# Kernels of common kinds, each with the toggles of its candidate.
speed='layer_norm WARPS=8
rotary_triton WARPS=1
rms_norm BLOCK=256,WIDTH=8
rope BLOCK=128
histogram BLOCK=256
walsh BLOCK=256
swiglu BLOCK=1024
conv1d BLOCK=128'

# The stages of the FP8 attention kernel: its baseline, which is the last stage that paid off, and
# the expected verdict.
stages='stage1 stage0 PASS
stage2 stage1 PASS
stage3a stage2 DEFER too-slow
stage3a_xor stage2 DEFER regression
stage3b stage2 PASS
stage4 stage3b DEFER
stage5 stage4 DEFER
stage6_fp8 stage5 PASS
stage6_fp8_short stage6_fp8 DEFER regression
stage6_split stage6_fp8 DEFER regression
stage6_wgmma stage6_split DEFER regression
stage7 stage6_wgmma DEFER regression'

# pull STAGE BEFORE: makes a branch in a separate repository whose kernel is only that stage, with
# its source and its launch, on top of the branch of the stage before it.
pull() {
  local repo=$results/pulls kernel=kernels/sdpa_fp8 keep=$1
  local to=$repo/$kernel git=(git -C "$repo" -c user.name=gpu.sh -c user.email=gpu.sh@example.com)
  if [ "$1" = stage6_fp8_short ]; then keep=stage6_fp8; fi # the same source, in other numbers
  if ! [ -d "$repo/.git" ]; then git init --quiet "$repo" && mkdir -p "$to"; else "${git[@]}" checkout --quiet "$2"; fi
  "${git[@]}" checkout --quiet -b "$1" && rm -f "$to"/*.cu && cp "$kernel"/*.cuh "$kernel"/reference.cu "$to" && cp "$kernel/$(source_of "$1")" "$to"
  # Only the variants of the stage, and the stage as the default. The problem is that of the first
  # stage, which all stages solve.
  awk -v keep=" $1 $keep " '
    /^  [a-z0-9_]+: \{B: .*(D: 128,|causal: 1\})/ {next}
    {sub(/D: 64\|128, causal: 0\|1/, "D: 64, causal: 0")}
    /^variants:/ {inside = 1; print; next}
    inside && /^[^ ]/ {exit}
    inside && /^  [^ ]/ {name = $1; sub(":.*", "", name); on = index(keep, " " name " ") > 0}
    !inside || on' "$kernel/kernel.yaml" >"$to/kernel.yaml"
  echo "default_variant: $1" >>"$to/kernel.yaml"
  "${git[@]}" add --all && "${git[@]}" commit --quiet -m "$1"
}

# tuned NAME DIR KERNEL ARGS…: the exhaustive truth of a space, a search in it, and every strategy on the recorded truth.
tuned() {
  local name=$1 dir=$2 kernel=$3 proposer log; shift 3
  if ! [[ $name =~ ^(${ONLY:-.*})$ ]]; then return; fi
  echo "tune $name"
  "$gate" tune "$kernel" --dir "$dir" "$@" --exhaustive --max-rounds "${TUNE_ROUNDS:-8}" --results "$results/tune-$name/truth" >"$results/tune-$name-truth.txt" 2>"$results/tune-$name-truth.log" || { failed=1; tail -3 "$results/tune-$name-truth.log"; return 1; }
  "$gate" tune "$kernel" --dir "$dir" "$@" --budget 2m --seed 1 --results "$results/tune-$name/search" >"$results/tune-$name.txt" 2>"$results/tune-$name.log"
  if [ $? -gt 1 ]; then failed=1; tail -3 "$results/tune-$name.log"; return 1; fi
  log=$(ls "$results/tune-$name"/truth/tune-2*/search.jsonl)
  cp "$log" "$results/$name-truth.jsonl" && cp "$results/tune-$name"/search/tune-2*/search.jsonl "$results/$name-search.jsonl"
  python3 runners/backend/cuda/tune.py "$log" "$results/tune-$name"/search/tune-2*/search.jsonl | tee -a "$results/tune.txt" || failed=1
  for proposer in local genetic random grid; do
    "$gate" tune --replay "$log" --proposer $proposer --seed 1 | sed -n "s/^The search would/  $proposer would/p" | tee -a "$results/tune.txt"
  done
}

# source_of VARIANT: prints the source file of the variant.
source_of() { awk -v name="  $1:" 'index($0, name) == 1 {on = 1} on && match($0, /source: [a-z0-9_]+\.cu/) {print substr($0, RSTART + 8, RLENGTH - 8); exit}' kernels/sdpa_fp8/kernel.yaml; }

for step in $steps; do
  echo "== $step"
  case $step in
  doctor) "$gate" doctor ;;
  selftest)
    # As a runner does it: four times, so that the last run knows the usual time on this host. Then,
    # for information, while a different check measures on the same GPU: usually that fails.
    rm -rf "$results/selftest"
    for _ in 1 2 3 4; do "$gate" runner --self-test --labels gpu --state "$results/selftest" || failed=1; done
    "$gate" check sdpa_fp8 --baseline-variant stage0 --variant stage1 --policy h200 --json --results "$results/selftest/beside" >/dev/null 2>&1 &
    beside=$!
    sleep 20
    echo "while another check measures:"
    "$gate" runner --self-test --labels gpu --state "$results/selftest"
    kill "$beside" 2>/dev/null; wait "$beside" 2>/dev/null
    ;;
  reference) (cd runners/backend/cuda/sdpatest && ../../../../bin/gpu/sdpa_fp8.test -test.v -test.run ReferenceOnGPU) | grep -vE '^ *===' || failed=1 ;;
  cheats) (cd runners/backend/cuda && ../../../bin/gpu/cuda.test -test.v -test.run "KernelsOnGPU|AttacksOnGPU|NextOnGPU|TensorMapOnGPU" -test.timeout 500s) | grep -E '^ *--- ' || failed=1 ;;
  # Public classes of reward hacks, and honest kernels.
  hacks) (cd runners/backend/cuda && KERNELGATE_GPU_EVIDENCE=$results/hacks ../../../bin/gpu/cuda.test -test.v -test.run "HacksOnGPU/(${ONLY:-.*})" -test.timeout 300s) | grep -vE '^ *===' || failed=1 ;;
  # Launches of a batch that share work, and an honest kernel for comparison.
  lone) (cd runners/backend/cuda && KERNELGATE_GPU_EVIDENCE=$results/lone ../../../bin/gpu/cuda.test -test.v -test.run "(SharedWork|UnearnedGains)OnGPU/(${ONLY:-.*})" -test.timeout 500s) | grep -vE '^ *===' || failed=1 ;;
  warm) (cd runners/backend/cuda && KERNELGATE_GPU_EVIDENCE=$results/warm ../../../bin/gpu/cuda.test -test.v -test.run WarmOnGPU -test.timeout 300s) | grep -vE '^ *===' || failed=1 ;;
  # Recorded inputs: made up ones, and those of the model of the step weights.
  recorded)
    (cd runners/backend/cuda && ../../../bin/gpu/cuda.test -test.v -test.run RecordedOnGPU -test.timeout 300s) | grep -vE '^ *===' || failed=1
    python3 runners/backend/cuda/recorded.py "$gate" "$results" | tee "$results/recorded.txt"; [ "${PIPESTATUS[0]}" = 0 ] || failed=1 ;;
  inputs) (cd runners/backend/cuda && KERNELGATE_GPU_EVIDENCE=$results/inputs ../../../bin/gpu/cuda.test -test.v -test.run GatherOnGPU -test.timeout 500s) | grep -vE '^ *===' || failed=1 ;;
  # References in Python, on the host and on the GPU.
  pyref) (cd runners/backend/cuda && KERNELGATE_GPU_EVIDENCE=$results/pyref ../../../bin/gpu/cuda.test -test.v -test.run PythonReferenceOnGPU -test.timeout 500s) | grep -vE '^ *===' || failed=1 ;;
  triton) (cd runners/backend/cuda && KERNELGATE_GPU_LONG=$results KERNELGATE_GPU_EVIDENCE=$results/triton ../../../bin/gpu/cuda.test -test.v -test.run "(TritonOnGPU|TritonToolsOnGPU|CompilersOnGPU)/(${ONLY:-.*})" -test.timeout 900s) | grep -vE '^ *===' || failed=1 ;;
  # Triton kernels of a Python package, with decorators, several functions and helpers.
  tritonpkg) (cd runners/backend/cuda && KERNELGATE_GPU_EVIDENCE=$results/tritonpkg ../../../bin/gpu/cuda.test -test.v -test.run "TritonPackageOnGPU/(${ONLY:-.*})" -test.timeout 500s) | grep -vE '^ *===' || failed=1 ;;
  # The examples that need a GPU, each with its honest and its wrong change.
  examples) for example in softmax-cuda matmul-tma sum-steps walsh-loop norm-sequence layernorm-triton; do
      for change in faster wrong; do
        repo=$results/example-$example-$change want=PASS
        if [ $change = wrong ]; then want="DEFER correctness"; fi
        if [ $example-$change = layernorm-triton-wrong ]; then want="DEFER build"; fi # the tuner compares every configuration
        git=(git -C "$repo" -c user.name=gpu.sh -c user.email=gpu.sh@example.com)
        cp -r "examples/$example" "$repo" && git init --quiet -b main "$repo" && "${git[@]}" add --all && "${git[@]}" commit --quiet -m base &&
          "${git[@]}" checkout --quiet -b $change && "${git[@]}" apply "changes/$change.patch" && "${git[@]}" commit --quiet -am $change || failed=1
        if [ $example = norm-sequence ]; then # the kernel alone, and between its neighbours
          for kernel in rms_norm rms_norm_in_layer; do (cd "$repo" && expect "$want" "example_${example}_${change}_$kernel" $kernel) || failed=1; done
        else
          (cd "$repo" && expect "$want" "example_${example}_$change") || failed=1
        fi
      done
    done ;;
  # How long a whole check of kernels of common kinds takes, with the default policy and everything compiled before.
  speed)
    repo=$results/speed
    git=(git -C "$repo" -c user.name=gpu.sh -c user.email=gpu.sh@example.com)
    mkdir -p "$repo/.github" && cp -r runners/backend/cuda/testdata/speed "$repo/kernels" && cp policies/default.yaml "$repo/.github/kernelgate.yaml" &&
      git init --quiet -b main "$repo" && "${git[@]}" add --all && "${git[@]}" commit --quiet -m base || failed=1
    while read -r name toggles; do
      if ! [[ $name =~ ^(${ONLY:-.*})$ ]]; then continue; fi
      args=("$name" --baseline-variant default --variant "default,$toggles" --results "$results/speed-results")
      (cd "$repo" && "$gate" check "${args[@]}" --static >/dev/null 2>&1)
      (cd "$repo" && timeout 120 "$gate" check "${args[@]}" --timings >"$results/$name.txt" 2>"$results/$name.log") || true
      echo "== $name: $(grep -m1 -E 'PASS|DEFER|ERROR' "$results/$name.txt" || tail -1 "$results/$name.log")"
      sed -n '/^Where the time went/,/of this time/p' "$results/$name.txt"
      mv "$results"/speed-results/*/evidence.json "$results/$name.evidence.json" 2>/dev/null; rm -rf "$results/speed-results"
    done <<<"$speed"
    # A median above 10 s, a check above 20 s, and a GPU that works in less than 20 % of the time are regressions.
    awk '$1 == "total" { totals[++n] = $2; if ($2 > 20) { print FILENAME ": takes " $2 " s"; bad = 1 } }
      /^The GPU drew/ { for (i = 1; i < NF; i++) if ($(i + 1) == "%" && $i < 20) { print FILENAME ": the GPU works in " $i " % of the time"; bad = 1 } }
      END { for (i = 1; i <= n; i++) { less = 0; for (k = 1; k <= n; k++) less += totals[k] < totals[i]; if (less == int(n / 2) && totals[i] > 10) { print "the median is " totals[i] " s"; bad = 1 } } exit bad }' \
      $(for name in $(awk '{ print $1 }' <<<"$speed"); do [ ! -f "$results/$name.txt" ] || echo "$results/$name.txt"; done) || failed=1 ;;
  # How much memory a check of arrays of 8 GiB takes.
  huge)
    repo=$results/huge
    git=(git -C "$repo" -c user.name=gpu.sh -c user.email=gpu.sh@example.com)
    mkdir -p "$repo/.github" && cp -r runners/backend/cuda/testdata/huge "$repo/kernels" && mv "$repo/kernels/policy.yaml" "$repo/.github/kernelgate.yaml" &&
      git init --quiet -b main "$repo" && "${git[@]}" add --all && "${git[@]}" commit --quiet -m base || failed=1
    (cd "$repo" && timeout 180 python3 "$OLDPWD/runners/backend/cuda/peak.py" "$gate" check scale --baseline-variant default --variant default,WIDTH=4 --timings --results "$results/huge-results" 2>"$results/huge.log") |
      tee "$results/huge.txt" | grep -E 'PASS|DEFER|ERROR|total|MiB' || { failed=1; tail -3 "$results/huge.log"; } ;;
  # Weights from a trace of torch's profiler, and the weighted verdict against the measured change of whole steps.
  weights) python3 runners/backend/cuda/weights.py "$gate" "$results" | tee "$results/weights.txt"; [ "${PIPESTATUS[0]}" = 0 ] || failed=1 ;;
  # Searches next to brute force: the time of each until it has a winner, and how fast the winners are. At most four minutes.
  spaces)
    names=()
    for name in rmsnorm matmul softmax_triton stencil; do
      if [[ $name =~ ^(${ONLY:-.*})$ ]]; then names+=("$name"); fi
    done
    if [ ${#names[@]} -gt 0 ]; then python3 runners/backend/cuda/spaces.py "$gate" "$results" "${names[@]}" || failed=1; fi ;;
  # From a Triton package to the first verdict, in at most two minutes.
  newcomer) rm -rf "$results/newcomer"; runners/work/scaffold/newcomer.sh --gpu --limit 120 "$gate" "$results/newcomer" || failed=1 ;;
  steps) (cd runners/backend/cuda && KERNELGATE_GPU_EVIDENCE=$results/steps ../../../bin/gpu/cuda.test -test.v -test.run StepsOnGPU -test.timeout 500s) | grep -vE '^ *===' || failed=1 ;;
  # Kernels of public projects, whose files lie in the folder KERNELGATE_UPSTREAM: an honest and a broken branch of each.
  upstream) (cd runners/backend/cuda && KERNELGATE_GPU_EVIDENCE=$results/upstream ../../../bin/gpu/cuda.test -test.v -test.run "UpstreamOnGPU/(${ONLY:-.*})" -test.timeout 500s) | grep -vE '^ *===' || failed=1 ;;
  # Attributes of launches: a kernel that starts before the one before it has ended.
  attributes) (cd runners/backend/cuda && KERNELGATE_GPU_EVIDENCE=$results/attributes ../../../bin/gpu/cuda.test -test.v -test.run LaunchAttributesOnGPU -test.timeout 200s) | grep -vE '^ *===' || failed=1 ;;
  # Kernels with the interfaces of well-known public kernels compute what their references do.
  public) (cd runners/backend/cuda && KERNELGATE_GPU_EVIDENCE=$results/public ../../../bin/gpu/cuda.test -test.v -test.run PublicOnGPU -test.timeout 500s) | grep -vE '^ *===' || failed=1 ;;
  # Through a bot: one runner compiles, and a different one measures the result.
  builds) (cd bot/controller && KERNELGATE_GPU_PROGRAM=$gate ../../bin/gpu/controller.test -test.v -test.run BuildsMeasuredOnGPU -test.timeout 500s) 2>&1 | tee "$results/builds.txt" | grep -vE '^ *===' || failed=1 ;;
  sanitize)
    # Kernels with one mistake each, then every variant of the attention kernel.
    (cd runners/backend/cuda && ../../../bin/gpu/cuda.test -test.v -test.run "SanitizersOnGPU|ExistingOnGPU" -test.timeout 500s) | grep -vE '^ *===' || failed=1
    untimed sanitize stage{0,1,2,3a,3a_xor,3b,4,5,6_fp8_short,6_fp8,6_split,6_wgmma} stage7 stage7_unshared
    untimed sanitize_wide stage7_wide stage7_wide3
    ;;
  stages)
    # Each stage against the one before it; the guards are short and long problems.
    while read -r name before want; do
      expect "$want" "$name" sdpa_fp8 --baseline-variant "$before" --variant "$name" --policy h200
    done <<<"$stages"
    ;;
  pulls)
    # The same stages as pull requests: each brings its source, its launch and a manifest that makes it the default.
    rm -rf "$results/pulls"
    pull stage0 "" || failed=1
    while read -r name before want; do
      pull "$name" "$before" || { failed=1; break; }
      expect "$want" "pull_$name" --dir "$results/pulls" --base "$before" --policy h200 sdpa_fp8
    done <<<"$stages"
    rm -rf "$results/pulls"
    ;;
  candidates)
    # Every variant that the default may choose, against the same baseline and on every shape that it
    # supports. `make choose` reads this.
    for name in stage6_fp8_short stage6_split stage6_wgmma stage7 stage7_unshared; do
      expect "PASS" "tune_$name" sdpa_fp8 --baseline-variant stage6_fp8 --variant "$name" --policy kernels/sdpa_fp8/tune.yaml
    done
    for name in stage6_fp8_short stage6_split stage6_wgmma; do
      expect "PASS" "few_$name" sdpa_fp8 --baseline-variant stage6_fp8 --variant "$name" --policy kernels/sdpa_fp8/tune_few.yaml
    done
    for name in stage7_wide stage7_wide3; do
      expect "PASS" "tune_$name" sdpa_fp8 --baseline-variant stage6_fp8 --variant "$name" --policy kernels/sdpa_fp8/tune_wide.yaml
    done
    ;;
  sweep)
    # Every variant on 416 problems with few heads. `make choose` reads evidence/tune/sweep.csv.
    mkdir -p "$results/sweep"
    (cd runners/backend/cuda/sdpatest && KERNELGATE_GPU_EVIDENCE=$results/sweep ../../../../bin/gpu/sdpa_fp8.test -test.v -test.run SweepOnGPU) | grep -vE '^ *===' || failed=1 ;;
  choose)
    # The default, which chooses a variant by problem size, against the previous default: by the same
    # policy as the stages, and on every shape together with PyTorch.
    KERNELGATE_READ=$(python3 -c 'import sys; print(sys.prefix + ":" + sys.base_prefix)'); export KERNELGATE_READ
    expect "PASS" choose sdpa_fp8 --baseline-variant stage6_fp8 --variant choose --policy h200
    expect "PASS" all_choose sdpa_fp8 --baseline-variant stage6_fp8 --variant choose --policy kernels/sdpa_fp8/choose.yaml --rivals
    ;;
  showcase)
    # Every variant on every shape (the early ones take a minute each), and the best ones against
    # PyTorch. Its Python may be anywhere; the sandbox shows the folders that are named.
    KERNELGATE_READ=$(python3 -c 'import sys; print(sys.prefix + ":" + sys.base_prefix)'); export KERNELGATE_READ
    for name in stage6_split stage6_wgmma; do
      expect "PASS" "all_$name" sdpa_fp8 --baseline-variant stage5 --variant "$name" --policy kernels/sdpa_fp8/showcase.yaml --rivals
    done
    for name in stage6_fp8_short stage6_fp8 stage4 stage3b; do
      expect "PASS" "all_$name" sdpa_fp8 --baseline-variant stage5 --variant "$name" --policy kernels/sdpa_fp8/showcase.yaml
    done
    expect "PASS" all_stage5 sdpa_fp8 --baseline-variant stage4 --variant stage5 --policy kernels/sdpa_fp8/showcase.yaml
    for name in stage1 stage2 stage3a stage3a_xor; do
      expect "PASS" "all_$name" sdpa_fp8 --baseline-variant stage0 --variant "$name" --policy kernels/sdpa_fp8/showcase.yaml
    done
    expect "PASS" all_stage0 sdpa_fp8 --baseline-variant stage1 --variant stage0 --policy kernels/sdpa_fp8/showcase.yaml
    ;;
  everywhere)
    untimed everywhere stage{0,1,2,3a,3a_xor,3b,4,5,6_fp8_short,6_fp8,6_split,6_wgmma} stage7 stage7_unshared stage7_wide stage7_wide3
    ;;
  toggles)
    # Values of toggles that no variant uses.
    untimed everywhere stage4,NUM_STAGES={2,4} stage5,NUM_STAGES={2,4} stage5,NUM_PRODUCER_WARPS={2,4} stage5,NUM_STAGES=4,NUM_PRODUCER_WARPS=4 \
      stage5,USE_PERSISTENT_CTA=0 stage5,USE_FAST_EXP=0 stage6_fp8,KEY_SPLITS={1,4} stage6_fp8,ROW_WARPS={1,2},KEY_SPLITS={1,4} stage6_fp8,ROW_WARPS=1
    ;;
  defers)
    # The historical bug: the running sum is not rescaled when a larger maximum appears.
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
    expect "DEFER regression" cold sdpa_fp8 --baseline-variant stage6_fp8 --variant stage6_split --policy h200
    expect "DEFER regression" warm sdpa_fp8 --baseline-variant stage6_fp8 --variant stage6_split --policy h200
    unset XDG_CACHE_HOME
    rm -rf "$results/cache"
    ;;
  tune)
    # TUNE_ROUNDS=20 takes the truth to more digits, and three times as long: about 160 s for each of
    # the three. testdata/h200/tune keeps NAME-truth.jsonl and NAME-search.jsonl.
    tuned stage5 . sdpa_fp8 --policy h200 --variant stage5 --toggle NUM_STAGES,NUM_PRODUCER_WARPS --shapes mission
    tuned stage6_fp8 . sdpa_fp8 --policy h200 --variant stage6_fp8 --toggle ROW_WARPS,KEY_SPLITS --shapes mission,long
    repo=$results/tune-repository
    rm -rf "$repo" && cp -r runners/backend/cuda/testdata/tune "$repo" && git init --quiet -b main "$repo" && git -C "$repo" add --all && git -C "$repo" -c user.name=gpu.sh -c user.email=gpu.sh@example.com commit --quiet -m base || failed=1
    tuned matmul "$repo" matmul --toggle TILE_M,TILE_N --shapes mission,tall ;;
  energy)
    # Known differences and equal sides, then stages of the attention kernel: less energy, and more energy.
    (cd runners/backend/cuda && KERNELGATE_GPU_EVIDENCE=$results/energy ../../../bin/gpu/cuda.test -test.v -test.run "EnergyOnGPU/(${ONLY:-.*})" -test.timeout 200s) | grep -vE '^ *===' || failed=1
    expect "PASS" energy_less sdpa_fp8 --baseline-variant stage5 --variant stage6_fp8 --policy kernels/sdpa_fp8/energy.yaml
    expect "DEFER energy" energy_more sdpa_fp8 --baseline-variant stage6_fp8 --variant stage5 --policy kernels/sdpa_fp8/energy.yaml ;;
  accuracy)
    # Adds to the figures of earlier sessions.
    cp -n runners/backend/cuda/testdata/h200/accuracy.json "$results" 2>/dev/null
    (cd runners/backend/cuda && KERNELGATE_GPU_LONG=$results KERNELGATE_GPU_SECONDS=${ACCURACY_SECONDS:-900} ../../../bin/gpu/cuda.test -test.v -test.run AccuracyOnGPU -test.timeout 3600s 2>&1) | grep -v '^=== ' | head -40 || failed=1 ;;
  # Why kernels are faster or slower: pairs with a known cause, in both directions, and a kernel that equals its baseline.
  why)
    repo=$results/why
    git=(git -C "$repo" -c user.name=gpu.sh -c user.email=gpu.sh@example.com)
    mkdir -p "$repo/.github" && cp -r runners/backend/cuda/testdata/why "$repo/kernels" && mv "$repo/kernels/policy.yaml" "$repo/.github/kernelgate.yaml" &&
      mv "$repo/kernels/causes.txt" "$repo" && git init --quiet -b main "$repo" && "${git[@]}" add --all && "${git[@]}" commit --quiet -m base || failed=1
    explained=0 pairs=0
    while read -r name cause _; do
      if [ "$name" = "#" ]; then continue; fi
      slow=default,SLOW=1 fast=default,SLOW=0
      if [ "$name" = launches ]; then slow=slow fast=fast; fi
      (cd "$repo" && expect "PASS" "why_${name}_faster" "$name" --baseline-variant $slow --variant $fast)
      (cd "$repo" && expect "DEFER too-slow" "why_${name}_slower" "$name" --baseline-variant $fast --variant $slow)
      for file in "$results/why_${name}_faster.verdict.json" "$results/why_${name}_slower.verdict.json"; do
        if ! [ -f "$file" ]; then continue; fi
        pairs=$((pairs + 1))
        grep -m1 '"sentence":' "$file"
        if grep -q "\"cause\": *\"$cause\"" "$file"; then explained=$((explained + 1)); fi
      done
    done <"$repo/causes.txt"
    echo "the cause is named in $explained of $pairs"
    if [ $explained -lt $((pairs - 2)) ]; then failed=1; fi
    rm -rf "$repo"
    (cd runners/backend/cuda && KERNELGATE_GPU_EVIDENCE=$results/why-equal ../../../bin/gpu/cuda.test -test.v -test.run "NothingToExplainOnGPU/(${ONLY:-.*})" -test.timeout 200s) | grep -vE '^ *===' || failed=1 ;;
  # What an explanation takes beside the profile itself: printing the report whole, and only the launches whose samples are shown.
  cost)
    report=$(find "$results" -maxdepth 1 -name 'stage*.ncu-rep' | sort | head -1)
    if [ -z "$report" ]; then echo "cost: there is no report of ncu; run the step stages before it"; failed=1; continue; fi
    samples="--page source --print-source sass"
    for _ in 1 2 3; do
      while read -r what options; do
        start=$EPOCHREALTIME
        # shellcheck disable=SC2086 # the options are words
        ncu --import "$report" --csv --print-units base --print-kernel-base mangled $options >"$results/cost_$what.csv" 2>&1 || failed=1
        awk -v what="$what" -v a="$start" -v b="$EPOCHREALTIME" '/^"?Kernel Name/ {n++} END {printf "cost: %s took %.2f s, %d lines, %d launches\n", what, b - a, NR, n}' "$results/cost_$what.csv"
      done <<<"counters --page raw
samples_of_all $samples
samples_of_the_first $samples --launch-count 1
samples_of_the_second $samples --launch-skip 1 --launch-count 1"
    done ;;
  # Why kernels of other projects are faster or slower: each folder of $PAIRS has a kernel as it was before a public change (before) and
  # after it (after), and the cause in the words of the change (cause.txt). Nothing is judged: a person compares sentence and cause.
  pairs)
    if ! [ -d "${PAIRS:-}" ]; then echo "PAIRS=FOLDER is missing: a folder with one folder for each pair"; failed=1; continue; fi
    for pair in "$PAIRS"/*/; do
      name=$(basename "$pair") repo=$results/pair-$(basename "$pair")
      if ! [[ $name =~ ^(${ONLY:-.*})$ ]]; then continue; fi
      if ! [ -f "$pair/before/kernel.yaml" ] || ! [ -f "$pair/after/kernel.yaml" ]; then echo "$name: before/kernel.yaml or after/kernel.yaml is missing"; failed=1; continue; fi
      git=(git -C "$repo" -c user.name=gpu.sh -c user.email=gpu.sh@example.com)
      mkdir -p "$repo/.github" "$repo/kernel" && cp runners/backend/cuda/testdata/why/policy.yaml "$repo/.github/kernelgate.yaml" && cp -r "$pair/before/." "$repo/kernel" &&
        git init --quiet -b main "$repo" && "${git[@]}" add --all && "${git[@]}" commit --quiet -m before && "${git[@]}" checkout --quiet -b after &&
        rm -rf "$repo/kernel" && mkdir "$repo/kernel" && cp -r "$pair/after/." "$repo/kernel" && "${git[@]}" add --all && "${git[@]}" commit --quiet -m after || { failed=1; continue; }
      (cd "$repo" && "$gate" check --base main --results "$results/pair-$name.part" >"$results/pair-$name.txt" 2>"$results/pair-$name.log")
      if [ $? -gt 1 ]; then failed=1; tail -3 "$results/pair-$name.log"; fi
      for f in evidence.json verdict.json; do mv "$results/pair-$name.part"/*/"$f" "$results/pair_$name.$f" 2>/dev/null; done
      rm -rf "$repo" "$results/pair-$name.part"
      echo "$name: $(cat "$pair/cause.txt" 2>/dev/null)"
      grep -m1 '"sentence":' "$results/pair_$name.verdict.json" || echo "  no sentence"
    done ;;
  spread) python3 runners/backend/cuda/spread.py "$results" || failed=1 ;;
  *) echo "no step is named $step"; exit 2 ;;
  esac
done
exit $failed
