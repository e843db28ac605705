#!/bin/sh
# Writes the states of the units to files below /results, and ends the system.
as_volnet() { setpriv --reuid volnet --regid volnet --clear-groups "$@"; }
running() { as_volnet volnet status >/dev/null 2>&1; }
await() {
	for _ in $(seq 600); do
		"$@" && return
		sleep 0.1
	done
	false
}
pid() { systemctl show --property MainPID --value "$1"; }
ready() { python3 -c 'import urllib.request; urllib.request.urlopen("http://127.0.0.1:9090/readyz")' 2>/dev/null; }
replaced() { [ "$(pid volnet)" != "$1" ] && running; }

await running && echo yes >/results/volnet-started
await ready && echo yes >/results/volsfu-started
grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs|Seccomp):' "/proc/$(pid volnet)/status" >/results/volnet-privileges
grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs|Seccomp):' "/proc/$(pid volsfu)/status" >/results/volsfu-privileges
before=$(pid volnet)
kill -KILL "$before"
await replaced "$before" && as_volnet volnet status --json >/results/volnet-after-crash
systemctl stop volnet volsfu
find /run/volnet/bpf -mindepth 1 ! -name '*.debug' >/results/pins-left
ip -details link show >/results/links-left
systemctl show volnet volsfu --property Result --value >/results/ends
systemctl --no-pager status volnet volsfu >/results/status 2>&1
systemctl exit 0 --force --force
