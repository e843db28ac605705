#!/usr/bin/env bash
# Installs what volsfu needs and the machine lacks, and nothing that is there already.
#
#   scripts/deps.sh build    compiler, Draco: what building, testing and the demo need
#   scripts/deps.sh lint     shellcheck, promtool, staticcheck
#   scripts/deps.sh clients  Mono, for the tests of the Unity package
#   scripts/deps.sh          all of it
#
# Works as root and as a user with sudo, on Debian 12. Programs that Debian does not carry, or carries only together with a
# service, go to .tools/bin inside the checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools=$PWD/.tools/bin
export PATH="$tools:$PATH"

# v0.8.2 is the release that calls itself 2026.2.2.
staticcheck_module=honnef.co/go/tools
staticcheck_version=v0.8.2

say() { printf 'deps: %s\n' "$*" >&2; }
fail() {
	say "$*"
	exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif has sudo; then
		sudo "$@"
	else
		fail "this needs root: $* (become root, or install sudo)"
	fi
}

check_go() {
	local want have
	want=$(awk '$1 == "go" { print $2 }' go.mod)
	if ! has go; then
		[ -x /usr/local/go/bin/go ] && fail "Go is at /usr/local/go but not on the path: export PATH=\$PATH:/usr/local/go/bin"
		fail "Go $want or newer is needed and there is no 'go' on the path; get it from https://go.dev/dl/"
	fi
	# Asked for inside the module, so that a Go that fetches newer toolchains by itself answers with the one that it will use.
	have=$(go env GOVERSION 2>/dev/null) || have=$(go version 2>/dev/null | awk '{ print $3 }') || true
	have=${have#go}
	have=${have%% *}
	[ -n "$have" ] || fail "Go $want or newer is needed; the 'go' at $(command -v go) does not tell its version"
	[ "$(printf '%s\n' "$want" "$have" | sort -V | head -n 1)" = "$want" ] ||
		fail "Go $want or newer is needed, found $have at $(command -v go); get it from https://go.dev/dl/"
}

# need PROGRAM PACKAGE: notes the Debian package unless the program is there.
missing=()
need() { has "$1" || missing+=("$2"); }

apt_updated=
apt_update() {
	[ -z "$apt_updated" ] || return 0
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 update
	apt_updated=yes
}

install_packages() {
	[ ${#missing[@]} -gt 0 ] || return 0
	has apt-get || fail "these Debian packages, or what your system calls them, are missing: ${missing[*]}"
	say "installing ${missing[*]}"
	apt_update
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
		install --yes --no-install-recommends "${missing[@]}" >/dev/null
}

# The package prometheus would start a server on the port of volsfu's admin listener. Only promtool is wanted, a single program
# that needs libc alone, so it is taken out of the package, which takes no root either.
install_promtool() (
	has apt-get || fail "promtool is missing; it comes with Prometheus"
	say "taking promtool out of Debian's package prometheus"
	apt_update
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	cd "$scratch"
	# As root, apt would download as a user of its own, who may not write here.
	apt-get -qq -o APT::Sandbox::User=root download prometheus
	dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool
	install -D -m 755 usr/bin/promtool "$tools/promtool"
)

# A staticcheck that an older Go built refuses the packages of a newer one: the Go that built it counts as its version, too.
has_staticcheck() {
	[ -x "$tools/staticcheck" ] || return 1
	local built
	built=$(go version -m "$tools/staticcheck" 2>/dev/null) || return 1
	[[ $built == *": $(go env GOVERSION)"* && $built == *"$staticcheck_module"$'\t'"$staticcheck_version"* ]]
}

install_staticcheck() {
	say "building staticcheck $staticcheck_version"
	GOFLAGS='' GOBIN=$tools go install "$staticcheck_module/cmd/staticcheck@$staticcheck_version"
}

deps_build() {
	need git git
	# Go fetches its modules over HTTPS.
	[ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
	need g++ g++
	# Tests of networks make namespaces.
	need ip iproute2
	need pkg-config pkg-config
	# Before pkg-config is there it cannot be asked; the package is then installed, or found installed, by apt.
	pkg-config --exists draco 2>/dev/null || missing+=(libdraco-dev)
}

deps_lint() {
	need shellcheck shellcheck
}

deps_clients() {
	need mcs mono-mcs
	need mono mono-runtime
}

[ $# -gt 0 ] || set -- build lint clients
for part in "$@"; do
	case $part in
	build) deps_build ;;
	lint) deps_lint ;;
	clients) deps_clients ;;
	*) fail "expected build, lint or clients, got $part" ;;
	esac
done
check_go
need make make
install_packages
case " $* " in
*" lint "*)
	has promtool || install_promtool
	has_staticcheck || install_staticcheck
	;;
esac
