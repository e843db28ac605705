#!/usr/bin/env bash
# Builds the npm package @volsfu/client, or checks it.
#
#   scripts/npm.sh pack VERSION FOLDER
#                         builds volsfu-client-VERSION.tgz into a folder, and prints its path
#   scripts/npm.sh check  checks the size and the imports of the core, and that the report of the public declarations in
#                         clients/web/package/api is that of the sources
#   scripts/npm.sh api    writes the report
set -euo pipefail
command=${1:?expected pack, check or api as the first argument}
[ "$command" != pack ] || folder=$(realpath "${3:?expected the folder of the package as the third argument}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.tools/bin:$PATH"

case $command in
	pack)
		version=${2#v}
		# A version of npm's form: a commit without a tag is 0.0.0-gCOMMIT.
		[[ $version == [0-9]*.[0-9]*.[0-9]* ]] || version=0.0.0-g$version
		scratch=$(mktemp -d)
		trap 'rm -rf "$scratch"' EXIT
		scripts/web.sh package "$version" "$scratch"
		cd "$scratch"
		npm pack --silent --pack-destination "$folder" | sed "s|^|$folder/|"
		;;
	check) scripts/web.sh package-check ;;
	api) scripts/web.sh package-api ;;
	*)
		echo "npm: expected pack, check or api, got $command" >&2
		exit 1
		;;
esac
