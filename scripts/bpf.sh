#!/usr/bin/env bash
# Compiles the BPF programs of volnet.
#
#   scripts/bpf.sh          compiles the programs into the repository
#   scripts/bpf.sh check    fails if the compiled programs are older than their sources
#
# generated.txt has the version of the compiler and the SHA-256 of the sources. With the same compiler, check compares
# the compiled programs byte by byte. With another compiler or none, check compares the sum of the sources.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../internal/netfn/edge/bpf"

say() { printf 'bpf: %s\n' "$*" >&2; }

# describe prints the content of generated.txt.
describe() {
	printf 'compiler: %s\n' "$(clang --version 2>/dev/null | head -n 1)"
	printf 'sources: %s\n' "$(sum_sources)"
}

sum_sources() { sha256sum -- *.h *.c ../../../../scripts/bpf.sh | sha256sum | cut -d ' ' -f 1; }

# compile FOLDER: writes the objects and the Go code. Both targets, amd64 and arm64, are little-endian. clang 14 needs
# -mcpu=v3 for the results of atomic operations. Without CAP_PERFMON, the verifier refuses a number in the stack slot of
# a pointer, so variables do not share slots.
compile() {
	local ident
	for ident in Sender Receiver; do
		GOFLAGS='' GOWORK=off go run github.com/cilium/ebpf/cmd/bpf2go -go-package bpf -output-dir "$1" -target bpfel \
			-cflags "-O2 -Wall -Wextra -Werror -mcpu=v3 -mllvm -no-stack-slot-sharing -I/usr/include/$(uname -m)-linux-gnu" \
			"$ident" "${ident,,}.c" >&2
	done
}

check() {
	grep -qxF "sources: $(sum_sources)" generated.txt || {
		say 'the sources have changed since they were compiled: run scripts/bpf.sh'
		return 1
	}
	if ! diff -q <(describe) generated.txt >/dev/null; then
		say "compiled by another compiler, $(head -n 1 generated.txt): only the sources are compared"
		return 0
	fi
	local scratch name
	scratch=$(mktemp -d)
	# shellcheck disable=SC2064 # the folder of now
	trap "rm -rf '$scratch'" EXIT
	compile "$scratch"
	for name in sender receiver; do
		if ! cmp "$scratch/${name}_bpfel.o" "${name}_bpfel.o" || ! cmp "$scratch/${name}_bpfel.go" "${name}_bpfel.go"; then
			say "the compiled $name differs from its source: run scripts/bpf.sh"
			return 1
		fi
	done
}

case ${1-} in
'')
	compile .
	describe >generated.txt
	;;
check) check ;;
*)
	say "expected no argument or check, got $1"
	exit 2
	;;
esac
