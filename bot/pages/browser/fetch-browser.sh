#!/usr/bin/env bash
# fetch-browser.sh fetches a headless Chromium and axe-core from npm, for tests that inspect pages
# in a browser. It needs no root and installs nothing. It changes nothing outside of its cache
# folder, ${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate/browser-<versions>.
#
#   fetch-browser.sh           fetch if missing; the last line of stdout is the folder, which has
#                              chromium, lib, fonts and axe.min.js
#   fetch-browser.sh --check   print the folder if it exists, otherwise exit 3; fetch nothing
#
# Exit status: 0 the folder exists, 2 wrong usage, 3 impossible (the message says what to do).
set -euo pipefail

# This is the Chromium for serverless functions: one program with its libraries, which starts
# without a display.
chromium=153.0.0
chromium_sha256=20e5656fcdcf4118ede85edfb9d6bb9cc1bbb7ffb8b75622fffbcf36a835c3c0
axe=4.14.0
axe_sha256=2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af

say() { printf 'fetch-browser: %s\n' "$*" >&2; }
cannot() {
	say "$*"
	exit 3
}

case "$#:${1-}" in
0:) check= ;;
1:--check) check=yes ;;
*)
	say "usage: fetch-browser.sh [--check]"
	exit 2
	;;
esac

[[ -n ${XDG_CACHE_HOME-}${HOME-} ]] || cannot "neither HOME nor XDG_CACHE_HOME is set; set one of them"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate
home=$cache/browser-$chromium-$axe
# The folder is renamed into place when it is complete.
if [[ -d $home ]]; then
	printf '%s\n' "$home"
	exit
fi
[[ -z $check ]] || cannot "no browser in $home; run fetch-browser.sh without --check"
[[ $(uname -sm) == "Linux x86_64" ]] || cannot "the pinned Chromium is for Linux on x86_64, and this is $(uname -sm)"
for tool in npm node tar sha256sum; do
	command -v "$tool" >/dev/null || cannot "$tool not found; install it (Node.js brings npm and node)"
done
mkdir -p "$cache" || cannot "cannot make $cache; set XDG_CACHE_HOME to a folder you may write to"
partial=$(mktemp -d "$home.partial.XXXXXX") || cannot "cannot make a folder beside $home; free some space there"
trap 'rm -rf "$partial"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# unpack NAME VERSION SHA256 extracts an npm package to $partial/NAME, without its scope.
unpack() {
	local file
	file=$partial/$(cd "$partial" && npm pack --silent "$1@$2" 2>"$partial/log" | tail -n1) && [[ -f $file ]] ||
		cannot "$1 could not be fetched ($(tail -n1 "$partial/log")); check the network and npm's registry"
	printf '%s  %s\n' "$3" "$file" | sha256sum --check --status || cannot "what was fetched is not $1 $2 as it was pinned; check npm's registry"
	mkdir "$partial/${1##*/}"
	tar -xzf "$file" -C "$partial/${1##*/}" --strip-components=1
}

# plain FILE writes the content of a brotli-compressed file to stdout.
plain() {
	node -e 'const fs = require("fs"); fs.createReadStream(process.argv[1]).pipe(require("zlib").createBrotliDecompress()).pipe(process.stdout)' "$1"
}

say "fetching Chromium $chromium and axe-core $axe (71 MB, 220 MB unpacked) into $home"
unpack @sparticuz/chromium "$chromium" "$chromium_sha256"
unpack axe-core "$axe" "$axe_sha256"
mkdir "$partial/done"
plain "$partial/chromium/bin/chromium.br" >"$partial/done/chromium"
chmod 755 "$partial/done/chromium"
for part in al2023 fonts; do
	plain "$partial/chromium/bin/$part.tar.br" | tar -x --no-same-owner -C "$partial/done"
done
mv "$partial/axe-core/axe.min.js" "$partial/done/"
# Use the host's fonts, if there are any, and the font from the package.
cat >"$partial/done/fonts.conf" <<END
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
END
chmod -R a+rX "$partial/done"
LD_LIBRARY_PATH=$partial/done/lib "$partial/done/chromium" --version >"$partial/log" 2>&1 ||
	cannot "Chromium does not run here ($(tail -n1 "$partial/log")); set XDG_CACHE_HOME to a folder that allows programs to run"
if ! mv -T "$partial/done" "$home" 2>/dev/null && [[ ! -d $home ]]; then
	cannot "cannot rename into $home; set XDG_CACHE_HOME to a folder you may write to"
fi
printf '%s\n' "$home"
