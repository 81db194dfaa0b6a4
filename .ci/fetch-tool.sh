# fetch-tool.sh is for scripts that fetch a tool of the tests into a cache folder: they source it with their own arguments. It
# defines say, cannot, partial, module and keep, and sets check and cache.

script=$(basename "$0")
say() { printf '%s: %s\n' "${script%.sh}" "$*" >&2; }
cannot() {
	say "$*"
	exit 3
}

case "$#:${1-}" in
0:) check= ;;
1:--check) check=yes ;;
*)
	say "usage: $script [--check]"
	exit 2
	;;
esac

[[ -n ${XDG_CACHE_HOME-}${HOME-} ]] || cannot "neither HOME nor XDG_CACHE_HOME is set; set one of them"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kernelgate

# partial HOME: goes to a new folder next to the tool's own, which is renamed into place when it is whole. The go.mod of the
# work tree must not decide which modules a tool is built from.
partial() {
	mkdir -p "$cache" || cannot "cannot make $cache; set XDG_CACHE_HOME to a folder you may write to"
	partial=$(mktemp -d "$1.partial.XXXXXX") || cannot "cannot make a folder next to $1; free some space there"
	trap 'rm -rf "$partial"' EXIT
	cd "$partial"
	mkdir done
}

# module NAME MODULE VERSION SUM [FOLDER]: builds a program from its Go module, or a folder of it, into done/.
module() {
	local fetched
	export GOFLAGS=-trimpath GOWORK=off CGO_ENABLED=0
	fetched=$(go mod download -json "$2@$3" 2>log) ||
		cannot "$1 could not be fetched ($(grep -m1 -oP '"Error": "\K[^"]*' <<<"$fetched" || tail -n1 log)); check the network and GOPROXY"
	grep -qF "\"Sum\": \"$4\"" <<<"$fetched" ||
		cannot "the fetched module is not $1 $3 as pinned; check GOPROXY"
	GOBIN=$partial/done go install -ldflags='-s -w' "$2${5+/$5}@$3" >log 2>&1 ||
		cannot "$1 could not be built ($(grep -v downloading log | head -n1)); check the network and GOPROXY"
}

# keep HOME FILE: renames done/ into place. A different process may have been faster: then FILE is there already.
keep() {
	if ! mv -T done "$1" 2>/dev/null && [[ ! -x $1/$2 ]]; then
		cannot "cannot rename into $1; set XDG_CACHE_HOME to a folder you may write to"
	fi
}
