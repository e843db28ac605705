#!/usr/bin/env bash
# Works on the pages for browsers, in clients/web: fetches their packages where they have changed, and runs one of their scripts.
#
#   scripts/web.sh build   the pages into clients/web/dist/site, from where the server's build takes them
#   scripts/web.sh test    their unit tests
#
# Without Node, building says so and does nothing: the server then has a page that says the same.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.tools/bin:$PATH"

if ! command -v npm >/dev/null; then
	echo 'web: built without the viewer: there is no Node; make deps installs it' >&2
	[ "$1" = build ] && exit 0
	exit 1
fi
cd clients/web
if ! cmp -s package-lock.json node_modules/.fetched; then
	npm ci --no-audit --no-fund --loglevel error >&2
	cp package-lock.json node_modules/.fetched
fi
exec npm run --silent "$1"
