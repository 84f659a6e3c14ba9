# Part of ./dev: running the doctest programs and the other ctest entries, and counting. Sourced.

known_devices="cpu sim cuda"
default_devices="cpu,sim"

# sanitizer_settings address|thread: what programs need to run under it. The environment's own options come behind, and so before these.
sanitizer_settings() {
  case "$1" in
    address)
      # intercept_tls_get_addr: else the search for leaks of GCC 12 now and then takes other memory for that of a thread, and ends by a fault.
      export ASAN_OPTIONS="intercept_tls_get_addr=0:detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:${ASAN_OPTIONS:-}"
      export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}" ;;
    thread)
      export TSAN_OPTIONS="suppressions='$PWD/cmake/dev/tsan.supp':${TSAN_OPTIONS:-}" ;;
  esac
  export KILN_TEST_TIMEOUT="${KILN_TEST_TIMEOUT:-14400}"  # a program is some ten times as slow
}

# run_program LOG PROGRAM ARG...: output and exit status into LOG and LOG.rc. A hang ends after KILN_TEST_TIMEOUT seconds.
run_program() {
  local log="$1" rc=0
  shift
  timeout --kill-after=10 "${KILN_TEST_TIMEOUT:-1200}" "$@" >"$log" 2>&1 </dev/null || rc=$?
  echo "$rc" >"$log.rc"
}

# count_program NAME LOG FILTERED: adds to the totals `passed` and `failed`, prints what failed. Uses doctest's last summary line; a program that
# crashed, hung, printed no summary or ran nothing is a failure of its own.
count_program() {
  local name="$1" log="$2" filtered="$3" rc summary ok bad why=""
  rc="$(cat "$log.rc" 2>/dev/null || echo none)"
  summary="$(grep -aE '^\[doctest\] test cases: ' "$log" | tail -n 1 || true)"
  ok="$(sed -nE 's/.*\| *([0-9]+) passed.*/\1/p' <<<"$summary")"
  bad="$(sed -nE 's/.*\| *([0-9]+) failed.*/\1/p' <<<"$summary")"
  if [ "$rc" = 124 ] || [ "$rc" = 137 ]; then why="did not end within ${KILN_TEST_TIMEOUT:-1200} s"
  elif [ -z "$ok" ] || [ -z "$bad" ]; then why="ended with status $rc and without a summary"
  elif [ "$rc" != 0 ] && [ "$bad" = 0 ]; then why="ended with status $rc although no test case failed"
  elif [ $((ok + bad)) -eq 0 ] && [ "$filtered" = 0 ]; then why="ran no test case"
  fi
  passed=$((passed + ${ok:-0}))
  failed=$((failed + ${bad:-0}))
  if [ -n "$why" ]; then failed=$((failed + 1)); fi
  if [ -n "$why" ] || [ "${bad:-0}" != 0 ]; then
    echo "---- $name ----"
    # From the first report on; a flood is cut in the middle, the log has all of it.
    if [ "$(wc -l <"$log")" -gt 400 ]; then
      head -n 200 "$log"
      echo "... (the whole log: $log) ..."
      tail -n 200 "$log"
    else
      cat "$log"
    fi
    if [ -n "$why" ]; then echo "$name $why"; fi
  elif [ $((ok + bad)) -gt 0 ]; then
    echo "$name: $ok passed"
  fi
}

# finish: the one closing line.
finish() {
  echo "$passed passed, $failed failed"
  if [ "$failed" -gt 0 ] || [ "$passed" -eq 0 ]; then exit 1; fi
  exit 0
}

# test_command TREE [--devices LIST] [NAME...]
test_command() {
  local tree="$1" devices="$default_devices" device
  shift
  local parts=()
  passed=0
  failed=0
  while [ $# -gt 0 ]; do
    case "$1" in
      --devices) [ $# -ge 2 ] || die_usage "--devices needs a list, for example cpu"; devices="$2"; shift ;;
      --devices=*) devices="${1#--devices=}" ;;
      -*) die_usage "unknown option '$1' of test" ;;
      *) parts+=("$1") ;;
    esac
    shift
  done
  for device in ${devices//,/ }; do
    case " $known_devices " in
      *" $device "*) ;;
      *) die_usage "no device '$device' to test on; there are: $known_devices" ;;
    esac
  done
  [ -n "$devices" ] || die_usage "--devices needs a list, for example cpu"
  export KILN_TEST_DEVICES="$devices"

  if ! { setup_packages build && build_tree "$tree"; }; then
    failed=1
    finish
  fi

  run_tests "$tree" ${parts[@]+"${parts[@]}"}
  finish
}

# run_tests TREE [NAME...]: everything in TREE/bin and ctest's other entries, as far as the names ask for it. Adds to the totals.
run_tests() {
  local tree="$1" name program areas=() filters=()
  shift
  # A name is an area, else a part of a test case's name.
  for name in "$@"; do
    if [ -x "$tree/bin/kiln_test_$name" ]; then areas+=("$name"); else filters+=("*$name*"); fi
  done
  local programs=()
  # The longest first, so that no processor waits for one of them at the end.
  for program in "$tree"/bin/kiln_test_{conformance,runtime} "$tree"/bin/kiln_test_*; do
    [ -x "$program" ] || continue
    name="${program##*/kiln_test_}"
    case " ${programs[*]} " in *" $name "*) continue ;; esac
    if [ ${#areas[@]} -gt 0 ]; then
      case " ${areas[*]} " in *" $name "*) ;; *) continue ;; esac
    fi
    programs+=("$name")
  done
  local args=(--no-colors=true) filtered=0
  if [ ${#filters[@]} -gt 0 ]; then
    filtered=1
    args+=("--test-case=$(IFS=,; echo "${filters[*]}")")
  fi

  local logs="$tree/test-logs"
  rm -rf "$logs"
  mkdir -p "$logs"
  for name in ${programs[@]+"${programs[@]}"}; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    run_program "$logs/$name.log" "$tree/bin/kiln_test_$name" "${args[@]}" &
  done
  wait
  for name in ${programs[@]+"${programs[@]}"}; do count_program "$name" "$logs/$name.log" "$filtered"; done
  if [ ${#areas[@]} -eq 0 ]; then run_extras "$tree" "$logs" "$@"; fi
}

# run_extras TREE LOGS [NAME...]: the ctest entries that are no doctest program (must-not-compile and the like), one count each.
run_extras() {
  local tree="$1" log="$2/extras.log" pattern counted="" program ok bad
  shift 2
  pattern="$(IFS='|'; echo "$*")"
  for program in "$tree"/bin/kiln_test_*; do counted+="|${program##*/kiln_test_}"; done  # ctest lists the programs too
  (ctest --test-dir "$tree" -E "^(none$counted)\$" ${pattern:+-R "$pattern"} -j "$jobs" --output-on-failure --timeout "${KILN_TEST_TIMEOUT:-600}" >"$log" 2>&1 </dev/null) || true
  ok="$(grep -cE '^ *[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed ' "$log" || true)"
  bad="$(sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests failed out of [0-9]+.*/\1/p' "$log")"
  if [ -z "$bad" ]; then
    if grep -q 'No tests were found' "$log"; then return; fi
    bad=1
  fi
  passed=$((passed + ok))
  failed=$((failed + bad))
  if [ "$bad" != 0 ]; then
    echo "---- extras ----"
    grep -vE ' Passed | Start ' "$log" | head -n 400
  elif [ "$ok" != 0 ]; then
    echo "extras: $ok passed"
  fi
}

# fuzz_command TREE N [FIRST [OPTION...]]
fuzz_command() {
  local tree="$1" count="${2:-}" first="${3:-1}"
  [[ "$count" =~ ^[1-9][0-9]*$ ]] || die_usage "fuzz needs a number of kernels, not '$count'"
  [[ "$first" =~ ^[0-9]+$ ]] || die_usage "fuzz: the first seed is a number, not '$first'"
  shift $(($# < 3 ? $# : 3))
  setup_packages build && build_tree "$tree" kiln_fuzz kiln_codegen kiln_simcuda || exit 1
  fuzz "$tree" "$first" "$count" "$@"
}

# fuzz_runtime_command TREE N [OPTION...]
fuzz_runtime_command() {
  local tree="$1"
  shift
  [[ "${1:-}" =~ ^[1-9][0-9]*$ ]] || die_usage "fuzz-runtime needs a number of operations, not '${1:-}'"
  setup_packages build && build_tree "$tree" kiln_runtime_fuzz kiln_codegen || exit 1
  exec "$tree/bin/kiln_runtime_fuzz" "$@"
}

# fuzz TREE FIRST COUNT [OPTION...]: the seeds shared out among the processors. How far they are goes to stderr; at the end differences are printed,
# reduced; exit 1 when there are any.
fuzz() {
  local tree="$1" first="$2" count="$3" worker share from=0 status=0 pids=()
  shift 3
  mkdir -p "$tree/fuzz-logs"
  for ((worker = 0; worker < jobs; ++worker)); do
    share=$(((count - from) / (jobs - worker)))
    [ "$share" -gt 0 ] || continue
    "$tree/bin/kiln_fuzz" $((first + from)) "$share" --reduce --sim 1 "$@" >"$tree/fuzz-logs/$worker.log" </dev/null &
    pids+=("$!:$worker")
    from=$((from + share))
  done
  for worker in "${pids[@]}"; do
    wait "${worker%%:*}" || status=1
    cat "$tree/fuzz-logs/${worker##*:}.log"
  done
  return "$status"
}
