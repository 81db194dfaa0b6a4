#!/bin/sh
# Runs before the files go: dpkg passes "remove" or "upgrade", rpm the number of versions that stay. A removal stops the units.
set -e

case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac

if [ -d /run/systemd/system ]; then
	systemctl disable --now kernelgate.service kernelgate-runner.service
fi
