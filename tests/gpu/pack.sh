#!/usr/bin/env bash
# tests/gpu/pack.sh FOLDER [TREE]: writes into FOLDER what a machine with a GPU and nothing else needs: kiln.tar.zst with check.sh, the programs of
# contents.sh from the build tree TREE (build) and every library that they need, LLVM's and the C library too; unpack.sh, and a zstd for it. Run it where
# TREE was built. KILN_PACK_LEVEL: how hard zstd tries (15).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[ $# -ge 1 ] || { echo "usage: tests/gpu/pack.sh FOLDER [TREE]" >&2; exit 2; }
out="$1" tree="${2:-build}"
source tests/gpu/contents.sh
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
pack="$folder/kiln"
mkdir -p "$out" "$pack/bin" "$pack/lib/fakecuda" "$pack/glibc" "$pack/devices"

for program in $kiln_programs; do cp "$tree/bin/$program" "$pack/bin/"; done
for library in $kiln_libraries; do cp "$tree/lib/$library" "$pack/lib/$library"; done
for file in $kiln_data; do cp "tests/simcuda/devices/$file" "$pack/devices/"; done

# Everything that the dynamic linker would take from this machine; the C library apart, for machines whose own is older.
ours="$(cd "$tree" && pwd)/lib"
for object in "$pack"/bin/* "$pack"/lib/*.so "$pack"/lib/fakecuda/*.so; do LD_LIBRARY_PATH="$ours" ldd "$object"; done >"$folder/ldd"
if grep -q 'not found' "$folder/ldd"; then grep 'not found' "$folder/ldd" | sort -u >&2; exit 1; fi
sed -nE 's/^\t[^ ]+ => (\/[^ ]+) .*/\1/p; s/^\t(\/[^ ]+) \(.*/\1/p' "$folder/ldd" | sort -u | while read -r library; do
  case "${library##*/}" in
    libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | ld-linux*) cp -L "$library" "$pack/glibc/" ;;
    *) [ -e "$pack/lib/${library##*/}" ] || cp -L "$library" "$pack/lib/" ;;
  esac
done
libc_folder="$(dirname "$(sed -nE 's/^\tlibc\.so\.6 => (\/[^ ]+) .*/\1/p' "$folder/ldd" | head -n 1)")"
# A real driver wants the rest of the C library from the same place.
for part in libdl.so.2 libpthread.so.0 librt.so.1; do
  if [ -e "$libc_folder/$part" ]; then cp -L "$libc_folder/$part" "$pack/glibc/"; fi
done
# The C library that the packed files ask for at least.
for object in "$pack"/bin/* "$pack"/lib/*.so*; do objdump -T "$object" 2>/dev/null || true; done | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -Vu | tail -n 1 >"$pack/glibc/needed"
cp tests/gpu/check.sh tests/gpu/contents.sh "$pack/"
{ git log -1 --format='%H %cd' 2>/dev/null || echo unknown; git status --porcelain 2>/dev/null | head -n 20; } >"$pack/commit"
strip --strip-debug "$pack"/bin/* "$pack"/lib/*.so* "$pack"/lib/fakecuda/*.so 2>/dev/null || true

tar -C "$folder" -cf - kiln | zstd -q "-${KILN_PACK_LEVEL:-15}" --long=27 -T0 -f -o "$out/kiln.tar.zst"
# A bare machine has no zstd: one goes along, with its libraries.
mkdir "$folder/zstd"
cp -L "$(command -v zstd)" "$folder/zstd/zstd"
ldd "$folder/zstd/zstd" | sed -nE 's/^\t[^ ]+ => (\/[^ ]+) .*/\1/p; s/^\t(\/[^ ]+) \(.*/\1/p' | while read -r library; do cp -L "$library" "$folder/zstd/"; done
tar -C "$folder" -czf "$out/zstd.tar.gz" zstd
cp tests/gpu/unpack.sh "$out/"
du -sb "$out" | sed 's/\t.*/ bytes in all/'
