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

source "$(dirname "$0")/fetch-tool.sh"

home=$cache/kubernetes-$kustomize-$schemas
if [[ -x $home/kustomize ]]; then
	printf '%s\n' "$home"
	exit
fi
[[ -z $check ]] || cannot "no kustomize in $home; run fetch-kubernetes.sh without --check"
for program in go python3; do
	command -v $program >/dev/null || cannot "$program not found; install it"
done
partial "$home"

say "fetching the schemas of Kubernetes, 23 MB, and building kustomize into $home: some minutes"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest wheel "kubernetes-validate==$schemas" >log 2>&1 ||
	cannot "kubernetes-validate could not be fetched ($(tail -n1 log)); check the network and pip"
echo "$schemas_sha256 $(echo wheel/*.whl)" | sha256sum --quiet --check - >log 2>&1 ||
	cannot "the fetched wheel is not kubernetes-validate $schemas as pinned; check the package index of pip"
mv wheel/*.whl done/schemas.zip

module kustomize sigs.k8s.io/kustomize/kustomize/v5 $kustomize $kustomize_sum
keep "$home" kustomize
printf '%s\n' "$home"
