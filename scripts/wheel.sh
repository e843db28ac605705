#!/usr/bin/env bash
# Builds the Python wheel, with the library inside.
#
#   scripts/wheel.sh VERSION FOLDER [LIBRARY [PLATFORM]]
#
# Without LIBRARY the library is built. PLATFORM is the platform of the library in the wheel's name, such as win_amd64,
# by default that of this machine. The wheel contains THIRD_PARTY_NOTICES of the folder, if there is one. PYTHON is the
# Python with setuptools, by default that of make deps.
set -euo pipefail
version=${1:?expected the version as the first argument}
folder=$(realpath "${2:?expected the folder of the wheel as the second argument}")
library=${3:+$(realpath "$3")}
platform=${4:-}
python=${PYTHON:+$(command -v "$PYTHON")}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${python:-$PWD/.tools/python/bin/python}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -R clients/python/pyproject.toml clients/python/setup.py clients/python/README.md clients/python/src LICENSE "$scratch"
if [ -z "$library" ]; then
	library=$scratch/libvolsfu.so
	CGO_ENABLED=1 go build -buildmode=c-shared -tags portable -trimpath -buildvcs=false -ldflags '-s -w' -o "$library" ./clients/c
fi
case $library in
*.dll) name=volsfu.dll ;;
*.dylib) name=libvolsfu.dylib ;;
*) name=libvolsfu.so ;;
esac
cp "$library" "$scratch/src/volsfu/$name"
[ ! -e "$folder/THIRD_PARTY_NOTICES" ] || cp "$folder/THIRD_PARTY_NOTICES" "$scratch/src/volsfu/"
# A version of Python's form: v1.2.3-4-gabc is 1.2.3+4.gabc.
version=${version#v}
[[ $version != *-* ]] || version=${version%%-*}+$(tr - . <<<"${version#*-}")
cd "$scratch"
VOLSFU_VERSION=$version "$python" setup.py --quiet bdist_wheel --dist-dir "$folder" ${platform:+--plat-name "$platform"}
