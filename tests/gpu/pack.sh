#!/usr/bin/env bash
# tests/gpu/pack.sh FILE.tar.zst [TREE]: puts what tests/gpu/check.sh needs into one archive: the test programs, the bench, the samples and all libraries
# they need but those of the C library. For a machine with a GPU and nothing else; run it where the tree (build) was built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[ $# -ge 1 ] || { echo "usage: tests/gpu/pack.sh FILE.tar.zst [TREE]" >&2; exit 2; }
file="$1" tree="${2:-build}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/kiln/bin" "$folder/kiln/lib"
for program in kiln kiln_bench kiln_fuzz kiln_test_runtime kiln_test_conformance kiln_test_dsl kiln_test_samples sample_demo sample_saxpy sample_reduce sample_matmul sample_histogram sample_scan sample_stencil; do
  [ -x "$tree/bin/$program" ] && cp "$tree/bin/$program" "$folder/kiln/bin/"
done
cp -a "$tree"/lib/*.so* "$folder/kiln/lib/"
cp -a "$tree/lib/fakecuda" "$folder/kiln/lib/"
# Everything the dynamic linker would take from this machine, but the C library and the linker itself.
for object in "$folder"/kiln/bin/* "$folder"/kiln/lib/*.so*; do ldd "$object" 2>/dev/null || true; done |
  sed -nE 's/^\t[^ ]+ => (\/[^ ]+) .*/\1/p' | sort -u |
  grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' | grep -v "^$PWD/" |
  while read -r library; do cp -L "$library" "$folder/kiln/lib/"; done
cp tests/gpu/check.sh "$folder/kiln/"
git log -1 --format=%H >"$folder/kiln/commit" 2>/dev/null || true
tar -C "$folder" -cf - kiln | zstd -q -19 -T0 -f -o "$file"
ls -l "$file"
