# Part of ./dev: installing what is missing, configuring, building. Sourced, with the repository's root as the current folder.

say_to_stderr=0  # 1: stdout belongs to the program that is run at the end
say() {
  if [ "$say_to_stderr" = 1 ]; then echo "dev: $*" >&2; else echo "dev: $*"; fi
}
die_usage() {
  echo "dev: $*" >&2
  echo "dev: './dev help' lists the commands" >&2
  exit 2
}

jobs="${KILN_JOBS:-$(nproc 2>/dev/null || echo 2)}"

# The CMake folder of LLVM 22. LLVM_DIR may be that folder or the prefix above it.
llvm_cmake_dir() {
  local dir="${LLVM_DIR:-/usr/lib/llvm-22}"
  if [ -d "$dir/lib/cmake/llvm" ]; then dir="$dir/lib/cmake/llvm"; fi
  echo "$dir"
}

# setup_packages PURPOSE: installs what third_party/packages.txt lists for it and dpkg does not have.
setup_packages() {
  local purpose="$1" name only missing=()
  if ! command -v dpkg-query >/dev/null 2>&1; then
    say "no dpkg here: nothing is installed; third_party/packages.txt lists what the build needs"
    return 0
  fi
  while read -r name only; do
    case "$name" in '' | '#'*) continue ;; esac
    if [ "${only:-build}" != "$purpose" ]; then continue; fi
    case "$name" in llvm-*) if [ -n "${LLVM_DIR:-}" ]; then continue; fi ;; esac
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" != installed ]; then missing+=("$name"); fi
  done <third_party/packages.txt
  if [ ${#missing[@]} -eq 0 ]; then return 0; fi
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
      echo "dev: missing packages: ${missing[*]}; installing them needs root, and there is no sudo: apt-get install ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  local log
  log="$(mktemp)"
  if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } \
    </dev/null >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    echo "dev: apt-get could not install: ${missing[*]}" >&2
    return 1
  fi
  rm -f "$log"
}

# configure TREE: once; ninja runs CMake again by itself when a list file changes.
configure() {
  local tree="$1" llvm
  llvm="$(llvm_cmake_dir)"
  if [ ! -f "$llvm/LLVMConfig.cmake" ]; then
    echo "dev: no LLVM 22 at '$llvm' (no LLVMConfig.cmake); set LLVM_DIR to one" >&2
    return 1
  fi
  local stamp="$tree/.dev-configured" wanted
  wanted="llvm=$llvm cc=${CC:-} cxx=${CXX:-}"
  if [ -f "$tree/build.ninja" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return 0; fi
  say "configuring $tree"
  local args=(-S . -B "$tree" -G Ninja "-DLLVM_DIR=$llvm")
  case "$tree" in
    build) args+=(-DCMAKE_BUILD_TYPE=Release) ;;
    *) args+=(--preset "${tree#build-}") ;;
  esac
  mkdir -p "$tree"
  if ! cmake "${args[@]}" >"$tree/configure.log" 2>&1; then
    cat "$tree/configure.log" >&2
    return 1
  fi
  echo "$wanted" >"$stamp"
}

setup_all() { setup_packages build && configure build; }

# build_tree TREE [TARGET...]: quiet when all is well, the compiler's words when not.
build_tree() {
  local tree="$1"
  shift
  configure "$tree" || return 1
  local started=$SECONDS
  if ! ninja -C "$tree" -j "$jobs" "$@" >"$tree/build.log" 2>&1 </dev/null; then
    grep -vE '^\[[0-9]+/[0-9]+\] ' "$tree/build.log" | tail -n 200 >&2
    echo "dev: the build in $tree failed; the whole log is $tree/build.log" >&2
    return 1
  fi
  if ! grep -q 'no work to do' "$tree/build.log"; then say "built $tree in $((SECONDS - started)) s"; fi
}

# make_site: docs/ as a site, whole or not at all.
make_site() {
  local new=build/site.new
  if ! command -v mkdocs >/dev/null 2>&1; then
    echo "dev: there is no mkdocs; install it (third_party/packages.txt)" >&2
    return 1
  fi
  rm -rf "$new"
  if ! mkdocs build --strict --quiet --config-file docs/site/mkdocs.yml --site-dir "$PWD/$new" >&2; then
    rm -rf "$new"
    echo "dev: no site was made" >&2
    return 1
  fi
  rm -rf build/site
  mv "$new" build/site
  say "the site is build/site/index.html"
}
