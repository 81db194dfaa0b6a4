#!/usr/bin/env bash
# download.sh DIR: downloads a released kernelgate to DIR, and prints the path of the program.
#
#   VERSION   a released version, such as v0.1.0; default is the one in the file "released" next to this script
#   SHA256    the digest of its archive for this machine; default is the one in that file
#   RELEASES  where releases are downloaded from
#
# The digest decides, not the host: an archive with a different digest is refused.
#
# Exit status: 0 downloaded, 1 refused, 2 wrong usage, 3 no released program can be downloaded (build it from source).
set -euo pipefail

say() { printf 'kernelgate: %s\n' "$*" >&2; }
unavailable() {
	say "$*"
	exit 3
}

[[ $# == 1 && -d $1 ]] || { say "usage: download.sh DIR"; exit 2; }
dir=$1
version=${VERSION-} digest=${SHA256-}
releases=${RELEASES:-https://github.com/kernelgate/kernelgate/releases/download}
[[ -z $version || $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || { say "version: \"$version\" is not a version such as v0.1.0"; exit 2; }
[[ -z $digest || $digest =~ ^[0-9a-f]{64}$ ]] || { say "sha256: \"$digest\" is not a SHA-256 digest of 64 hexadecimal digits"; exit 2; }
[[ -z $digest || -n $version ]] || { say "sha256: name the version, too"; exit 2; }

case $(uname -s)-$(uname -m) in
Linux-x86_64) machine=linux_amd64 ;;
Linux-aarch64) machine=linux_arm64 ;;
*) unavailable "there is no released program for $(uname -s) $(uname -m)" ;;
esac

# The file has lines of a version, a machine and a digest. The newest version is first.
while [[ -z $digest ]] && read -r a b c; do
	if [[ $b == "$machine" && ${version:-$a} == "$a" ]]; then version=$a digest=$c; fi
done < <(grep -v '^#' "$(dirname "${BASH_SOURCE[0]}")/released" || true)
if [[ -z $digest ]]; then
	[[ -z $version ]] || { say "sha256: no digest is known for $version on $machine; name it"; exit 2; }
	unavailable "no release is pinned"
fi

name=kernelgate_${version#v}_$machine
for tool in curl sha256sum tar gzip; do
	command -v "$tool" >/dev/null || unavailable "$tool not found"
done
curl --fail --silent --show-error --location --proto =https --retry 3 --connect-timeout 20 --max-time 300 \
	--output "$dir/$name.tar.gz" "$releases/$version/$name.tar.gz" || unavailable "$releases/$version/$name.tar.gz cannot be downloaded"
if ! printf '%s  %s\n' "$digest" "$dir/$name.tar.gz" | sha256sum --check --status; then
	say "$name.tar.gz has the digest $(sha256sum "$dir/$name.tar.gz" | cut -d' ' -f1), want $digest: refused"
	rm -f "$dir/$name.tar.gz"
	exit 1
fi
tar -xzf "$dir/$name.tar.gz" -C "$dir" kernelgate
rm "$dir/$name.tar.gz"
printf '%s\n' "$dir/kernelgate"
