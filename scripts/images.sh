#!/usr/bin/env bash
# Pins the images of other projects in files for Docker to their content, since a registry can move a tag: it appends
# the digest that the registry has for the tag now, or replaces an earlier digest. It needs Docker and the registries.
#
#   scripts/images.sh [FILE ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ $# -gt 0 ] || set -- deploy/Dockerfile deploy/compose.yaml
for file; do
	# The images of this project have no registry.
	sed -nE 's/^(FROM( --platform=[^ ]+)?| *image:) ([^ ]+:[^ ]+).*/\3/p' "$file" | { grep -v '^volsfu:' || true; } |
		while read -r image; do
			tag=${image%@*}
			digest=$(docker buildx imagetools inspect "$tag" --format '{{.Manifest.Digest}}' </dev/null)
			if ! [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]]; then
				echo "$file: the digest of $tag is \"$digest\", expected sha256: and 64 digits" >&2
				exit 1
			fi
			sed -i "s|${image//./\\.}|$tag@$digest|" "$file"
			echo "$file: $tag@$digest"
		done
done
