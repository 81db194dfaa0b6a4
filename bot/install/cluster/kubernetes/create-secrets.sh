#!/usr/bin/env bash
# create-secrets.sh creates the tokens, keys and certificates for Kubernetes in a folder. It never replaces an existing file.
#   ./create-secrets.sh FOLDER [RUNNER…]     runners: cpu-0 gpu-0 unless given
# After you have added a runner, run it again with the new name. NATS_NAMES=DNS:…,DNS:… are other names of the NATS servers.
set -euo pipefail
umask 077
[ $# -ge 1 ] || { echo "usage: create-secrets.sh FOLDER [RUNNER…]" >&2; exit 2; }
dir=$1
shift
[ $# -gt 0 ] || set -- cpu-0 gpu-0
mkdir -p "$dir"/{bot,tokens,ca,bot-tls,nats-tls,nats-client}
cd "$dir"
for file in bot/webhook-secret bot/operator-token "${@/#/tokens/}"; do
	[ -e "$file" ] || openssl rand -hex 32 >"$file"
done
[ -e ca/ca.crt ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=kernelgate-ca \
	-addext keyUsage=critical,keyCertSign,cRLSign -keyout ca/ca.key -out ca/ca.crt 2>/dev/null

certificate() { # folder, subject, usage, names
	[ ! -e "$1/tls.crt" ] || return 0
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$2" -keyout "$1/tls.key" -out "$1/tls.csr" 2>/dev/null
	openssl x509 -req -in "$1/tls.csr" -CA ca/ca.crt -CAkey ca/ca.key -days 825 -out "$1/tls.crt" -extfile /dev/stdin 2>/dev/null <<<"
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=$3
${4:+subjectAltName=$4}"
	rm "$1/tls.csr"
	cp ca/ca.crt "$1/ca.crt"
}
# The names under which runners reach the bots, and the bots and servers reach the NATS servers.
certificate bot-tls /CN=kernelgate serverAuth DNS:bot-0.bot.kernelgate.svc,DNS:bot-1.bot.kernelgate.svc
certificate nats-tls /CN=kernelgate-nats serverAuth,clientAuth "${NATS_NAMES:-DNS:nats-0.nats,DNS:nats-1.nats,DNS:nats-2.nats}"
certificate nats-client /CN=kernelgate-bot clientAuth
echo "created in $dir: put the App's private-key.pem into $dir/bot, and replace bot/webhook-secret if GitHub has one already"
