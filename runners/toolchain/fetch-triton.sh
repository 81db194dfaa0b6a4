#!/usr/bin/env bash
# fetch-triton.sh installs Triton alone (no torch) from its PyPI wheels, in two versions whose machine code differs in form: no
# root, no GPU, no driver. It changes nothing outside its cache folders, ${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate/triton-*.
#
#   fetch-triton.sh           fetch what is not there; stdout names the folders
#   fetch-triton.sh --check   name the folders if all are there already, else exit 3; fetches nothing
#
#   KERNELGATE_PYTHON   the Python that it is for (python3)
#
# Exit status: 0 there, 2 wrong usage, 3 cannot (the message says what to do).
set -euo pipefail

# Exact versions with hashes: what judges others' code must not change under us. CPython 3.11 to 3.14, x86_64 and aarch64.
versions="3.6.0 3.9.0"
pins() {
	case $1 in
	3.6.0) echo triton==3.6.0 \
		--hash=sha256:{e8e323d608e3a9bfcc2d9efcc90ceefb764a82b99dea12a86d643c72539ad5d3,49df5ef37379c0c2b5c0012286f80174fcf0e073e5ade1ca9a86c36814553651} \
		--hash=sha256:{74caf5e34b66d9f3a429af689c1c7128daba1d8208df60e81106b115c00d6fca,374f52c11a711fd062b4bfbb201fd9ac0a5febd28a96fb41b4a0f51dde3157f4} \
		--hash=sha256:{10c7f76c6e72d2ef08df639e3d0d30729112f47a56b0c81672edc05ee5116ac9,448e02fe6dc898e9e5aa89cf0ee5c371e99df5aa5e8ad976a80b93334f3494fd} \
		--hash=sha256:{a17a5d5985f0ac494ed8a8e54568f092f7057ef60e1b0fa09d3fd1512064e803,ef5523241e7d1abca00f1d240949eebdd7c673b005edbbce0aca95b8191f1d43} ;;
	3.9.0) echo triton==3.9.0 \
		--hash=sha256:{1622118a038b0c6e16fa4a0305da62c8b3c15904ee1cc4d4e65846a25969e41e,feaaec13578ca84301d561d034cb08b3ae293d7f0b7ab6b8ddbb2d6796363716} \
		--hash=sha256:{5e52ab4e2f1d64f0ac494c9aa723697b793f81a91c4cae4c36608ca0bc4267bf,5542f4328472fd827dbb1ec43873364c2894682cc3f5d1c74a643762900e243e} ;;
	esac
}

say() { printf 'fetch-triton: %s\n' "$*" >&2; }
cannot() {
	say "$*"
	exit 3
}
otherwise="or install Triton yourself (pip install triton) and set KERNELGATE_PYTHON to its Python"

case "$#:${1-}" in
0:) check= ;;
1:--check) check=yes ;;
1:-h | 1:--help)
	echo "usage: fetch-triton.sh [--check]; prints the folders it made"
	exit 0
	;;
*)
	say "usage: fetch-triton.sh [--check]"
	exit 2
	;;
esac

python=${KERNELGATE_PYTHON:-python3}
[[ -n ${XDG_CACHE_HOME-}${HOME-} ]] || cannot "neither HOME nor XDG_CACHE_HOME is set; set one of them"
root=${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate
command -v "$python" >/dev/null || cannot "$python not found; install python3 with pip, $otherwise"
tag=$("$python" -I -c 'import sys; print("cp%d%d" % sys.version_info[:2])') || cannot "$python is no Python 3; $otherwise"

# The stamp is written last and the folder renamed into place, so a matching stamp means a whole install.
stamp=.kernelgate-triton
there() { [[ -f $1/$stamp && $(<"$1/$stamp") == "$(pins "$2")" ]]; }

for version in $versions; do
	home=$root/triton-$version-$tag
	if ! there "$home" "$version"; then
		[[ -z $check ]] || cannot "no Triton $version in $home; run fetch-triton.sh without --check"
		[[ $(uname -s) == Linux ]] || cannot "the wheels hold Linux programs only; run this on Linux, $otherwise"
		"$python" -m pip --version >/dev/null 2>&1 || cannot "$python has no pip; install it (Debian: python3-pip), $otherwise"
		command -v flock >/dev/null || cannot "flock not found; install util-linux, $otherwise"
		mkdir -p "$root" 2>/dev/null && [[ -w $root ]] || cannot "cannot write to $root; set XDG_CACHE_HOME to a folder you may write to"
		exec 9>"$home.lock" || cannot "cannot write $home.lock"
		flock 9 || cannot "cannot lock $home.lock; set XDG_CACHE_HOME to a folder on a local disk"
		if ! there "$home" "$version"; then
			# Under the lock, whatever is still called .partial belongs to a run that was killed.
			rm -rf "$home".partial.* "$home"
			partial=$(mktemp -d "$home.partial.XXXXXX") || cannot "cannot make a folder beside $home; free some space there"
			trap 'rm -rf "$partial"' EXIT
			trap 'exit 130' INT
			trap 'exit 143' TERM HUP
			say "fetching Triton $version (200 to 300 MB, up to 1 GB unpacked) into $home"
			pins "$version" >"$partial/pins"
			"$python" -m pip download --quiet --no-deps --only-binary=:all: --require-hashes --retries 2 \
				--dest "$partial/wheels" --requirement "$partial/pins" >"$partial/log" 2>&1 ||
				cannot "the wheel could not be downloaded ($(grep -m1 '^ERROR' "$partial/log" || tail -n1 "$partial/log"));" \
					"check the network and pip's index, use Python 3.11 to 3.14, $otherwise"
			for wheel in "$partial"/wheels/*.whl; do
				"$python" -m zipfile -e "$wheel" "$partial/tree" >"$partial/log" 2>&1 ||
					cannot "${wheel##*/} could not be unpacked ($(tail -n1 "$partial/log")); free some space beside $home and try again"
			done
			# Kernels for AMD's GPUs and the profiler are not looked at here.
			rm -rf "$partial/tree/triton/backends/amd/lib" "$partial/tree/triton/profiler"
			# Python's unzip drops modes: a sandbox under another user id must run these too.
			chmod -R u+w,a+rX "$partial/tree"
			chmod a+x "$partial"/tree/triton/backends/nvidia/bin/*
			"$python" -I -m compileall -q "$partial/tree/triton" >/dev/null 2>&1 || true
			"$partial"/tree/triton/backends/nvidia/bin/ptxas --version >"$partial/log" 2>&1 ||
				cannot "its ptxas does not run here ($(tail -n1 "$partial/log")); set XDG_CACHE_HOME to a folder that allows programs to run"
			pins "$version" >"$partial/tree/$stamp"
			mv -T "$partial/tree" "$home" || cannot "cannot rename into $home"
			rm -rf "$partial"
			trap - EXIT
		fi
		flock -u 9
	fi
	printf '%s\n' "$home"
done
