#!/usr/bin/env bash
# Fails if a module that go.mod or lab/go.mod pins is older than the version that fixes a known vulnerability, or if
# govulncheck finds a vulnerability that the code reaches.
#
#   scripts/vulnerabilities.sh floors              only the first check, which needs no network
#   scripts/vulnerabilities.sh scan [PACKAGE…]     only the second check, by default of both modules
#
# govulncheck uses https://vuln.go.dev, or the database that GOVULNDB names as file:///DIRECTORY or https://HOST. If
# https://vuln.go.dev cannot be reached, the scan prints a message and exits with status 77, which means skipped. A
# database named by GOVULNDB has to be reachable.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.tools/bin:$PATH"

# Module, minimum version, and the reason. Add a line for each relevant fix, including those not announced as
# vulnerabilities.
floors() {
	cat <<'TABLE'
github.com/golang-jwt/jwt/v5 v5.2.2 CVE-2025-30204, memory for a token of many dots
github.com/pion/dtls/v3 v3.1.15 an empty handshake fragment or a plaintext alert ends the process or connection
github.com/pion/interceptor v0.1.39 CVE-2025-49140, a packet with bad padding ends the process
golang.org/x/crypto v0.45.0 CVE-2025-47914 and CVE-2025-58181, in the SSH agent and server
golang.org/x/net v0.38.0 CVE-2025-22872, tags that HTML's tokenizer takes for closed
TABLE
}

check_floors() {
	local file module least reason pinned status=0
	for file in go.mod lab/go.mod; do
		[ -f "$file" ] || continue
		while read -r module least reason; do
			# A line of a block, or a single directive.
			pinned=$(awk -v module="$module" '$1 == module { print $2 } $1 == "require" && $2 == module { print $3 }' "$file")
			[ -n "$pinned" ] || continue
			if [ "$(printf '%s\n' "$least" "$pinned" | sort -V | head -n 1)" != "$least" ]; then
				printf '%s pins %s %s, expected %s or newer: %s\n' "$file" "$module" "$pinned" "$least" "$reason"
				status=1
			fi
		done < <(floors)
	done
	return $status
}

# The timeout of the database in seconds. Behind a firewall that drops packets a host would otherwise wait for minutes.
answer_time=30

scan() {
	local database=${GOVULNDB:-https://vuln.go.dev} output status=0
	if [ -z "${GOVULNDB:-}" ]; then
		# A scan of only the modules, which takes a tenth of a second in addition to the database's response time.
		output=$(timeout "$answer_time" govulncheck -db "$database" -C pkg/volumetric -scan module 2>&1) || status=$?
		if [ $status -eq 124 ] || { [ $status -eq 1 ] &&
			grep -qE '^(govulncheck: fetching vulnerabilities|creating client):' <<<"$output"; }; then
			printf 'govulncheck: skipped, the vulnerability database %s is out of reach\n' "$database"
			return 77
		fi
	fi
	govulncheck -db "$database" "$@"
}

case ${1:-} in
floors) check_floors ;;
scan)
	shift
	[ $# -gt 0 ] || set -- ./... ./lab/...
	scan "$@"
	;;
*)
	printf 'expected floors or scan, got "%s"\n' "${1:-}" >&2
	exit 2
	;;
esac
