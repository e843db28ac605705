#!/usr/bin/env bash
# Builds the released programs into dist/: the server, volnet and the lab, static, for linux/amd64 and linux/arm64; the
# client without Draco for all systems below; client and lab with Draco, which is C++, for this machine; the C library
# and Python wheels with it for the systems of desktops. Debian packages have server and client. THIRD_PARTY_NOTICES has
# the licences of the software that the programs contain, volsfu-VERSION.cdx.json the bill of materials, and SHA256SUMS
# a line for each file.
#
#   scripts/release.sh VERSION
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:?expected the version as the only argument}

# The commit and its date, which programs report beside the version.
package=github.com/volsfu/volsfu/internal/build
stamp="-X $package.commit=$(git rev-parse --short=12 HEAD) -X $package.date=$(git log -1 --format=%cs)"

rm -rf dist
mkdir dist

# build COMMAND SYSTEM ARCHITECTURE CGO [NAME]
build() {
	local module=.
	[ ! -d "lab/cmd/$1" ] || module=lab
	compgen -G "$module/cmd/$1/*.go" >/dev/null || return 0
	local out=dist/${5:-$1}-$version-$2-$3 flags="-s -w -X main.version=$version $stamp"
	case $2 in
		windows) out+=.exe ;;
		# Android prevents apps from reading network interfaces from the kernel. The package that Pion uses instead
		# accesses unexported names of Go's package net.
		android) flags+=' -checklinkname=0' ;;
	esac
	echo "$out"
	# The module alone decides on versions, without go.work.
	GOWORK=off GOOS=$2 GOARCH=$3 CGO_ENABLED=$4 go build -C "$module" -trimpath -buildvcs=false -ldflags "$flags" -o "$PWD/$out" "./cmd/$1"
}

for architecture in amd64 arm64; do
	build volsfu linux "$architecture" 0
	build volnet linux "$architecture" 0
	build vollab linux "$architecture" 0
done
# Go links programs for Android without a C compiler only on arm64.
for target in linux/amd64 linux/arm64 windows/amd64 windows/arm64 darwin/amd64 darwin/arm64 android/arm64; do
	for command in volpeer volbridge; do
		build "$command" "${target%/*}" "${target#*/}" 0
	done
done
for command in volpeer volbridge vollab; do
	build "$command" "$(go env GOHOSTOS)" "$(go env GOHOSTARCH)" 1 "$command-draco"
done

desktops=(linux/amd64 linux/arm64 windows/amd64 darwin/amd64 darwin/arm64)
mapfile -t libraries < <(scripts/libraries.sh "$version" dist "${desktops[@]}")
[ ${#libraries[@]} -eq ${#desktops[@]} ]
printf '%s\n' "${libraries[@]}"
cp clients/c/volsfu.h dist/

scripts/npm.sh pack "$version" dist

cp LICENSE dist/
go run ./scripts/inventory -version "$version" -pages clients/web/public/licenses.txt \
	-lock clients/web/package-lock.json -out dist "dist/"*-"$version"-*

# platform SYSTEM/ARCHITECTURE: prints the platform in the name of a wheel.
platform() {
	case $1 in
	linux/amd64) echo manylinux2014_x86_64 ;;
	linux/arm64) echo manylinux2014_aarch64 ;;
	windows/amd64) echo win_amd64 ;;
	darwin/amd64) echo macosx_12_0_x86_64 ;;
	darwin/arm64) echo macosx_12_0_arm64 ;;
	esac
}
for i in "${!desktops[@]}"; do
	scripts/wheel.sh "$version" dist "${libraries[i]}" "$(platform "${desktops[i]}")"
done

for architecture in amd64 arm64; do
	scripts/deb.sh "$version" "$architecture" "dist/volsfu-$version-linux-$architecture" \
		"dist/volpeer-$version-linux-$architecture" dist/THIRD_PARTY_NOTICES dist
done

cd dist
sha256sum -- * >SHA256SUMS
