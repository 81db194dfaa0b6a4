#!/bin/sh
# Runs after the files are in place: dpkg passes "configure" and the old version, rpm the number of installed versions.
# It creates the user of the runner. It enables and starts nothing; an upgrade restarts the units that run.
set -e

case "$1" in
configure) old=$2 ;;
1) old= ;;
2) old=yes ;;
*) exit 0 ;;
esac

if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers kernelgate.conf
elif ! getent passwd kernelgate-runner >/dev/null; then
	useradd --system --home-dir /var/lib/kernelgate-runner --no-create-home --shell /usr/sbin/nologin kernelgate-runner
fi

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ -n "$old" ]; then
		# A restart is safe at any time: webhooks are on disk, and a runner keeps its job. A unit that does not start
		# again must not break the upgrade of other packages.
		for unit in kernelgate kernelgate-runner; do
			systemctl try-restart "$unit" || echo "kernelgate: $unit.service does not start; see: journalctl -u $unit" >&2
		done
	fi
fi

if [ -z "$old" ]; then
	cat <<'NEXT'
kernelgate is installed; no service is enabled. Next steps:
  on the bot's host:   kernelgate setup --url https://gate.example.com
                       systemctl enable --now kernelgate
  on a runner's host:  (umask 077 && openssl rand -hex 32 > /etc/kernelgate/runner.token)
                       edit /etc/kernelgate/runner.env
                       systemctl enable --now kernelgate-runner
  kernelgate doctor says what this host lacks.
NEXT
fi
