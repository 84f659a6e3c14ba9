#!/usr/bin/env bash
# unpack.sh [TO]: unpacks the kiln.tar.zst beside it into TO/kiln (the current folder), with the machine's zstd or the one that came along.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
to="${1:-.}"
mkdir -p "$to"
if command -v zstd >/dev/null 2>&1; then
  zstd -q -d -c "$here/kiln.tar.zst" | tar -C "$to" -xf -
else
  brought="$(mktemp -d)"
  trap 'rm -rf "$brought"' EXIT
  tar -C "$brought" -xzf "$here/zstd.tar.gz"
  "$brought"/zstd/ld-linux-*.so.* --library-path "$brought/zstd" "$brought/zstd/zstd" -q -d -c "$here/kiln.tar.zst" | tar -C "$to" -xf -
fi
echo "unpacked; run $to/kiln/check.sh"
