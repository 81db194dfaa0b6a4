#!/usr/bin/env bash
# fetch-examples.sh fetches GitHub's example payloads and the schemas of its webhooks (npm: @octokit/webhooks-examples and
# @octokit/webhooks-schemas, MIT) for the tests. It changes nothing outside its cache folder.
#
#   fetch-examples.sh           fetch what is not there; the last two lines of stdout are the folders of examples and schemas
#   fetch-examples.sh --check   print the folders if they are there already, else exit 3; fetches nothing
#
# The folders are ${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate/webhooks-{examples,schemas}-<version>.
#
# Exit status: 0 there, 2 wrong usage, 3 cannot (the message says what to do).
set -euo pipefail

version=7.6.1
# npm's own integrity of the packages, in hex.
examples=0dee94dd707a3b70ed09aedb2a008ccd31dd7a8a6aa99e92362bcc6099caeb989eaca2f5027348034b644580914bb970193efdd9df8fb3559b7c796ca3a3329d
schemas=a96d01c2d6fbeabe26d96cd584a0f27c47849edd46110a118e40aa9aad99781d273550c9f99d8b0434bd1433f276eb8c5dffd94d6882269f4f1451e045f05edc

source "$(dirname "$0")/../../../../.ci/fetch-tool.sh"

# fetch KIND SHA512 SIZE prints the folder of @octokit/webhooks-KIND.
fetch() {
	local package=@octokit/webhooks-$1 home=$cache/webhooks-$1-$version tarball
	if [[ -d $home ]]; then
		printf '%s\n' "$home"
		return
	fi
	[[ -z $check ]] || cannot "no $package $version in $home; run fetch-examples.sh without --check"

	command -v npm >/dev/null || cannot "npm not found; install Node.js"
	partial "$home"

	say "fetching $package $version ($3) into $home"
	npm pack --silent --ignore-scripts "$package@$version" >log 2>&1 ||
		cannot "npm could not fetch it ($(tail -n1 log)); check the network and npm's registry"
	tarball=(*.tgz)
	printf '%s  %s\n' "$2" "${tarball[0]}" | sha512sum --check --status ||
		cannot "what npm fetched is not $package $version as it was pinned; check npm's registry"
	tar -xzf "${tarball[0]}" -C done --strip-components=1
	keep "$home" .
	rm -rf "$partial"
	printf '%s\n' "$home"
}

fetch examples "$examples" "0.4 MB, 9 MB unpacked"
fetch schemas "$schemas" "0.1 MB, 0.6 MB unpacked"
