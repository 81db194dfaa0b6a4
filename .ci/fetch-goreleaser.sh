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

say() { printf 'fetch-goreleaser: %s\n' "$*" >&2; }
cannot() {
	say "$*"
	exit 3
}

case "$#:${1-}" in
0:) check= ;;
1:--check) check=yes ;;
*)
	say "usage: fetch-goreleaser.sh [--check]"
	exit 2
	;;
esac

[[ -n ${XDG_CACHE_HOME-}${HOME-} ]] || cannot "neither HOME nor XDG_CACHE_HOME is set; set one of them"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate
home=$cache/goreleaser-$version
# The folder is renamed into place when it is whole.
if [[ -x $home/goreleaser ]]; then
	printf '%s\n' "$home/goreleaser"
	exit
fi
[[ -z $check ]] || cannot "no goreleaser in $home; run fetch-goreleaser.sh without --check"
command -v go >/dev/null || cannot "go not found; install Go"
mkdir -p "$cache" || cannot "cannot make $cache; set XDG_CACHE_HOME to a folder you may write to"
partial=$(mktemp -d "$home.partial.XXXXXX") || cannot "cannot make a folder next to $home; free some space there"
trap 'rm -rf "$partial"' EXIT

# The work tree's go.mod must not decide which modules goreleaser is built from.
cd "$partial"
export GOFLAGS=-trimpath GOWORK=off CGO_ENABLED=0
module=github.com/goreleaser/goreleaser/v2
fetched=$(go mod download -json "$module@$version" 2>"$partial/log") ||
	cannot "goreleaser could not be fetched ($(grep -m1 -oP '"Error": "\K[^"]*' <<<"$fetched" || tail -n1 "$partial/log")); check the network and GOPROXY"
grep -qF "\"Sum\": \"$sum\"" <<<"$fetched" ||
	cannot "the fetched module is not goreleaser $version as pinned; check GOPROXY"

say "building goreleaser $version into $home: some minutes"
GOBIN=$partial/done go install -ldflags='-s -w' "$module@$version" >"$partial/log" 2>&1 ||
	cannot "goreleaser could not be built ($(grep -v downloading "$partial/log" | head -n1)); check the network and GOPROXY"
"$partial/done/goreleaser" --version >"$partial/log" 2>&1 ||
	cannot "goreleaser does not run here ($(tail -n1 "$partial/log")); set XDG_CACHE_HOME to a folder that allows programs to run"
if ! mv -T "$partial/done" "$home" 2>/dev/null && [[ ! -x $home/goreleaser ]]; then
	cannot "cannot rename into $home; set XDG_CACHE_HOME to a folder you may write to"
fi
printf '%s\n' "$home/goreleaser"
