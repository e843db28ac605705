#!/usr/bin/env bash
# Runs the fuzz tests of decoders in C and C++, and of the C library's functions, with AddressSanitizer: first their
# seeds, then each test for FUZZTIME seconds (by default 2s).
#
# Go's -asan instruments Go and C, but not C++, which CGO_CXXFLAGS does here. Debian's builds of libdraco, libjpeg,
# libopus and libspeex are not instrumented: in these libraries AddressSanitizer finds only the errors that its own
# malloc, free, memcpy etc. can detect, hence double frees, leaks, and copies beyond a block. Draco's templates are
# compiled with this repository's code, and are instrumented.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

each=${FUZZTIME:-2s}
# The time limit of a fuzz test in seconds, which includes its seeds and the start of its workers.
limit=$((${each%s} + 60))
packages=(
	pkg/codec/draco pkg/codec/dracojpeg pkg/codec/parts
	internal/voice/libopus cmd/volbridge/internal/libspeex
	clients/c
)

export CGO_ENABLED=1 CGO_CXXFLAGS='-g -O2 -fsanitize=address'

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# A single block of more than 64 MiB ends the test: no fuzzed frame may cause such an allocation. All leaks are
# reported. Reports are written to files, since the workers of a fuzz test have no standard error.
export ASAN_OPTIONS=detect_leaks=1:max_allocation_size_mb=64:allocator_may_return_null=0:log_path=$scratch/report

# instrumented BINARY: checks that the C++ of package draco calls AddressSanitizer, without which the tests would find
# little.
instrumented() {
	objdump --disassemble=volsfu_decode_sequence "$1" | grep __asan >/dev/null || {
		echo 'asan: the C++ of pkg/codec/draco is not instrumented, expected calls of __asan_report functions' >&2
		return 1
	}
}

# run PACKAGE BINARY ARGUMENT…: runs a test binary in the directory of its package.
run() {
	(cd "$1" && timeout "$limit" "$2" "${@:3}")
}

# fuzzed PACKAGE BINARY TARGET: fuzzes. If the time is too short for all seeds, fuzzing does not report the remaining
# ones: they are run before.
fuzzed() {
	local output
	output=$(run "$1" "$2" -test.run='^$' -test.fuzz="^$3\$" -test.fuzztime="$each" \
		-test.fuzzminimizetime=10x -test.fuzzcachedir="$scratch/corpus" -test.parallel=2 2>&1) && return 0
	printf '%s\n' "$output"
	# Go may report a worker that ends at the deadline as a failure (go.dev/issue/75804).
	[[ $output == *'context deadline exceeded'* && $output != *'Failing input'* &&
		$output != *'terminated unexpectedly'* ]] && ! compgen -G "$scratch/report.*" >/dev/null
}

# fuzz PACKAGE: runs the fuzz tests of a package and prints one line per test.
fuzz() {
	local package=$1 binary=$scratch/asan.test out=$scratch/out target started
	go test -asan -vet=off -c -fuzz=. -o "$binary" "./$package"
	[ "$package" != pkg/codec/draco ] || instrumented "$binary" || return 1
	for target in $(cd "$package" && "$binary" -test.list '^Fuzz'); do
		started=$SECONDS
		if ! run "$package" "$binary" -test.run="^$target\$" >"$out" 2>&1 ||
			! fuzzed "$package" "$binary" "$target" >"$out" 2>&1; then
			printf 'FAIL  %3ds  %s.%s\n' $((SECONDS - started)) "$package" "$target"
			cat "$out" "$scratch"/report.* 2>/dev/null
			return 1
		fi
		printf 'ok    %3ds  %s.%s\n' $((SECONDS - started)) "$package" "$target"
	done
}

failed=()
for package in "${packages[@]}"; do
	fuzz "$package" || failed+=("$package")
done
[ ${#failed[@]} -eq 0 ] || {
	printf 'asan: failed: %s\n' "${failed[*]}" >&2
	exit 1
}
