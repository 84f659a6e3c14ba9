#!/usr/bin/env bash
# check.sh [OUT]: on a machine with a GPU and without LLVM or a toolkit, from what tests/gpu/pack.sh packed, or in a built tree (tests/gpu/check.sh).
# Measures the device and runs the device tests on the real driver in under ten minutes, the most telling first; writes OUT/summary.txt and a log a step
# (check-results). Goes on after a failure: each step is a process of its own with a time limit. Exit 1 when anything failed, 3 when there is no GPU.
# Needs bash, coreutils, grep and sed. KILN_CHECK_SECONDS (570): all of it; KILN_CHECK_STEP_SECONDS: a step at most; KILN_CHECK_JOBS: tests at a time; KILN_CHECK_OWN_LIBC=1: the packed C library;
# KILN_CHECK_LIBRARY: another driver's library, for trying the script out.
set -uo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if [ -d "$here/bin" ]; then root="$here" devices="$here/devices"; else root="$(cd "$here/../.." && pwd)/build" devices="$here/../simcuda/devices"; fi
source "$here/contents.sh"
out="${1:-check-results}"
mkdir -p "$out"
out="$(cd "$out" && pwd)"
summary="$out/summary.txt"
: >"$summary"
deadline=$((SECONDS + ${KILN_CHECK_SECONDS:-570}))
jobs="${KILN_CHECK_JOBS:-$(n="$(nproc)"; echo $((n > 8 ? 4 : n > 3 ? 2 : 1)))}"
failed=0

say() { echo "$*" | tee -a "$summary"; }
# Lines of a log, set in, into the summary.
show() { sed 's/^/    /' | tee -a "$summary"; }

# The packed C library, where the machine's is older than the programs want: they say so when they are started.
libc=() why_libc="of the machine"
needed="$(cat "$root/glibc/needed" 2>/dev/null || echo unknown)"
said="$(LD_LIBRARY_PATH="$root/lib" timeout 20 "$root/bin/kiln" --help 2>&1 >/dev/null </dev/null)"
if [ -d "$root/glibc" ] && { [ "${KILN_CHECK_OWN_LIBC:-0}" = 1 ] || grep -q "GLIBC_.* not found" <<<"$said"; }; then
  libc=("$(echo "$root"/glibc/ld-linux-*.so.*)" --library-path "$root/glibc:$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
  why_libc="packed; $(head -n 1 <<<"$said")"
fi

# run LIMIT LOG [NAME=value...] PROGRAM ARG...: one of ours, by the packed libraries; they are nobody else's.
run() {
  local limit="$1" log="$2" rc=0 settings=()
  shift 2
  while [[ "$1" == *=* ]]; do settings+=("$1"); shift; done
  local program="$root/bin/$1"
  shift
  if [ ${#libc[@]} -eq 0 ]; then settings+=("LD_LIBRARY_PATH=$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"); fi
  timeout --kill-after=5 "$limit" env KILN_ENV=off KILN_CODEGEN="$root/lib/libkiln_codegen.so" KILN_NULL_DRIVER="$root/lib/fakecuda/libcuda_null.so" KILN_DEVICE=cuda KILN_TEST_DEVICES=cuda \
    "${settings[@]}" ${libc[@]+"${libc[@]}"} "$program" "$@" >"$log" 2>&1 </dev/null &
  # A process that hangs in the driver may not even die when it is killed: it is left behind then.
  local pid=$! give_up=$((SECONDS + limit + 15))
  while kill -0 "$pid" 2>/dev/null; do
    if [ "$SECONDS" -ge "$give_up" ]; then return 137; fi
    sleep 0.1
  done
  wait "$pid" || rc=$?
  return "$rc"
}
unset KILN_CUDA_LIBRARY
if [ -n "${KILN_CHECK_LIBRARY:-}" ]; then export KILN_CUDA_LIBRARY="$KILN_CHECK_LIBRARY"; fi

# why RC: what an exit status of run means.
why() {
  case "$1" in
    0) echo ok ;;
    124 | 137) echo "no end within its time" ;;
    13[0-9] | 14[0-9]) echo "ended by signal $(($1 - 128))" ;;
    *) echo "status $1" ;;
  esac
}
# left WANTED: how many seconds a step may take; fails when that is too little to begin.
left() {
  local rest=$((deadline - SECONDS)) wanted="$1" most="${KILN_CHECK_STEP_SECONDS:-600}"
  if [ "$rest" -lt 5 ]; then return 1; fi
  if [ "$wanted" -gt "$most" ]; then wanted="$most"; fi
  echo $((wanted < rest ? wanted : rest))
}
# step NAME LIMIT ...: as run, with a line in the summary; its log is OUT/NAME.log.
step() {
  local name="$1" limit rc=0 began="$SECONDS"
  if ! limit="$(left "$2")"; then say "$name: not run, no time is left"; failed=1; return 1; fi
  shift 2
  run "$limit" "$out/$name.log" "$@" || rc=$?
  say "$name: $(why "$rc"), $((SECONDS - began)) s"
  [ "$rc" = 0 ] || failed=1
  return "$rc"
}

# --- what machine this is ----------------------------------------------------------------------------------------------------
{
  echo "commit: $(cat "$here/commit" 2>/dev/null || echo 'of this tree')"
  date -u
  uname -a
  echo "C library: $needed or newer is wanted; used: $why_libc"
  grep -m 1 'model name' /proc/cpuinfo
  echo "processors: $(nproc)"
  grep -E '^Mem(Total|Available)' /proc/meminfo
  cat /proc/driver/nvidia/version 2>&1
  ls -l /dev/nvidia* 2>&1
  if command -v nvidia-smi >/dev/null 2>&1; then timeout 20 nvidia-smi 2>&1; timeout 20 nvidia-smi -q -d CLOCK,POWER,ECC,COMPUTE 2>&1; fi
} >"$out/machine.log"
say "Kiln on a GPU, $(date -u)"
sed -n '1,10p' "$out/machine.log" | show
step doctor 40 kiln doctor
show <"$out/doctor.log"
step device 40 kiln_gpu_measure device || true
grep -vE '^attribute ' "$out/device.log" | show
if ! grep -q '^cuda:0: ' "$out/device.log"; then
  say "no usable GPU; the rest is not run"
  exit 3
fi

# --- the first kernels: does anything work at all? ----------------------------------------------------------------------------
for sample in $kiln_samples; do
  step "sample_$sample" 30 "sample_$sample" || head -n 30 "$out/sample_$sample.log" | show
done

# --- measures, alone on the device -------------------------------------------------------------------------------------------
step launches 60 kiln_gpu_measure launches
show <"$out/launches.log"
step null_launch 30 KILN_DEVICE= KILN_CUDA_LIBRARY= kiln_bench launch
show <"$out/null_launch.log"
step copies 60 kiln_gpu_measure copies
show <"$out/copies.log"
step kernels 90 kiln_gpu_measure kernels
show <"$out/kernels.log"

# --- tests -------------------------------------------------------------------------------------------------------------------
# A file of tests is a process: a device that one loses is whole for the next. Of a file in which the device was lost, the cases that came after are run
# again, each in a process of its own, so that each has its own result.
not_here='*decimal separator*'  # makes a locale, which needs localedef
numbers() { grep -aE '^\[doctest\] test cases: ' "$1" | tail -n 1 | sed -nE 's/.*\| *([0-9]+) passed *\| *([0-9]+) failed.*/\1 passed, \2 failed/p'; }
# failed_cases LOG: the names of the cases in which a check failed, one a line.
failed_cases() {
  sed -nE '/^TEST CASE:  /{s/^TEST CASE:  //;h}; / (ERROR|FATAL ERROR): /{x;s/\n.*//;/./p;s/.*//;x}' "$1" | sort -u
}
test_file() {
  local name="$1" limit="$2" program="$3" file="$4" rc=0 began="$SECONDS" log="$out/$1.log" text
  if ! limit="$(left "$limit")"; then say "$name: not run, no time is left"; return 1; fi
  run "$limit" "$log" "$program" --no-colors=true --duration=true "--source-file=*/$file" "--test-case-exclude=$not_here" || rc=$?
  text="$(numbers "$log")"
  if [ -z "$text" ] || grep -q '^0 passed, 0 ' <<<"$text"; then
    text="no test ran"
    if [ "$rc" = 0 ]; then rc=1; fi
  fi
  text="$name: $(why "$rc"), $((SECONDS - began)) s; $text"
  if [ "$rc" != 0 ]; then
    text+=$'\n'"$(failed_cases "$log" | head -n 20 | sed 's/^/    failed: /')"
    if grep -q 'is lost to this process' "$log"; then text+=$'\n'"$(alone "$name" "$program" "$file")"; fi
    text+=$'\n'"$(grep -aE -m 1 -A 12 ' (ERROR|FATAL ERROR): ' "$log" | cut -c1-400 | sed 's/^/    | /')"
  fi
  say "$text"
  return "$rc"
}
# alone NAME PROGRAM FILE: each of the file's cases by itself.
alone() {
  local name="$1" program="$2" file="$3" title log rc limit number=0
  run 20 "$out/$name.list" "$program" --no-colors=true --list-test-cases "--source-file=*/$file" "--test-case-exclude=$not_here" || return 0
  mkdir -p "$out/$name"
  while IFS= read -r title; do
    number=$((number + 1)) rc=0 log="$out/$name/$number.log"
    if ! limit="$(left 30)"; then echo "    alone: no time is left for the cases from $number on"; return 0; fi
    run "$limit" "$log" "$program" --no-colors=true "--source-file=*/$file" "--test-case=$(sed 's/,/?/g' <<<"$title")" || rc=$?
    [ "$rc" = 0 ] || echo "    alone: $(why "$rc"): $title ($name/$number.log)"
  done < <(grep -avE '^(\[doctest\]|=+$|$)' "$out/$name.list")
  echo "    alone: $number cases run by themselves"
}
# tests NAME:LIMIT:PROGRAM:FILE...: some at a time; each says its line when it is done.
tests() {
  local one name limit program file pid pids=()
  for one in "$@"; do
    IFS=: read -r name limit program file <<<"$one"
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do sleep 0.1; done
    test_file "$name" "$limit" "$program" "$file" &
    pids+=("$!")
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
}
c=kiln_test_conformance r=kiln_test_runtime d=kiln_test_dsl
tests launch_cases:60:$r:launch_cases_test.cpp buffers:60:$r:buffer_test.cpp client:60:$r:client_test.cpp \
  launch_table:60:$c:launch_test.cpp kernels_table:60:$c:kernels_test.cpp memory_table:60:$c:memory_test.cpp scenarios:60:$c:scenarios_test.cpp \
  launch_blocks:90:$c:launch_blocks_test.cpp rows:60:$c:rows_test.cpp barriers:90:$c:barriers_test.cpp warp:180:$c:warp_test.cpp atomics:90:$c:atomics_test.cpp control:60:$c:control_test.cpp \
  integers:150:$c:integers_test.cpp floats:150:$c:floats_test.cpp byte_floats:60:$c:byte_floats_test.cpp math:120:$c:math_test.cpp composed:60:$c:composed_test.cpp checks:60:$c:check_test.cpp assumptions:60:$c:assume_test.cpp logs:60:$c:log_test.cpp clocks:60:$c:clocks_test.cpp traps:60:$c:trap_test.cpp dsl_launch:60:$d:launch_test.cpp dsl_space:60:$d:space_test.cpp

# --- what loses the device, and what takes long ---------------------------------------------------------------------------------
step answers 120 kiln_gpu_measure answers
step sim_answers 60 "KILN_CUDA_LIBRARY=$root/lib/libkiln_simcuda.so" "KILN_SIMCUDA_DEVICES=$devices/h200.json" 'KILN_SIMCUDA_FAULTS={"quiet": true}' kiln_gpu_measure answers
say "answers of the driver that are not those of the simulated one (<):"
# By lines: what the two say alike is left out.
while IFS= read -r line; do grep -aqxF -e "$line" "$out/answers.log" || echo "< $line"; done < <(grep -av '^simulated driver' "$out/sim_answers.log") | show
while IFS= read -r line; do grep -aqxF -e "$line" "$out/sim_answers.log" || echo "> $line"; done <"$out/answers.log" | show
step demo 60 sample_demo
show <"$out/demo.log"
step jit 60 kiln_bench jit
show <"$out/jit.log"
tests operations:240:$c:ops_test.cpp combinations:180:$c:combinations_test.cpp
if [ "$failed" = 0 ]; then say "all went well in $SECONDS s"; else say "something failed; $SECONDS s"; fi
exit "$failed"
