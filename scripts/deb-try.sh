#!/usr/bin/env bash
# Tries a Debian package: installs it in a copy-on-write copy of this system, in namespaces of its own, runs the server
# with the installed configuration and key, publishes and decodes, upgrades with a changed configuration, and purges.
# Needs root. systemd does not run there: the unit is only checked (systemd-analyze verify, if there is one).
#
#   scripts/deb-try.sh PACKAGE
set -euo pipefail
package=$(realpath "${1:?expected a package}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export package work
# shellcheck disable=SC2016 # the inner shell expands the script
unshare --mount --net --pid --fork bash -euo pipefail -c '
	mount -t tmpfs tmpfs "$work"
	mkdir "$work"/{upper,work,root}
	mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$work/root"
	root=$work/root
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs tmpfs "$root/run"
	mkdir -p "$root/srv/try"
	cp "$package" "$root/srv/try/volsfu.deb"
	ip link set lo up
	inside() { chroot "$root" /bin/sh -euc "$1"; }
	inside "dpkg -i /srv/try/volsfu.deb >/dev/null"
	inside "volsfu --version && volpeer --version && [ \$(stat -c %a /etc/volsfu/keys) = 600 ]"
	if command -v systemd-analyze >/dev/null; then
		inside "systemd-analyze verify /lib/systemd/system/volsfu.service"
	else
		echo "skipped: systemd-analyze is not installed, the unit is not checked" >&2
	fi
	inside "VOLSFU_AUTH_KEY_FILE=/etc/volsfu/keys volsfu serve --config /etc/volsfu/volsfu.yaml >/srv/try/log 2>&1" &
	for _ in $(seq 100); do
		if (exec 3<>/dev/tcp/127.0.0.1/8080) 2>/dev/null; then break; fi
		sleep 0.1
	done
	token() { inside "volsfu token --auth-key-file /etc/volsfu/keys --room lab --identity $1"; }
	alice=$(token alice) carol=$(token carol)
	inside "VOLPEER_TOKEN=$alice volpeer publish --room lab --identity alice --points 2000 --seconds 20 >/dev/null 2>&1" &
	summary=$(inside "VOLPEER_TOKEN=$carol volpeer watch --room lab --identity carol --seconds 5 --json" 2>"$work/watch") ||
		{ cat "$work/watch" "$root/srv/try/log" >&2; exit 1; }
	frames=$(sed -n "s/.*\"frames_decoded\": *\([0-9]*\).*/\1/p" <<<"$summary" | head -n 1)
	[ "${frames:-0}" -gt 0 ] || { echo "no frame was decoded" >&2; exit 1; }
	echo "$frames frames decoded"
	inside "echo \"# changed\" >>/etc/volsfu/volsfu.yaml; cp /etc/volsfu/keys /srv/try/keys"
	inside "dpkg -i /srv/try/volsfu.deb >/dev/null && grep -q \"^# changed\" /etc/volsfu/volsfu.yaml && cmp /etc/volsfu/keys /srv/try/keys"
	echo "an upgrade keeps the configuration and the key"
	inside "dpkg --remove volsfu >/dev/null && [ -e /etc/volsfu/volsfu.yaml ] && [ ! -e /usr/bin/volsfu ]"
	inside "dpkg --purge volsfu >/dev/null && [ ! -e /etc/volsfu ] && ! dpkg -s volsfu >/dev/null 2>&1"
	echo "purging removes everything"
'
