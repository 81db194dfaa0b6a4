#!/usr/bin/env bash
# fetch-python.sh installs a Python package from its PyPI wheels: no root, no GPU, no driver. It changes nothing outside its cache
# folders, ${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate/PACKAGE-*.
#
#   fetch-python.sh PACKAGE           fetch what is not there; stdout names the folders
#   fetch-python.sh PACKAGE --check   name the folders if all are there already, else exit 3; fetches nothing
#
# PACKAGE is one of
#   triton    Triton without torch, in two versions whose machine code differs in form
#   numpy     NumPy, for references in Python; a Python that has NumPy already needs none
#   cutedsl   CuTe DSL in a separate Python environment, for the example that is compiled by a command
#   schemathesis   requests from an OpenAPI description, and a validator of descriptions, in a separate Python environment
#
#   KERNELGATE_PYTHON   the Python that it is for (python3)
#
# Exit status: 0 there, 2 wrong usage, 3 cannot (the message says what to do).
set -euo pipefail

say() { printf 'fetch-python: %s\n' "$*" >&2; }
cannot() {
	say "$*"
	exit 3
}
usage="usage: fetch-python.sh triton|numpy|cutedsl|schemathesis [--check]"

case "$#:${2-}" in
1:) check= ;;
2:--check) check=yes ;;
*)
	say "$usage"
	exit 2
	;;
esac
case $1 in
triton)
	name=Triton versions="3.6.0 3.9.0" size="200 to 300 MB, up to 1 GB unpacked"
	otherwise="or install Triton yourself (pip install triton) and set KERNELGATE_PYTHON to its Python"
	;;
numpy)
	name=NumPy versions=2.4.6 size="17 MB"
	otherwise="or install NumPy yourself (pip install numpy) and set KERNELGATE_PYTHON to its Python"
	;;
cutedsl)
	name="CuTe DSL" versions=4.8.1 size="about 105 MB, 300 MB unpacked"
	otherwise="or leave it: one example is not compiled then"
	;;
schemathesis)
	name=Schemathesis versions=4.32.5 size="about 20 MB, 80 MB unpacked"
	otherwise="or leave it: make test-long does not send random requests to the server then"
	;;
-h | --help)
	echo "$usage; prints the folders it made"
	exit 0
	;;
*)
	say "$usage"
	exit 2
	;;
esac
package=$1

# Exact versions with hashes: what judges others' code must not change under us. CPython 3.11 to 3.14, x86_64 and aarch64.
pins() {
	case $package-$1 in
	triton-3.6.0) echo triton==3.6.0 \
		--hash=sha256:{e8e323d608e3a9bfcc2d9efcc90ceefb764a82b99dea12a86d643c72539ad5d3,49df5ef37379c0c2b5c0012286f80174fcf0e073e5ade1ca9a86c36814553651} \
		--hash=sha256:{74caf5e34b66d9f3a429af689c1c7128daba1d8208df60e81106b115c00d6fca,374f52c11a711fd062b4bfbb201fd9ac0a5febd28a96fb41b4a0f51dde3157f4} \
		--hash=sha256:{10c7f76c6e72d2ef08df639e3d0d30729112f47a56b0c81672edc05ee5116ac9,448e02fe6dc898e9e5aa89cf0ee5c371e99df5aa5e8ad976a80b93334f3494fd} \
		--hash=sha256:{a17a5d5985f0ac494ed8a8e54568f092f7057ef60e1b0fa09d3fd1512064e803,ef5523241e7d1abca00f1d240949eebdd7c673b005edbbce0aca95b8191f1d43} ;;
	triton-3.9.0) echo triton==3.9.0 \
		--hash=sha256:{1622118a038b0c6e16fa4a0305da62c8b3c15904ee1cc4d4e65846a25969e41e,feaaec13578ca84301d561d034cb08b3ae293d7f0b7ab6b8ddbb2d6796363716} \
		--hash=sha256:{5e52ab4e2f1d64f0ac494c9aa723697b793f81a91c4cae4c36608ca0bc4267bf,5542f4328472fd827dbb1ec43873364c2894682cc3f5d1c74a643762900e243e} ;;
	numpy-2.4.6) echo numpy==2.4.6 \
		--hash=sha256:{89cd468399cfd2504718f0ba50e410dca55a170b61a02ad92bb18c8a65186e93,0ab0a9c4ffb1a6d95ef519fe4247dba8eb6b18ad93999f76b7f657039acabd47} \
		--hash=sha256:{90f9849678c75fe7afa2d348ac842c168b0a4d3d61919687216dfc547976d853,5f9fb9157b4ce2971008323afe46053787b526ef624fea915b261468a8421a0f} \
		--hash=sha256:{a7830bab239b79cda9c08c2da014761cafb48da6150e1da17ac06283f43b6089,72fbe16c6fac95aedf5937fa873445cec2110be35d8a4e9433d7501fd98dae6b} \
		--hash=sha256:{a2c306dea656c12c68f51f4cea133cbe78ca7435eb28c735eac1d3ebe73be6e8,40fdc1ae7125e518ea98e53e69a4ebc27e1fd50510c47b7ea130cf21e5e1d42b} ;;
	cutedsl-4.8.1)
		cat <<-'PINS'
			nvidia-cutlass-dsl==4.8.1 --hash=sha256:43ed46b21d151aa643c6765457c7310827b938c1cf45d5109a0152de4ef06227
			nvidia-cutlass-dsl-libs-core==4.8.1 --hash=sha256:bacc6760e3286db447d45720d32ae58ac2e6cecade1152345ef784b2d5e44431
			nvidia-cutlass-dsl-libs-base==4.8.1 --hash=sha256:04f60d4815d40b8588dc12bc58572923619f1b9547936195e80634a9468c0fb2 --hash=sha256:8d51bae072ed83cf559a8a28335d40eb40f1fef5e0511c405d9e1da6fd2b1320 --hash=sha256:ac2fd8c7fa3d6ded00917fa7cba8686061005da8c4703c6a29e03c1504543909 --hash=sha256:c6312f8b2f1aadd959a0276daf3c4bacc05c783c6ea1119859ed4ebd3c07e3b1 --hash=sha256:334d8b219ff9504479e50ef86fadaa5695a11f21a87e5c87a75354b0d6ba10fc --hash=sha256:7bc199a0244176849b1a971cbc37fc4164f70b7121a7b426c9c42bdf2403cb19 --hash=sha256:16941a44d4e8a7633dbe66d3e5b64ed4c136134bf14fd57db84cbdf57092e72b --hash=sha256:e84b1ca6a138a4f462b40ba0554b017fbced3b6e825333512d9e1b01d6518f89
			nvidia-cutlass-dsl-libs-cu12==4.8.1 --hash=sha256:dfa8be20b257bfb50a8843928277176b69a58ec3a0fcf22d7d4825f2c383ed81 --hash=sha256:70ac0e10918387e5b1b32bb3bc08ea56556c4e500c389dc68a178c5d4e98f3df --hash=sha256:440b88739120c65d96c5f15bbe496a3bd7c26392874d5af6061d38497f84c70c --hash=sha256:c89d9ff9574e94561e17be23c0c06d67fc1edb6a4bc3eb067f38a1dc1f682b6e --hash=sha256:49d2a6413aef69b606bded3c4bc481233542b9f93cde241f8695a7ea62b4f228 --hash=sha256:249b2947f500d13aec562bd527c99135c43b520332d982f047a86661e7c6a929 --hash=sha256:e21d95e78c80f63c90eb00481458994906ef0f7fd1eb4ab57b23425b38d4c7a1 --hash=sha256:e4d3e7c07dfe9d57f85a623853bf8f0e453ce70613079bf1e9be68da0ef07aca
			cuda-bindings==13.5.0 --hash=sha256:08b7e8d674c3266facb00453a7e34ea7d3ea965c2f594bb728f269f45f39fbe2 --hash=sha256:71c15ed97099a8ef416515d80ddd10770e0f6339234e16855a526d2896516631 --hash=sha256:a46a8cc84112d769d0f57bf3ae3fedc115cf09348f14da85a1a8200968b6f262 --hash=sha256:40eadfad6ae1554f8c1aa456620a85a49a275fc902f2c6dd93ee8c488b2c5e9f --hash=sha256:d47b6f6d0398f97c82e2525eefb02e7252848e48c902824f6a6b6467a5902894 --hash=sha256:cf525b2c2113fdfd2b10899a3e5d280520e970aa13c6ca021e83d9d02f895ed1 --hash=sha256:99746f2928150042191edf7952323bb22e8f104f7bcee787bd7e2001a8bba70b --hash=sha256:da7fafa0eb222b980dc931281d1b53f822c34efb33e72ae14b0e1ce216232afd
			cuda-pathfinder==1.8.6 --hash=sha256:bf6b3b06323cf95a11d671818392da5da23ddbbb4dfc4b77ca10622783c25980
			protobuf==7.36.2 --hash=sha256:89f23aa53c24553a2416fd4fd1ec06f74fa42b14b546d8883128813f775bbfd2 --hash=sha256:e11e1f0180583a2af89db6a2ecd9e8dc40aa6d2988ca175bfd0e6d12ea72d74e
			typing-extensions==4.16.0 --hash=sha256:481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8
		PINS
		;;
	schemathesis-4.32.5) cat "$here/fetch-schemathesis.txt" ;;
	esac
}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# unpack PACKAGE's wheels into a folder.
unpack() {
	"$python" -m pip download --quiet --no-deps --only-binary=:all: --require-hashes --retries 2 \
		--dest "$partial/wheels" --requirement "$partial/pins" >"$partial/log" 2>&1 ||
		cannot "the wheel could not be downloaded ($(grep -m1 '^ERROR' "$partial/log" || tail -n1 "$partial/log"));" \
			"check the network and pip's index, use Python 3.11 to 3.14, $otherwise"
	for wheel in "$partial"/wheels/*.whl; do
		"$python" -m zipfile -e "$wheel" "$1" >"$partial/log" 2>&1 ||
			cannot "${wheel##*/} could not be unpacked ($(tail -n1 "$partial/log")); free some space beside $home and try again"
	done
}

# install_PACKAGE makes the folder of the package, and sees that it works. Python's unzip drops modes: a sandbox under another
# user id must read and run these too.
install_triton() {
	unpack "$1"
	# Kernels for AMD's GPUs and the profiler are not looked at here.
	rm -rf "$1/triton/backends/amd/lib" "$1/triton/profiler"
	chmod -R u+w,a+rX "$1"
	chmod a+x "$1"/triton/backends/nvidia/bin/*
	"$python" -I -m compileall -q "$1/triton" >/dev/null 2>&1 || true
	"$1"/triton/backends/nvidia/bin/ptxas --version >"$partial/log" 2>&1 ||
		cannot "its ptxas does not run here ($(tail -n1 "$partial/log")); set XDG_CACHE_HOME to a folder that allows programs to run"
}
install_numpy() {
	unpack "$1"
	chmod -R u+w,a+rX "$1"
	"$python" -I -m compileall -q "$1/numpy" >/dev/null 2>&1 || true
}
# environment FOLDER CHECK installs the wheels into a separate Python environment, and runs CHECK in it.
environment() {
	"$python" -m venv --without-pip "$1" >"$partial/log" 2>&1 ||
		cannot "$python cannot make an environment ($(tail -n1 "$partial/log")); install python3-venv, $otherwise"
	"$python" -m pip install --quiet --no-deps --only-binary=:all: --require-hashes --retries 2 --ignore-installed --no-warn-script-location \
		--prefix "$1" --requirement "$partial/pins" >"$partial/log" 2>&1 ||
		cannot "the wheels could not be installed ($(grep -m1 '^ERROR' "$partial/log" || tail -n1 "$partial/log"));" \
			"check the network and pip's index, use Python 3.11 to 3.14, $otherwise"
	chmod -R u+w,a+rX "$1"
	"$1/bin/python" -I -c "$2" >"$partial/log" 2>&1 ||
		cannot "it does not run here ($(tail -n1 "$partial/log")); $otherwise"
}
install_cutedsl() { environment "$1" 'import cutlass.cute'; }
install_schemathesis() { environment "$1" 'import schemathesis, openapi_spec_validator'; }

python=${KERNELGATE_PYTHON:-python3}
[[ -n ${XDG_CACHE_HOME-}${HOME-} ]] || cannot "neither HOME nor XDG_CACHE_HOME is set; set one of them"
root=${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate
command -v "$python" >/dev/null || cannot "$python not found; install python3 with pip, $otherwise"
tag=$("$python" -I -c 'import sys; print("cp%d%d" % sys.version_info[:2])') || cannot "$python is no Python 3; $otherwise"

# The stamp is written last and the folder renamed into place, so a matching stamp means a whole install.
stamp=.kernelgate-$package
there() { [[ -f $home/$stamp && $(<"$home/$stamp") == "$(pins "$version")" ]]; }

for version in $versions; do
	home=$root/$package-$version-$tag
	if ! there; then
		[[ -z $check ]] || cannot "no $name $version in $home; run fetch-python.sh $package without --check"
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
			say "fetching $name $version ($size) into $home"
			pins "$version" >"$partial/pins"
			"install_$package" "$partial/tree"
			pins "$version" >"$partial/tree/$stamp"
			mv -T "$partial/tree" "$home" || cannot "cannot rename into $home"
			rm -rf "$partial"
			trap - EXIT
		fi
		flock -u 9
	fi
	printf '%s\n' "$home"
done
