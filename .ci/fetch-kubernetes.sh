#!/usr/bin/env bash
# fetch-kubernetes.sh fetches what the test of the Kubernetes manifests needs: kustomize, built from its Go module, and the
# JSON schemas of Kubernetes from the wheel of kubernetes-validate. No root, nothing is installed. It changes nothing outside
# its cache folder and Go's caches.
#
#   fetch-kubernetes.sh           fetch unless already there; the last line of stdout is the folder
#   fetch-kubernetes.sh --check   print the folder if it is there already, else exit 3; fetches nothing
#
# The folder is ${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate/kubernetes-<versions>, with kustomize and schemas.zip.
#
# Exit status: 0 there, 2 wrong usage, 3 cannot (the message says what to do).
set -euo pipefail

kustomize=v5.7.1
kustomize_sum=h1:sYJsarwy/SDJfjjLMUqwFDGPwzUtMOQ1i1Ed49+XSbw=
schemas=1.37.0
schemas_sha256=85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9

say() { printf 'fetch-kubernetes: %s\n' "$*" >&2; }
cannot() {
	say "$*"
	exit 3
}

case "$#:${1-}" in
0:) check= ;;
1:--check) check=yes ;;
*)
	say "usage: fetch-kubernetes.sh [--check]"
	exit 2
	;;
esac

[[ -n ${XDG_CACHE_HOME-}${HOME-} ]] || cannot "neither HOME nor XDG_CACHE_HOME is set; set one of them"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate
home=$cache/kubernetes-$kustomize-$schemas
# The folder is renamed into place when it is whole.
if [[ -x $home/kustomize ]]; then
	printf '%s\n' "$home"
	exit
fi
[[ -z $check ]] || cannot "no kustomize in $home; run fetch-kubernetes.sh without --check"
for program in go python3; do
	command -v $program >/dev/null || cannot "$program not found; install it"
done
mkdir -p "$cache" || cannot "cannot make $cache; set XDG_CACHE_HOME to a folder you may write to"
partial=$(mktemp -d "$home.partial.XXXXXX") || cannot "cannot make a folder next to $home; free some space there"
trap 'rm -rf "$partial"' EXIT
cd "$partial" # the go.mod of the work tree must not decide which modules kustomize is built from
mkdir done

say "fetching the schemas of Kubernetes, 23 MB, and building kustomize into $home: some minutes"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest wheel "kubernetes-validate==$schemas" >log 2>&1 ||
	cannot "kubernetes-validate could not be fetched ($(tail -n1 log)); check the network and pip"
echo "$schemas_sha256 $(echo wheel/*.whl)" | sha256sum --quiet --check - >log 2>&1 ||
	cannot "the fetched wheel is not kubernetes-validate $schemas as pinned; check the package index of pip"
mv wheel/*.whl done/schemas.zip

export GOFLAGS=-trimpath GOWORK=off CGO_ENABLED=0
module=sigs.k8s.io/kustomize/kustomize/v5
fetched=$(go mod download -json "$module@$kustomize" 2>log) ||
	cannot "kustomize could not be fetched ($(grep -m1 '"Error"' <<<"$fetched" || tail -n1 log)); check the network and GOPROXY"
grep -qF "\"Sum\": \"$kustomize_sum\"" <<<"$fetched" ||
	cannot "the fetched module is not kustomize $kustomize as pinned; check GOPROXY"
GOBIN=$partial/done go install -ldflags='-s -w' "$module@$kustomize" >log 2>&1 ||
	cannot "kustomize could not be built ($(grep -v downloading log | head -n1)); check the network and GOPROXY"
if ! mv -T done "$home" 2>/dev/null && [[ ! -x $home/kustomize ]]; then
	cannot "cannot rename into $home; set XDG_CACHE_HOME to a folder you may write to"
fi
printf '%s\n' "$home"
