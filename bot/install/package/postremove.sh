#!/bin/sh
# Runs after the files are gone: dpkg passes "remove", "purge" or "upgrade", rpm the number of versions that stay. Secrets,
# evidence and the user of the runner stay: only the operator knows whether somebody still needs them.
set -e

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi

case "$1" in
purge | 0)
	for dir in /etc/kernelgate /var/lib/kernelgate /var/lib/private/kernelgate /var/lib/kernelgate-runner; do
		if [ -e "$dir" ]; then
			echo "kernelgate: $dir stays; delete it if nobody needs it"
		fi
	done
	;;
esac
