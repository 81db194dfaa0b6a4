#!/usr/bin/env bash
# fetch-numpy.sh installs NumPy from its PyPI wheel, for references in Python: no root. It changes nothing outside its cache
# folder, ${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate/numpy-*. A Python that has NumPy already needs none.
#
#   fetch-numpy.sh           fetch it if it is not there; stdout names the folder
#   fetch-numpy.sh --check   name the folder if it is there already, else exit 3; fetches nothing
#
#   KERNELGATE_PYTHON   the Python that it is for (python3)
#
# Exit status: 0 there, 2 wrong usage, 3 cannot (the message says what to do).
set -euo pipefail

# An exact version with hashes: what judges others' code must not change under us. CPython 3.11 to 3.14, x86_64 and aarch64.
version=2.4.6
pins() {
	echo numpy==$version \
		--hash=sha256:{89cd468399cfd2504718f0ba50e410dca55a170b61a02ad92bb18c8a65186e93,0ab0a9c4ffb1a6d95ef519fe4247dba8eb6b18ad93999f76b7f657039acabd47} \
		--hash=sha256:{90f9849678c75fe7afa2d348ac842c168b0a4d3d61919687216dfc547976d853,5f9fb9157b4ce2971008323afe46053787b526ef624fea915b261468a8421a0f} \
		--hash=sha256:{a7830bab239b79cda9c08c2da014761cafb48da6150e1da17ac06283f43b6089,72fbe16c6fac95aedf5937fa873445cec2110be35d8a4e9433d7501fd98dae6b} \
		--hash=sha256:{a2c306dea656c12c68f51f4cea133cbe78ca7435eb28c735eac1d3ebe73be6e8,40fdc1ae7125e518ea98e53e69a4ebc27e1fd50510c47b7ea130cf21e5e1d42b}
}

say() { printf 'fetch-numpy: %s\n' "$*" >&2; }
cannot() {
	say "$*"
	exit 3
}
otherwise="or install NumPy yourself (pip install numpy) and set KERNELGATE_PYTHON to its Python"

case "$#:${1-}" in
0:) check= ;;
1:--check) check=yes ;;
1:-h | 1:--help)
	echo "usage: fetch-numpy.sh [--check]; prints the folder it made"
	exit 0
	;;
*)
	say "usage: fetch-numpy.sh [--check]"
	exit 2
	;;
esac

python=${KERNELGATE_PYTHON:-python3}
[[ -n ${XDG_CACHE_HOME-}${HOME-} ]] || cannot "neither HOME nor XDG_CACHE_HOME is set; set one of them"
root=${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate
command -v "$python" >/dev/null || cannot "$python not found; install python3 with pip, $otherwise"
tag=$("$python" -I -c 'import sys; print("cp%d%d" % sys.version_info[:2])') || cannot "$python is no Python 3; $otherwise"

# The stamp is written last and the folder renamed into place, so a matching stamp means a whole install.
stamp=.kernelgate-numpy
home=$root/numpy-$version-$tag
there() { [[ -f $home/$stamp && $(<"$home/$stamp") == "$(pins)" ]]; }

if ! there; then
	[[ -z $check ]] || cannot "no NumPy $version in $home; run fetch-numpy.sh without --check"
	[[ $(uname -s) == Linux ]] || cannot "the wheels are for Linux only; run this on Linux, $otherwise"
	"$python" -m pip --version >/dev/null 2>&1 || cannot "$python has no pip; install it (Debian: python3-pip), $otherwise"
	command -v flock >/dev/null || cannot "flock not found; install util-linux, $otherwise"
	mkdir -p "$root" 2>/dev/null && [[ -w $root ]] || cannot "cannot write to $root; set XDG_CACHE_HOME to a folder you may write to"
	exec 9>"$home.lock" || cannot "cannot write $home.lock"
	flock 9 || cannot "cannot lock $home.lock; set XDG_CACHE_HOME to a folder on a local disk"
	if ! there; then
		# Under the lock, whatever is still called .partial belongs to a run that was killed.
		rm -rf "$home".partial.* "$home"
		partial=$(mktemp -d "$home.partial.XXXXXX") || cannot "cannot make a folder beside $home; free some space there"
		trap 'rm -rf "$partial"' EXIT
		trap 'exit 130' INT
		trap 'exit 143' TERM HUP
		say "fetching NumPy $version (17 MB) into $home"
		pins >"$partial/pins"
		"$python" -m pip download --quiet --no-deps --only-binary=:all: --require-hashes --retries 2 \
			--dest "$partial/wheels" --requirement "$partial/pins" >"$partial/log" 2>&1 ||
			cannot "the wheel could not be downloaded ($(grep -m1 '^ERROR' "$partial/log" || tail -n1 "$partial/log"));" \
				"check the network and pip's index, use Python 3.11 to 3.14, $otherwise"
		for wheel in "$partial"/wheels/*.whl; do
			"$python" -m zipfile -e "$wheel" "$partial/tree" >"$partial/log" 2>&1 ||
				cannot "${wheel##*/} could not be unpacked ($(tail -n1 "$partial/log")); free some space beside $home and try again"
		done
		# Python's unzip drops modes: a sandbox under another user id must read these too.
		chmod -R u+w,a+rX "$partial/tree"
		"$python" -I -m compileall -q "$partial/tree/numpy" >/dev/null 2>&1 || true
		pins >"$partial/tree/$stamp"
		mv -T "$partial/tree" "$home" || cannot "cannot rename into $home"
		rm -rf "$partial"
		trap - EXIT
	fi
	flock -u 9
fi
printf '%s\n' "$home"
