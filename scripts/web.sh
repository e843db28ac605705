#!/usr/bin/env bash
# Runs a script of the web pages in clients/web, after installing their packages if these have changed.
#
#   scripts/web.sh build   builds the pages into clients/web/dist/site, which the server embeds
#   scripts/web.sh test    runs their unit tests, or those of the files that follow
#
# Without Node, the build only prints a message, and the server serves a page with the same message.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.tools/bin:$PATH"

if ! command -v npm >/dev/null; then
	echo 'web: built without the viewer, since Node is missing; make deps installs it' >&2
	[ "$1" = build ] && exit 0
	exit 1
fi
cd clients/web
if ! cmp -s package-lock.json node_modules/.fetched; then
	npm ci --no-audit --no-fund --loglevel error >&2
	cp package-lock.json node_modules/.fetched
fi
exec npm run --silent "$1" -- "${@:2}"
