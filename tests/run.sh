#!/bin/sh
# Installs what is missing, builds, and runs every suite, or the stages that are named.
#
# usage: run.sh [lint] [unit] [integration] [asan] [tsan] [fallback] [fuzz] [static] [each]
#
# Without a name all but `each`, which takes an hour and more.
# Each stage has a budget in minutes; one that takes longer is stopped and counts as failed.
# NOOK_FUZZ_SECONDS (20): for each fuzz target. PYTEST_ARGS: more arguments of every pytest.
set -u
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1
results=build/results
jobs=$(nproc)

# CI runs the short form; the counts that are named elsewhere are those of a run by hand.
if [ -n "${CI-}" ]; then
    NOOK_SCALE=${NOOK_SCALE:-0.2}
    NOOK_FUZZ_SECONDS=${NOOK_FUZZ_SECONDS:-10}
    export NOOK_SCALE NOOK_FUZZ_SECONDS
fi

# stage: minutes
budget() {
    case $1 in
    lint) echo 10 ;;
    unit) echo 5 ;;
    integration) echo 18 ;;
    asan) echo 20 ;;
    tsan) echo 22 ;;
    fallback) echo 18 ;;
    fuzz) echo 9 ;;
    static) echo 12 ;;
    each) echo 180 ;;
    esac
}

# build PRESET [TARGET]: what went wrong is printed, first to last.
build() {
    [ -e "build/$1/build.ninja" ] || cmake --preset "$1" >"$results/$1-configure.log" 2>&1 ||
        { cat "$results/$1-configure.log" && return 1; }
    cmake --build --preset "$1" --target "${2:-all}" >"$results/$1-build.log" 2>&1 ||
        { grep -vE '^\[[0-9]+/[0-9]+\] |^/usr/bin/' "$results/$1-build.log" && return 1; }
}

# run_ctest PRESET LABEL: no test at all is a failure.
run_ctest() {
    ctest --test-dir "build/$1" -L "^$2\$" -j "$jobs" --no-tests=error --output-on-failure \
        --output-junit "$PWD/$results/$stage-$2.xml"
}

# run_pytest PRESET FOLDER...
run_pytest() {
    preset=$1
    shift
    # shellcheck disable=SC2086 # arguments
    NOOK_BINARY=build/$preset/nookd build/venv/bin/python -m pytest -q -c tests/pytest.ini \
        --rootdir tests -n "$jobs" --dist worksteal --durations=10 \
        --junitxml "$results/$stage-pytest.xml" ${PYTEST_ARGS-} "$@"
}

stage_lint() {
    build dev && build release && run_ctest dev lint
}

stage_unit() {
    build dev && run_ctest dev unit
}

stage_integration() {
    build dev && run_pytest dev tests/integration tests/contract tests/clients
}

sanitized() {
    build "$1" || return 1
    bad=0
    run_ctest "$1" unit || bad=1
    run_pytest "$1" tests/integration || bad=1
    return $bad
}

stage_asan() {
    NOOK_SCALE=0.1 NOOK_PATIENCE=3 sanitized asan
}

stage_tsan() {
    NOOK_SCALE=0.1 NOOK_PATIENCE=5 sanitized tsan
}

# The same suite as on a kernel that has none of these.
without() {
    build dev && NOOK_SCALE=0.2 NOOK_SERVE_ARGS="--without $1" run_pytest dev tests/integration
}

stage_fallback() {
    without openat2,close_range,pidfd,subreaper,sock_diag,cgroup,landlock,terminal_signals,terminal_eof
}

# The same with each one missing by itself.
stage_each() {
    bad=0
    for name in openat2 close_range pidfd subreaper sock_diag cgroup landlock terminal_signals \
        terminal_eof; do
        stage=each-$name
        echo "---- without $name"
        without "$name" || bad=1
    done
    return $bad
}

stage_fuzz() {
    build fuzz fuzz_all || return 1
    bad=0
    count=0
    cases=
    for target in build/fuzz/tests/fuzz_*; do
        [ -f "$target" ] && [ -x "$target" ] || continue
        name=$(basename "$target")
        corpus=build/corpus/$name
        regress=tests/fuzz/regress/$name
        mkdir -p "$corpus"
        [ -d "$regress" ] || regress=
        # shellcheck disable=SC2086 # perhaps empty
        if "$target" -max_total_time="${NOOK_FUZZ_SECONDS:-20}" -timeout=10 -rss_limit_mb=2048 \
            -print_final_stats=1 -artifact_prefix="build/results/$name-" "$corpus" $regress \
            >"$results/$name.log" 2>&1; then
            echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$results/$name.log") runs"
            count=$((count + 1))
            cases="$cases<testcase name='$name'/>"
        else
            tail -60 "$results/$name.log"
            echo "$name: FAILED"
            bad=$((bad + 1))
            cases="$cases<testcase name='$name'><failure/></testcase>"
        fi
    done
    echo "<testsuite>$cases</testsuite>" >"$results/fuzz.xml"
    echo "fuzz: $count passed, $bad failed"
    [ "$bad" = 0 ] && [ "$count" -gt 0 ]
}

# The static binary, and with it the places that need no machine of their own.
stage_static() {
    PYTEST_ARGS="--junitxml $results/static-pytest.xml -s ${PYTEST_ARGS-}" \
        sh tests/places.sh roots runc gvisor
}

# A stage in a process group of its own, so that its budget can end all of it.
if [ "${1-}" = --stage ]; then
    stage=$2
    "stage_$stage"
    exit
fi

[ $# -gt 0 ] || set -- lint unit integration asan tsan fallback fuzz static
for stage in "$@"; do
    [ -n "$(budget "$stage")" ] || {
        echo "run.sh: no stage $stage" >&2
        exit 2
    }
done

sh container/setup.sh run test || exit 1
rm -rf "$results"
mkdir -p "$results"
failed=
summary=
running=
trap '[ -z "$running" ] || kill "$running"; exit 130' INT TERM HUP
for stage in "$@"; do
    minutes=$(budget "$stage")
    echo "==== $stage (budget $minutes min)"
    began=$(date +%s)
    timeout --kill-after=20 "${minutes}m" sh tests/run.sh --stage "$stage" </dev/null &
    running=$!
    wait "$running"
    status=$?
    took=$(($(date +%s) - began))
    case $status in
    0) word=ok ;;
    124 | 137) word="FAILED: over its budget" ;;
    *) word=FAILED ;;
    esac
    [ "$status" = 0 ] || failed="$failed $stage"
    summary="$summary$(printf '%-12s %4d s of %3d min  %s' "$stage" "$took" "$minutes" "$word")
"
    echo "==== $stage: $word after $took s"
done

printf '\n%s' "$summary"
build/venv/bin/python tests/count.py "$results"
[ -z "$failed" ] || {
    echo "failed:$failed"
    exit 1
}
