#!/usr/bin/env bash
# Runs the fuzz tests of decoders that are C and C++ with AddressSanitizer: their seeds, then each for a short while. FUZZTIME is how long each runs, in seconds: 2s unless given.
#
# Go's -asan instruments Go and C, but not C++, which CGO_CXXFLAGS does here. What Debian has built of libdraco, libjpeg, libopus and libspeex is not instrumented: of
# these libraries AddressSanitizer sees the heap by its own malloc, free, memcpy and the like, hence double frees, leaks, and copies beyond a block. Draco's templates
# are compiled with this repository's code, and are instrumented.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

each=${FUZZTIME:-2s}
# What a fuzz test may take beside its time, in seconds: its seeds, and the start of its workers.
most=$((${each%s} + 60))
packages=(pkg/codec/draco pkg/codec/dracojpeg pkg/codec/parts cmd/volpeer/internal/libopus cmd/volpeer/internal/libspeex)

export CGO_ENABLED=1 CGO_CXXFLAGS='-g -O2 -fsanitize=address'

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# A single block of more than 64 MiB ends the test: no fuzzed frame may ask for as much. Leaks count, and none is suppressed. Reports go to files, since the workers of a
# fuzz test have no standard error.
export ASAN_OPTIONS=detect_leaks=1:max_allocation_size_mb=64:allocator_may_return_null=0:log_path=$scratch/report

# instrumented BINARY: checks that the C++ of package draco calls AddressSanitizer; without, the tests are worth little.
instrumented() {
	objdump --disassemble=volsfu_decode_sequence "$1" | grep __asan >/dev/null || {
		echo 'asan: the C++ of pkg/codec/draco is not instrumented, expected calls of __asan_report functions' >&2
		return 1
	}
}

# run PACKAGE BINARY ARGUMENT…: runs a test in its folder.
run() {
	(cd "$1" && timeout "$most" "$2" "${@:3}")
}

# fuzzed PACKAGE BINARY TARGET: fuzzes. A fuzz test that has no time left for all of its seeds says nothing of the others: they are run before.
fuzzed() {
	local said
	said=$(run "$1" "$2" -test.run='^$' -test.fuzz="^$3\$" -test.fuzztime="$each" -test.fuzzminimizetime=10x -test.fuzzcachedir="$scratch/corpus" \
		-test.parallel=2 2>&1) && return 0
	printf '%s\n' "$said"
	# Go reports a worker that ends at an unlucky moment as a failure (go.dev/issue/75804).
	[[ $said == *'context deadline exceeded'* && $said != *'Failing input'* && $said != *'terminated unexpectedly'* ]] && ! compgen -G "$scratch/report.*" >/dev/null
}

# fuzz PACKAGE: runs the fuzz tests of a package, and prints a line for each.
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
