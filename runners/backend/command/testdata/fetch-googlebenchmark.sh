#!/usr/bin/env bash
# fetch-googlebenchmark.sh fetches the library Google Benchmark (Apache-2.0) from its Debian packages, for a test with a real
# binary: no root, nothing is installed. It changes nothing outside its cache folder.
#
#   fetch-googlebenchmark.sh           fetch unless already there; the last line of stdout is the folder, with include and lib
#   fetch-googlebenchmark.sh --check   print the folder if it is there already, else exit 3; fetches nothing
#
# The folder is ${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate/googlebenchmark-<version>.
#
# Exit status: 0 there, 2 wrong usage, 3 cannot (the message says what to do).
set -euo pipefail

version=1.7.1-1
pool=https://deb.debian.org/debian/pool/main/b/benchmark
dev=82c9048e75f3d83b3b8a349144d5ca55487eb370b34167ffe12f8060300ed462
library=59f0902a880853ef0fc658ecee85da35dd2ab03485a7cf305cad233e8b607621

source "$(dirname "$0")/../../../../.ci/fetch-tool.sh"

home=$cache/googlebenchmark-$version
if [[ -d $home ]]; then
	printf '%s\n' "$home"
	exit
fi
[[ -z $check ]] || cannot "no Google Benchmark in $home; run fetch-googlebenchmark.sh without --check"
[[ $(uname -m) == x86_64 ]] || cannot "the pinned packages are for x86_64, and this is $(uname -m)"
for tool in curl ar tar xz; do
	command -v "$tool" >/dev/null || cannot "$tool not found; install it"
done
partial "$home"

# unpack PACKAGE SHA256
unpack() {
	local file=$1.deb
	curl -fsSL --max-time 60 -o "$file" "$pool/$1_${version}_amd64.deb" 2>log ||
		cannot "$1 could not be fetched ($(tail -n1 log)); check the network and Debian's mirror"
	printf '%s  %s\n' "$2" "$file" | sha256sum --check --status ||
		cannot "what was fetched is not $1 $version as it was pinned; check Debian's mirror"
	ar p "$file" data.tar.xz | tar -xJ
}

say "fetching Google Benchmark $version (0.2 MB) into $home"
unpack libbenchmark-dev "$dev"
unpack libbenchmark1debian "$library"
mkdir done/lib
mv usr/include done/include
# Links would not survive being copied into a kernel's folder.
cp -L usr/lib/x86_64-linux-gnu/libbenchmark.so.1debian done/lib/
cp -L usr/lib/x86_64-linux-gnu/libbenchmark.so done/lib/
keep "$home" lib
printf '%s\n' "$home"
