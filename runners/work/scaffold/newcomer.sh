#!/usr/bin/env bash
# newcomer.sh walks a newcomer's path and prints the seconds of each step: from a Python package with a Triton kernel to the first
# verdict, with a PyTorch reference. It describes the package of examples/layernorm-triton, without the manifest that is there.
#
#   newcomer.sh KERNELGATE FOLDER           without a GPU: the verdict is that of check --static
#   newcomer.sh --gpu KERNELGATE FOLDER     with a GPU
#   newcomer.sh --limit SECONDS ...         the whole path must take at most this
#
# KERNELGATE is the program, and FOLDER a new folder for the repository. The Python is python3, or KERNELGATE_PYTHON.
#
# Exit status: 0 PASS within the limit, 1 another verdict or too late, 2 wrong usage, 3 a step failed.
set -euo pipefail

usage() {
	echo "usage: newcomer.sh [--gpu] [--limit SECONDS] KERNELGATE FOLDER" >&2
	exit 2
}
gpu='' limit=''
while [[ ${1-} == --* ]]; do
	case $1 in
	--gpu) gpu=yes ;;
	--limit) limit=${2-}; shift; [[ $limit =~ ^[0-9]+$ ]] || usage ;;
	*) usage ;;
	esac
	shift
done
[[ $# == 2 ]] || usage
gate=$(realpath -s "$1") folder=$2 # a link keeps its name
example=$(realpath "$(dirname "$0")/../../../examples/layernorm-triton")

began=$EPOCHREALTIME
seconds() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}'; }

# step WORDS COMMAND...: one step of the path; what it prints is shown if it fails.
step() {
	local words=$1 start=$EPOCHREALTIME status=0; shift
	"$@" >"$folder/.git/newcomer.log" 2>&1 || status=$?
	printf '%7s s  %s\n' "$(seconds "$start")" "$words"
	if [[ $status != 0 ]]; then
		cat "$folder/.git/newcomer.log" >&2
		return $status
	fi
}

commit() { git add --all && git -c user.name=newcomer -c user.email=newcomer@example.com commit --quiet -m "$1"; }

# complete answers what init could only guess, as an author would in an editor.
complete() {
	sed -i -E \
		-e 's/name: (x|y), dtype: f32, (access: [a-z]+), shape: \[N\]\}.*/name: \1, dtype: f16, \2, shape: [M, N]}/' \
		-e 's/name: (weight|bias), dtype: f32, access: in, shape: \[N\]\}.*/name: \1, dtype: f16, access: in, shape: [N]}/' \
		-e 's/^arch: .*/arch: [sm_90]/' \
		-e 's/^tolerance: .*/tolerance: {abs: 0.01, rel: 0.005}/' \
		-e 's/^  small: .*/  small: {M: 100, N: 200}/' \
		-e 's/^  mission: .*/  mission: {M: 4096, N: 2048}/' \
		-e 's/^autotune: .*/autotune: all/' \
		-e 's/^launch: .*/launch: {grid: [M]}/' \
		-e 's/^reference: .*/reference: {torch: "F.layer_norm(x, (N,), weight, bias, eps)"}/' \
		-e 's/ # TODO: .*//' kernels/layer_norm/kernel.yaml
	rm kernels/layer_norm/reference.py
	sed -i -E 's/ # TODO: .*//' .github/kernelgate.yaml
	! grep -rn 'TODO:' kernels .github
}

change() { git checkout --quiet -b faster && git apply "$example/changes/faster.patch" && commit 'Offer larger blocks'; }

if [[ -e $folder ]]; then
	echo "newcomer: $folder exists already (name a new folder)" >&2
	exit 2
fi
mkdir -p "$folder"
git init --quiet -b main "$folder"
cp -r "$example/src" "$folder"
cd "$folder"
folder=$PWD
step 'init: the manifest, a reference and a policy' "$gate" init src/norms/layer_norm.py --out kernels/layer_norm || exit 3
step 'the author answers the guesses' complete || exit 3
step 'policy lint' "$gate" policy lint . || exit 3
step 'the first commit' commit 'Describe the kernel' || exit 3
step 'a change on a branch' change || exit 3
status=0
if [[ -n $gpu ]]; then
	step 'check: the first verdict' "$gate" check || status=$?
else
	step 'check --static: the first verdict' "$gate" check --static || status=$?
fi
case $status in
0 | 1) ;;
*) exit 3 ;;
esac
total=$(seconds "$began")
printf '%7s s  in all: %s\n' "$total" "$(grep -m1 -oE '(PASS|DEFER) · .*' "$folder/.git/newcomer.log" || echo 'no verdict')"
if [[ -n $limit ]] && awk -v a="$total" -v b="$limit" 'BEGIN {exit !(a > b)}'; then
	echo "newcomer: the path took $total s, and may take $limit" >&2
	exit 1
fi
exit $status
