#!/usr/bin/env bash
# record.sh records what ncu really prints, on a machine with an NVIDIA GPU, nvcc and ncu. It writes *_recorded.csv and
# *_recorded.txt into the folder given (default: next to this script), where the package's tests read them.
#
# Each recording is named after the handmade file next to it. A recording that cannot be made on this
# machine (such as a missing permission) is left out with a message.
set -euo pipefail

out=$(realpath "${1:-$(dirname "$0")}")
ncu=${NCU:-ncu}
nvcc=${NVCC:-nvcc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
export LC_ALL=C

cat >"$work/sample.cu" <<'CUDA'
#include <cstdio>
extern "C" __global__ void sdpa_fp8(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 1.5f + 1.0f;
    if (i == 0) printf("==ERROR== ERR_NVGPUCTRPERM, says the kernel\n");
}
extern "C" __global__ void fill_poison(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 0.0f;
}
int main() {
    const int n = 1 << 24;
    float *x = nullptr;
    if (cudaMalloc(&x, n * sizeof(float)) != cudaSuccess) return 1;
    printf("the program starts\n");
    fill_poison<<<n / 256, 256>>>(x, n);
    for (int i = 0; i < 4; i++) sdpa_fp8<<<n / 256, 256>>>(x, n);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    printf("\"done\", said the program\n");
}
CUDA
"$nvcc" -O2 -arch=native -o "$work/sample" "$work/sample.cu"

metrics=sm__throughput.avg.pct_of_peak_sustained_elapsed
metrics+=,dram__throughput.avg.pct_of_peak_sustained_elapsed
metrics+=,lts__throughput.avg.pct_of_peak_sustained_elapsed
metrics+=,sm__inst_executed_pipe_tensor.sum
metrics+=,sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active
metrics+=,sm__warps_active.avg.pct_of_peak_sustained_active
metrics+=,gpu__time_duration.sum

select=(--target-processes all --clock-control none --kernel-name-base mangled --kernel-name sdpa_fp8 --launch-skip 1 --launch-count 2)
print=(--csv --print-units base --print-kernel-base mangled)

# record NAME COMMAND… keeps both streams and the exit status.
record() {
	local name=$1 status=0
	shift
	"$@" >"$out/$name" 2>&1 || status=$?
	printf '%-34s exit %d\n' "$name" "$status" >&2
}

"$ncu" --version >"$out/version_recorded.txt"

record raw_recorded.csv "$ncu" "${print[@]}" --page raw "${select[@]}" --metrics "$metrics" "$work/sample"

# What the package itself does: a report and a log, then the report printed.
record export_output_recorded.txt "$ncu" --log-file "$work/ncu.log" --export "$work/sample.ncu-rep" --force-overwrite \
	"${select[@]}" --metrics "$metrics" "$work/sample"
cp "$work/ncu.log" "$out/export_log_recorded.txt"
record import_recorded.csv "$ncu" --import "$work/sample.ncu-rep" --page raw "${print[@]}"

# Each failure goes through the log too: Classify reads nothing else.
failure() {
	local name=$1
	shift
	rm -f "$work/ncu.log"
	"$@" >"$work/output" 2>&1 && echo "$name: ncu succeeded" >&2 || echo "$name: ncu failed with $?" >&2
	if [[ -s $work/ncu.log ]]; then
		cp "$work/ncu.log" "$out/$name"
	else
		echo "$name: left out, ncu wrote no log; it printed:" >&2
		cat "$work/output" >&2
	fi
}
logged=("$ncu" --log-file "$work/ncu.log" --export "$work/failed.ncu-rep" --force-overwrite --target-processes all --clock-control none)

failure no_kernels_recorded.txt "${logged[@]}" --kernel-name-base mangled --kernel-name absent --metrics "$metrics" "$work/sample"
failure unknown_metrics_recorded.txt "${logged[@]}" --kernel-name-base mangled --kernel-name sdpa_fp8 \
	--metrics sm__teh_cycles,dram__speed.avg "$work/sample"

if [[ $EUID -eq 0 ]] && grep -q 'RmProfilingAdminOnly: 1' /proc/driver/nvidia/params 2>/dev/null && command -v setpriv >/dev/null; then
	chmod 777 "$work"
	failure no_permission_recorded.txt env TMPDIR="$work" HOME="$work" \
		setpriv --reuid nobody --regid nogroup --clear-groups --bounding-set -all "${logged[@]}" \
		--kernel-name-base mangled --kernel-name sdpa_fp8 --metrics "$metrics" "$work/sample"
else
	echo "no_permission_recorded.txt: left out, everyone may profile here or this is not root" >&2
fi
