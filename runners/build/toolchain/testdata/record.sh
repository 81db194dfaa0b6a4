#!/usr/bin/env bash
# record.sh records testdata/logs again from the .cu files next to it. It needs what fetch-cuda.sh
# needs, and gcc.
#
#   CLANG         a clang to record; left out when unset
#   CUOBJDUMP11   a cuobjdump of CUDA 11.8 (no wheel has one); its logs are kept as they are when unset
#
# The files *_handmade.log are written by hand, for formats that no available tool prints.
set -euo pipefail
cd "$(dirname "$0")"
export LC_ALL=C
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p logs

cuda=$(../fetch-cuda.sh)
nvcc=$cuda/bin/nvcc
cuobjdump=$cuda/bin/cuobjdump
kernels=(spill callee shared pair globals)

# What differs between two recordings of the same thing: times, and names in /tmp.
steady() { sed -E 's/(Compile time =) [0-9.]+ ms/\1 1.000 ms/; s/tmpxft_[0-9a-f]+_/tmpxft_00000001_/g'; }

# usage LOG TOOL CUBIN...
usage() {
	local log=$1 tool=$2
	shift 2
	for cubin; do "$tool" --dump-resource-usage "$cubin"; done >"$log"
}

# cuda13 NAME ARCH FLAGS KERNEL...: the compiler's log and cuobjdump's view of the same cubins.
cuda13() {
	local name=$1 arch=$2 flags=$3
	shift 3
	local cubins=()
	for k; do
		# shellcheck disable=SC2086 # flags are words
		"$nvcc" -cubin -arch="$arch" -lineinfo -Xptxas -v,--warn-on-spills $flags -o "$tmp/$k.cubin" "$k.cu"
		cubins+=("$tmp/$k.cubin")
	done 2> >(steady >"logs/$name.ptxas.log")
	wait $! # the substitution's sed
	usage "logs/$name.usage.log" "$cuobjdump" "${cubins[@]}"
}
for sm in 75 80 86 89 90 100 120; do
	cuda13 "cuda13.0-sm_$sm" "sm_$sm" "" "${kernels[@]}"
done
cuda13 cuda13.0-sm_90a sm_90a "" wgmma
cuda13 cuda13.0-rdc sm_89 -rdc=true callee
cuda13 cuda13.0-forged sm_89 "" forged

"$nvcc" -fatbin -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 \
	-Xptxas -v -o "$tmp/two.fatbin" globals.cu 2>&1 | steady >logs/cuda13.0-twoarch.ptxas.log
usage logs/cuda13.0-twoarch.usage.log "$cuobjdump" "$tmp/two.fatbin"

# Older ptxas from its wheel, fed with our PTX under a version number that it accepts.
# older PACKAGE==VERSION NAME PTXVERSION ARCH KERNEL...
older() {
	local wheel=$1 name=$2 ptx=$3 arch=$4
	shift 4
	local home=$tmp/${wheel//[^a-z0-9.]/_}
	if [[ ! -d $home ]]; then
		python3 -m pip download --quiet --no-deps --dest "$home" "$wheel"
		python3 -m zipfile -e "$home"/*.whl "$home"
	fi
	local ptxas=$home/nvidia/cuda_nvcc/bin/ptxas cubins=()
	chmod +x "$ptxas"
	for k; do
		"$nvcc" -ptx -arch="$arch" -o "$tmp/$k.ptx" "$k.cu"
		sed -i "s/^\.version .*/.version $ptx/" "$tmp/$k.ptx"
		"$ptxas" -arch="$arch" -v --warn-on-spills -o "$tmp/$name.$k.cubin" "$tmp/$k.ptx"
		cubins+=("$tmp/$name.$k.cubin")
	done 2> >(steady >"logs/$name.ptxas.log")
	wait $!
	if [[ $name == cuda11* && -n ${CUOBJDUMP11-} ]]; then
		usage "logs/$name.usage.log" "$CUOBJDUMP11" "${cubins[@]}"
	fi
}
for sm in 75 80 89; do
	older nvidia-cuda-nvcc-cu11==11.8.89 "cuda11.8-sm_$sm" 7.8 "sm_$sm" "${kernels[@]}"
done
older nvidia-cuda-nvcc-cu12==12.0.140 cuda12.0-sm_89 8.0 sm_89 "${kernels[@]}"
older nvidia-cuda-nvcc-cu12==12.4.131 cuda12.4-sm_89 8.4 sm_89 "${kernels[@]}"
older nvidia-cuda-nvcc-cu12==12.4.131 cuda12.4-sm_90a 8.4 sm_90a wgmma
for sm in 80 89 90 120; do
	older nvidia-cuda-nvcc-cu12==12.9.86 "cuda12.9-sm_$sm" 8.8 "sm_$sm" "${kernels[@]}"
done

# What a person sees when it does not compile. Every one of these fails or warns on purpose.
say() {
	local log=logs/$1.diag.log
	shift
	{ "$@" 2>&1 || true; } | steady >"$log"
}
for k in broken warned template include unresolved toobig badptx; do
	say "nvcc-$k" "$nvcc" -cubin -arch=sm_89 -Xptxas -v -o "$tmp/x.cubin" "$k.cu"
done
say nvcc-werror "$nvcc" -cubin -arch=sm_89 -Werror all-warnings -o "$tmp/x.cubin" warned.cu
say nvcc-wgmma "$nvcc" -cubin -arch=sm_90a -Xptxas -v -o "$tmp/x.cubin" wgmma.cu
say nvcc-badarch "$nvcc" -cubin -arch=sm_35 -o "$tmp/x.cubin" shared.cu
say nvcc-badoption "$nvcc" -cubin -arch=sm_89 -Xptxas --no-such-option -o "$tmp/x.cubin" shared.cu
say nvlink-unresolved "$nvcc" -rdc=true -arch=sm_89 -o "$tmp/x" unresolved.cu
say gcc-host gcc -Wall -c -o "$tmp/x.o" host.c
say gcc-badoption gcc -fno-such-option -c -o "$tmp/x.o" host.c
if [[ -n ${CLANG-} ]]; then
	# shellcheck disable=SC2086 # may be "python3 -m ziglang cc"
	say clang-host $CLANG -Wall -c -o "$tmp/x.o" host.c
fi
