#!/usr/bin/env bash
# tests/gpu/check.sh [OUT]: on a machine with a GPU and without LLVM or a toolkit, from what tests/gpu/pack.sh packed (unpack it, run kiln/check.sh), or in a
# built tree. Runs the device tests and the benches on the real driver in under ten minutes and writes all it measured into OUT (check-results).
# Goes on after a failure: the first run should tell most. Exit 1 when anything failed.
set -uo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if [ -d "$here/bin" ]; then root="$here"; else root="$(cd "$here/../.." && pwd)/build"; fi
out="${1:-check-results}"
mkdir -p "$out"
export LD_LIBRARY_PATH="$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" KILN_CODEGEN="$root/lib/libkiln_codegen.so"
unset KILN_CUDA_LIBRARY
export KILN_DEVICE=cuda KILN_TEST_DEVICES=cuda
failed=0
deadline=$((SECONDS + ${KILN_CHECK_SECONDS:-580}))

# step NAME SECONDS COMMAND...: its output in OUT/NAME.log, a line here.
step() {
  local name="$1" limit="$2" rc=0 left=$((deadline - SECONDS)) began="$SECONDS"
  shift 2
  [ "$left" -lt "$limit" ] && limit="$left"
  if [ "$limit" -le 5 ]; then echo "$name: not run, no time is left"; failed=1; return; fi
  timeout --kill-after=5 "$limit" "$@" >"$out/$name.log" 2>&1 </dev/null || rc=$?
  [ "$rc" = 0 ] || failed=1
  echo "$name: status $rc, $((SECONDS - began)) s; $(grep -aE 'test cases:|: ok,|^[0-9]+ passed' "$out/$name.log" | tail -n 1)"
}

{ date -u; uname -a; cat "$here/commit" 2>/dev/null; nvidia-smi 2>&1; } >"$out/machine.log"
step doctor 30 "$root/bin/kiln" doctor
step devices 30 "$root/bin/kiln" devices --json
if ! grep -q '"device": *"cuda:0"' "$out/devices.log" || ! grep -A1 '"device": *"cuda:0"' "$out/devices.log" | grep -q '"usable": *true'; then
  echo "no usable GPU:"
  cat "$out/doctor.log"
  exit 1
fi
# The cheapest and most telling first.
for sample in saxpy reduce scan stencil histogram matmul; do
  if [ -x "$root/bin/sample_$sample" ]; then step "sample_$sample" 30 "$root/bin/sample_$sample"; fi
done
step bench_launch 60 "$root/bin/kiln_bench" launch --json
step conformance 240 "$root/bin/kiln_test_conformance" --no-colors=true
step dsl 60 "$root/bin/kiln_test_dsl" --no-colors=true
step runtime 60 "$root/bin/kiln_test_runtime" --no-colors=true '--source-file=*buffer_test*,*client_test*,*launch_cases*'
step demo 60 "$root/bin/sample_demo"
step bench_jit 60 "$root/bin/kiln_bench" jit --json
[ "$failed" = 0 ] && echo "all went well; results in $out" || echo "something failed; results in $out"
exit "$failed"
