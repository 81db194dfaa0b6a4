#!/usr/bin/env bash
# fetch-examples.sh fetches GitHub's example payloads (npm: @octokit/webhooks-examples, MIT) for the tests.
# It changes nothing outside its cache folder.
#
#   fetch-examples.sh           fetch unless already there; the last line of stdout is the folder
#   fetch-examples.sh --check   print the folder if it is there already, else exit 3; fetches nothing
#
# The folder is ${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate/webhooks-examples-<version>.
#
# Exit status: 0 there, 2 wrong usage, 3 cannot (the message says what to do).
set -euo pipefail

package=@octokit/webhooks-examples
version=7.6.1
# npm's own integrity of the package, in hex.
sha512=0dee94dd707a3b70ed09aedb2a008ccd31dd7a8a6aa99e92362bcc6099caeb989eaca2f5027348034b644580914bb970193efdd9df8fb3559b7c796ca3a3329d

say() { printf 'fetch-examples: %s\n' "$*" >&2; }
cannot() {
	say "$*"
	exit 3
}

case "$#:${1-}" in
0:) check= ;;
1:--check) check=yes ;;
*)
	say "usage: fetch-examples.sh [--check]"
	exit 2
	;;
esac

[[ -n ${XDG_CACHE_HOME-}${HOME-} ]] || cannot "neither HOME nor XDG_CACHE_HOME is set; set one of them"
home=${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate/webhooks-examples-$version

# The folder is renamed into place when it is whole.
if [[ -d $home ]]; then
	printf '%s\n' "$home"
	exit 0
fi
[[ -z $check ]] || cannot "no $package $version in $home; run fetch-examples.sh without --check"

command -v npm >/dev/null || cannot "npm not found; install Node.js"
mkdir -p "${home%/*}" || cannot "cannot make ${home%/*}; set XDG_CACHE_HOME to a folder you may write to"
partial=$(mktemp -d "$home.partial.XXXXXX") || cannot "cannot make a folder beside $home; free some space there"
trap 'rm -rf "$partial"' EXIT

say "fetching $package $version (0.4 MB, 9 MB unpacked) into $home"
(cd "$partial" && npm pack --silent --ignore-scripts "$package@$version" >log 2>&1) ||
	cannot "npm could not fetch it ($(tail -n1 "$partial/log")); check the network and npm's registry"
tarball=("$partial"/*.tgz)
printf '%s  %s\n' "$sha512" "${tarball[0]}" | sha512sum --check --status ||
	cannot "what npm fetched is not $package $version as it was pinned; check npm's registry"
tar -xzf "${tarball[0]}" -C "$partial"
if ! mv -T "$partial/package" "$home" 2>/dev/null && [[ ! -d $home ]]; then
	cannot "cannot rename into $home; set XDG_CACHE_HOME to a folder you may write to"
fi
printf '%s\n' "$home"
