#!/usr/bin/env bash
# create-secrets.sh creates the tokens, keys and certificates for Kubernetes in a folder, and lists them in its
# kustomization.yaml. It replaces an existing file only if asked to.
#   ./create-secrets.sh FOLDER [RUNNER…]     creates what is missing; runners: cpu-0 gpu-0 unless given
#   ./create-secrets.sh --renew FOLDER       replaces the certificates and their keys; the CA stays
#   ./create-secrets.sh --renew-ca FOLDER    replaces the CA in three steps: run it, apply and wait for the rollout, three times
# After you have added a runner, run it again with the new name. NATS_NAMES=DNS:…,DNS:… are other
# names of the NATS servers; set it for every run.
set -euo pipefail
umask 077
usage() {
	echo "usage: create-secrets.sh [--renew|--renew-ca] FOLDER [RUNNER…]" >&2
	exit 2
}
task=create
case ${1-} in
--renew | --renew-ca) task=${1#--} && shift ;;
-*) usage ;;
esac
[ $# -ge 1 ] && [ -n "$1" ] || usage
dir=$1
shift
if [ $task = create ]; then
	[ $# -gt 0 ] || set -- cpu-0 gpu-0
elif [ $# -gt 0 ]; then
	usage
elif [ ! -e "$dir/ca/ca.key" ]; then
	echo "create-secrets.sh: $dir has no ca/ca.key: name the folder that create-secrets.sh created" >&2
	exit 2
fi
mkdir -p "$dir"/{bot,tokens,ca,trust,bot-tls,nats-tls,nats-client}
cd "$dir"

authority() { # name of the file: ca, or next
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=kernelgate-ca-$(openssl rand -hex 4)" \
		-addext keyUsage=critical,keyCertSign,cRLSign -keyout "ca/$1.key" -out "ca/$1.new" 2>/dev/null
	mv "ca/$1.new" "ca/$1.crt"
}

certificate() { # folder, subject, usage, names
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$2" -keyout "$1/new.key" -out "$1/new.csr" 2>/dev/null
	openssl x509 -req -in "$1/new.csr" -CA ca/ca.crt -CAkey ca/ca.key -days 825 -out "$1/new.crt" -extfile /dev/stdin 2>/dev/null <<<"
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=$3
${4:+subjectAltName=$4}"
	rm "$1/new.csr"
	mv "$1/new.key" "$1/tls.key"
	mv "$1/new.crt" "$1/tls.crt"
}

certificates() { # the folders that get a certificate
	local folder
	for folder; do
		# The names under which runners reach the bots, and the bots and servers reach the NATS servers.
		case $folder in
		bot-tls) certificate bot-tls /CN=kernelgate serverAuth DNS:bot-0.bot.kernelgate.svc,DNS:bot-1.bot.kernelgate.svc ;;
		nats-tls) certificate nats-tls /CN=kernelgate-nats serverAuth,clientAuth "${NATS_NAMES:-DNS:nats-0.nats,DNS:nats-1.nats,DNS:nats-2.nats}" ;;
		nats-client) certificate nats-client /CN=kernelgate-bot clientAuth ;;
		esac
	done
}

current() { # whether every certificate is of the current CA
	local folder
	for folder in bot-tls nats-tls nats-client; do
		openssl verify -no-CApath -no-CAstore -partial_chain -CAfile ca/ca.crt $folder/tls.crt >/dev/null 2>&1 || return 1
	done
}

did=
case $task in
create)
	for file in bot/webhook-secret bot/operator-token "${@/#/tokens/}"; do
		[ -e "$file" ] || openssl rand -hex 32 >"$file"
	done
	[ -e ca/ca.crt ] || authority ca
	for folder in bot-tls nats-tls nats-client; do
		[ -e $folder/tls.crt ] || certificates $folder
	done
	did="created in $dir"
	[ -e bot/private-key.pem ] || did+=": put the App's private-key.pem into $dir/bot, and replace bot/webhook-secret if GitHub has one already"
	;;
renew)
	certificates bot-tls nats-tls nats-client
	did="renewed the certificates in $dir. Apply them."
	;;
renew-ca)
	# Certificates of the old CA and of the new one are in use while pods are replaced one by one. So everybody must trust the new
	# CA before its first certificate is used, and the old one until its last certificate is gone.
	if [ ! -e ca/next.crt ] && [ ! -e ca/old.crt ]; then
		authority next
		did="step 1 of 3: a new CA is trusted in addition to the old one. Apply, wait for the rollout, and run this again."
	elif [ -e ca/next.crt ] || ! current; then
		[ -e ca/old.crt ] || cp ca/ca.crt ca/old.crt
		[ ! -e ca/next.key ] || mv ca/next.key ca/ca.key
		[ ! -e ca/next.crt ] || mv ca/next.crt ca/ca.crt
		certificates bot-tls nats-tls nats-client
		did="step 2 of 3: all certificates are of the new CA. Apply, wait for the rollout, and run this again."
	else
		rm ca/old.crt
		did="step 3 of 3: the old CA is not trusted any more. Apply."
	fi
	;;
esac

# What is trusted: the CA, and during a change also the next or the old one.
for file in ca next old; do
	if [ -e ca/$file.crt ]; then cat ca/$file.crt; fi
done >trust/ca.crt
for folder in bot-tls nats-tls nats-client; do cp trust/ca.crt $folder/ca.crt; done

files() { # folder, and a file that must be in it
	(ls "$1" && echo "${2-}") | sed '/^$/d' | sort -u | sed "s|^|$1/|" | paste -sd, - | sed 's/,/, /g'
}
cat >kustomization.yaml <<-END
	# create-secrets.sh writes this file. Each Secret gets a name with a hash of its content: after a file has changed, kubectl
	# apply creates a new Secret and replaces the pods that use it.
	apiVersion: kustomize.config.k8s.io/v1alpha1
	kind: Component
	secretGenerator:
	  - {name: kernelgate, namespace: kernelgate, files: [$(files bot private-key.pem)]}
	  - {name: runner-tokens, namespace: kernelgate, files: [$(files tokens)]}
	  - {name: kernelgate-tls, namespace: kernelgate, files: [bot-tls/tls.crt, bot-tls/tls.key]}
	  - {name: nats-tls, namespace: kernelgate, files: [nats-tls/ca.crt, nats-tls/tls.crt, nats-tls/tls.key]}
	  - {name: nats-client, namespace: kernelgate, files: [nats-client/ca.crt, nats-client/tls.crt, nats-client/tls.key]}
	  - {name: runner-tokens, namespace: kernelgate-runners, files: [$(files tokens)]}
	configMapGenerator:
	  - {name: kernelgate-ca, namespace: kernelgate-runners, files: [trust/ca.crt]}
END
echo "$did"
echo "the certificates are valid until $(openssl x509 -noout -enddate -in nats-client/tls.crt | cut -d= -f2), the CA until $(openssl x509 -noout -enddate -in ca/ca.crt | cut -d= -f2)"
