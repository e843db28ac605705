#!/usr/bin/env bash
# Builds what is handed out into dist/: the server and the lab, static, for linux/amd64 and linux/arm64; the client for this
# machine only, because Draco is C++. Every file has its line in SHA256SUMS.
#
#   scripts/release.sh VERSION
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:?expected the version as the only argument}

rm -rf dist
mkdir dist

# build COMMAND ARCHITECTURE CGO
build() {
	compgen -G "cmd/$1/*.go" >/dev/null || return 0
	local out=dist/$1-$version-linux-$2
	echo "$out"
	GOOS=linux GOARCH=$2 CGO_ENABLED=$3 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$out" "./cmd/$1"
}

for architecture in amd64 arm64; do
	build volsfu "$architecture" 0
	build vollab "$architecture" 0
done
build volpeer "$(go env GOHOSTARCH)" 1

cd dist
sha256sum -- * >SHA256SUMS
