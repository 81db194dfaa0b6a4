#!/usr/bin/env bash
# fetch-nfpm.sh builds nfpm, which writes the deb and rpm packages of a release, from its Go module: no root, nothing is
# installed. It changes nothing outside its cache folder and Go's caches. Go compares each module with the checksum database,
# and this script compares nfpm's module with the checksum below. It takes a minute or two, once.
#
#   fetch-nfpm.sh           build unless already there; the last line of stdout is the program
#   fetch-nfpm.sh --check   print the program if it is there already, else exit 3; builds nothing
#
# The program is ${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate/nfpm-<version>/nfpm.
#
# Exit status: 0 there, 2 wrong usage, 3 cannot (the message says what to do).
set -euo pipefail

version=v2.45.1
sum=h1:23u8so8xqw/2vCRLxUFQgtOEB7sRXzKb5lx9rdjmPD8=

source "$(dirname "$0")/fetch-tool.sh"

home=$cache/nfpm-$version
if [[ -x $home/nfpm ]]; then
	printf '%s\n' "$home/nfpm"
	exit
fi
[[ -z $check ]] || cannot "no nfpm in $home; run fetch-nfpm.sh without --check"
command -v go >/dev/null || cannot "go not found; install Go"
partial "$home"

say "building nfpm $version into $home: a minute or two"
module nfpm github.com/goreleaser/nfpm/v2 $version $sum cmd/nfpm
done/nfpm --version >log 2>&1 ||
	cannot "nfpm does not run here ($(tail -n1 log)); set XDG_CACHE_HOME to a folder that allows programs to run"
keep "$home" nfpm
printf '%s\n' "$home/nfpm"
