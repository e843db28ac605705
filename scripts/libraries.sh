#!/usr/bin/env bash
# Builds the C library for other systems. The C compiler is Zig's, which contains the headers and libraries of all
# systems. The libraries for Linux run with glibc 2.17 and newer, those for macOS on macOS 12 and newer.
#
#   scripts/libraries.sh VERSION FOLDER SYSTEM/ARCHITECTURE…
#
# ZIG is the program, by default that of scripts/deps.sh release.
set -euo pipefail
version=${1:?expected the version as the first argument}
folder=$(realpath "${2:?expected the folder of the libraries as the second argument}")
shift 2
cd "$(dirname "${BASH_SOURCE[0]}")/.."
zig=${ZIG:-$PWD/.tools/zig/zig}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# stubs writes stand-ins for the libraries of macOS that Zig does not have: their names and the functions that Go's
# standard library imports.
stubs() {
	find "$(go env GOROOT)/src/crypto" "$(go env GOROOT)/src/internal" -name '*.go' -exec \
		awk -v folder="$scratch" '
			$1 == "//go:cgo_import_dynamic" && $4 ~ /\/Frameworks\/|libresolv/ {
				gsub(/"/, "", $4)
				symbols[$4] = symbols[$4] (symbols[$4] ? ", " : "") "_" $3
			}
			END {
				targets = "[ x86_64-macos, arm64-macos ]"
				for (path in symbols) {
					name = path
					gsub(/.*\/|\..*/, "", name)
					file = folder "/" name ".tbd"
					if (path ~ /Frameworks/) {
						system("mkdir -p " folder "/" name ".framework")
						file = folder "/" name ".framework/" name ".tbd"
					}
					printf "--- !tapi-tbd\ntbd-version: 4\ntargets: %s\ninstall-name: %s\nexports:\n" \
						"  - targets: %s\n    symbols: [ %s ]\n...\n", targets, path, targets, symbols[path] >file
				}
			}' {} +
}

for target; do
	system=${target%/*} architecture=${target#*/}
	case $architecture in
	amd64) processor=x86_64 ;;
	arm64) processor=aarch64 ;;
	*) echo "expected amd64 or arm64, got $architecture" >&2 && exit 1 ;;
	esac
	link='' options='-s -w'
	case $system in
	linux) name=libvolsfu-$version-$system-$architecture.so triple=$processor-linux-gnu.2.17 ;;
	windows) name=volsfu-$version-$system-$architecture.dll triple=$processor-windows-gnu ;;
	darwin)
		stubs
		name=libvolsfu-$version-$system-$architecture.dylib triple=$processor-macos.12.0
		link="-F$scratch -L$scratch" options+=' -extldflags=-Wl,-install_name,@rpath/libvolsfu.dylib'
		;;
	*) echo "expected linux, windows or darwin, got $system" >&2 && exit 1 ;;
	esac
	echo "$folder/$name"
	CC="$zig cc -target $triple" CGO_LDFLAGS=$link GOOS=$system GOARCH=$architecture CGO_ENABLED=1 GOWORK=off \
		go build -buildmode=c-shared -tags portable -trimpath -buildvcs=false -ldflags "$options" -o "$folder/$name" ./clients/c
	# Go writes a header of its own. The library's is volsfu.h.
	rm -f "$folder/${name%.*}.h"
done
