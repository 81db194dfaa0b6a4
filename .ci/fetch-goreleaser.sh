#!/usr/bin/env bash
# fetch-goreleaser.sh builds goreleaser from its Go module: no root, nothing is installed. It changes nothing outside its
# cache folder and Go's caches. Go compares each module with the checksum database, and this script compares
# goreleaser's module with the checksum below. It takes some minutes, once.
#
#   fetch-goreleaser.sh           build unless already there; the last line of stdout is the program
#   fetch-goreleaser.sh --check   print the program if it is there already, else exit 3; builds nothing
#
# The program is ${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate/goreleaser-<version>/goreleaser.
#
# Exit status: 0 there, 2 wrong usage, 3 cannot (the message says what to do).
set -euo pipefail

version=v2.16.0
sum=h1:MgAx2uKCUXqv993rAVMd8Uk/HwzJdSz033z9kTta6kk=

source "$(dirname "$0")/fetch-tool.sh"

home=$cache/goreleaser-$version
if [[ -x $home/goreleaser ]]; then
	printf '%s\n' "$home/goreleaser"
	exit
fi
[[ -z $check ]] || cannot "no goreleaser in $home; run fetch-goreleaser.sh without --check"
command -v go >/dev/null || cannot "go not found; install Go"
partial "$home"

say "building goreleaser $version into $home: some minutes"
module goreleaser github.com/goreleaser/goreleaser/v2 $version $sum
done/goreleaser --version >log 2>&1 ||
	cannot "goreleaser does not run here ($(tail -n1 log)); set XDG_CACHE_HOME to a folder that allows programs to run"
keep "$home" goreleaser
printf '%s\n' "$home/goreleaser"
