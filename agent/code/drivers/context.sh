# One interpreter of a code context, in bash: runs what comes over its channel in this shell.
# Started with the channel as descriptor 3, over which this text came; `context.py` says how requests
# and events look. All names of ours begin with __nook_; 200 to 202 are our descriptors, which are
# closed while code runs.
exec 200<&3 3<&- 201<&0 0</dev/null

# An interrupt ends the command that is waited for, then all functions and files that led to it:
# under extdebug a trap that returns 2 makes each of them return. Outside of the code there are none.
__nook_interrupt() {
    if [[ $__nook_running == 1 ]]; then
        __nook_running=2
        shopt -s extdebug
        set -T
        trap '__nook_skip' DEBUG
    fi
}

__nook_skip() {
    [[ $__nook_running != 2 || ${#BASH_SOURCE[@]} -lt 2 ]] || return 2
}

__nook_read() {
    while ! IFS= builtin read -r -u 200 "$@"; do
        [[ $? -gt 128 ]] || exit 0
    done
}

__nook_next() {
    local LC_ALL=C line count input
    __nook_read line
    IFS=' ' builtin read -r __nook_number count input <<<"${line#run }"
    __nook_code=
    [[ $count == 0 ]] || __nook_read -d '' -N "$count" __nook_code
    if [[ $input == 1 ]]; then exec 0<&201; else exec 0</dev/null; fi
}

__nook_number=0 __nook_status=0 __nook_running=0 __nook_trace= __nook_code=
trap __nook_interrupt INT
builtin printf '{"event":"ready"}\n' >&200
# `break` and `continue` of the code, outside of its own loops, are of these two: its end as well.
while :; do while :; do
    if [[ $__nook_running != 0 ]]; then
        { [[ $- != *x* ]] || __nook_trace='set -x; '; set +x; } 2>/dev/null
        if [[ $__nook_running == 2 ]]; then
            __nook_status=130
            trap - DEBUG
            set +T
            shopt -u extdebug
        fi
        __nook_running=0
        builtin printf '{"event":"done","run":%d,"status":%d}\n' "$__nook_number" "$__nook_status" >&200
    fi
    __nook_next || exit 1
    trap __nook_interrupt INT
    __nook_status=0 __nook_running=1
    source /dev/fd/202 202<<<"exec 202<&-; $__nook_trace$__nook_code" 200<&- 201<&-
    { __nook_status=$?; [[ $- == *x* ]] && __nook_trace='set -x; ' || __nook_trace=; set +x; } 2>/dev/null
done; done
