# shellcheck shell=sh disable=SC2034,SC2154 # its variables are those of the whole script

set -u
LC_ALL=C
export LC_ALL
umask 077
# A folder that stands for / : to try the script on a copy of a machine. A copy brings its own systemctl, taskset and chrt.
R=${QUELL_ROOT:-}
STATE=$R/run/$NAME
interrupted=0
noted=0

say() {
    printf '%s: %s\n' "$NAME" "$1" >&2
}

die() {
    say "$1"
    exit "${2:-1}"
}

tool() {
    tool_name=$1
    shift
    if [ -n "$R" ]; then "$R/usr/bin/$tool_name" "$@"; else "$tool_name" "$@"; fi
}

# --- finding a place again -------------------------------------------------------------------------------------------------

# Reads the stat of the thread whose folder is $1. Its name may hold anything; what is behind the last parenthesis may not.
thread_stat() {
    { IFS= read -r line <"$1/stat"; } 2>/dev/null || return 1
    t_comm=${line#*\(}
    t_comm=${t_comm%)*}
    # shellcheck disable=SC2086 # numbers, and one letter
    set -- ${line##*) }
    [ $# -ge 39 ] || return 1
    t_flags=$7
    t_start=${20}
    t_priority=${38}
    t_policy=${39}
    # A worker's name goes on with what it is at.
    case $((t_flags & 0x20)):$t_comm in
    0:* | *:kworker/R-*) ;;
    *:kworker/*) t_comm=${t_comm%%[+-]*} ;;
    esac
}

# By its id, its start and its name; else the only thread of the kernel's that has the name now.
find_thread() {
    tid=$pid
    if thread_stat "$R/proc/$pid" && [ "$t_comm" = "$comm" ] && [ "$t_start" = "$start" ]; then return 0; fi
    tid=
    for one in "$R"/proc/[0-9]*; do
        thread_stat "$one" || continue
        if [ "$((t_flags & 0x200000))" -eq 0 ] || [ "$t_comm" != "$comm" ]; then continue; fi
        [ -z "$tid" ] || return 1
        tid=${one##*/}
    done
    [ -n "$tid" ] && thread_stat "$R/proc/$tid"
}

# Whether the interrupt $1 has the handlers that are meant: the folders in its own, whatever their order.
irq_is() {
    length=0
    for one in "$R/proc/irq/$1"/*/; do
        [ -d "$one" ] || continue
        one=${one%/}
        one=${one##*/}
        case ", $name, " in
        *", $one, "*) length=$((length + ${#one} + 2)) ;;
        *) return 1 ;;
        esac
    done
    [ "$length" -eq 0 ] || { [ "$length" -eq "$((${#name} + 2))" ] && return 0 || return 1; }
    # A kernel without those folders still has the table.
    [ -f "$R/proc/irq/$1/smp_affinity" ] || return 1
    line=$(grep "^ *$1:" "$R/proc/interrupts" 2>/dev/null) || return 1
    case $line in
    *"  $name") return 0 ;;
    esac
    return 1
}

# Numbers are given anew when a driver is loaded again: by number and name, else by the name alone where only one has it.
find_irq() {
    irq=$number
    irq_is "$irq" || {
        irq=
        for folder in "$R"/proc/irq/[0-9]*; do
            irq_is "${folder##*/}" || continue
            [ -z "$irq" ] || return 1
            irq=${folder##*/}
        done
    }
    spot=$R/proc/irq/$irq/smp_affinity
    [ -n "$irq" ] && [ -f "$spot" ]
}

find_place() {
    case $kind in
    file) spot=$R$path && [ -f "$spot" ] ;;
    irq) find_irq ;;
    thread) find_thread ;;
    unit) unit_now >/dev/null ;;
    dropin) spot=$R$path ;;
    held) spot=$R/dev/cpu_dma_latency ;;
    esac
}

# --- reading ---------------------------------------------------------------------------------------------------------------

thread_now() {
    case $property in
    affinity)
        while IFS= read -r line; do
            case $line in
            Cpus_allowed_list:*) printf '%s\n' "${line#*:?}" && return 0 ;;
            esac
        done <"$R/proc/$tid/status"
        return 1
        ;;
    policy)
        case $t_policy in
        0) t_policy=other ;;
        1) t_policy=fifo ;;
        2) t_policy=rr ;;
        3) t_policy='batch' ;;
        5) t_policy=idle ;;
        esac
        printf '%s:%s\n' "$t_policy" "$t_priority"
        ;;
    timer-slack) cat "$R/proc/$tid/timerslack_ns" ;;
    esac
}

unit_now() {
    active=$(tool systemctl is-active -- "$name" 2>/dev/null)
    enabled=$(tool systemctl is-enabled -- "$name" 2>/dev/null)
    [ -n "$active" ] && [ -n "$enabled" ] || return 1
    printf '%s %s\n' "$active" "$enabled"
}

# A holder is known by its id and its start.
held_now() {
    if [ -f "$STATE/$i.pid" ]; then
        read -r holder since <"$STATE/$i.pid"
        thread_stat "/proc/$holder" && [ "$t_start" = "$since" ] && echo held && return 0
    fi
    echo absent
}

# Puts what the place holds into the file $1.
look() {
    case $kind in
    file | irq) cat "$spot" ;;
    thread) thread_now ;;
    unit) unit_now ;;
    held) held_now ;;
    dropin) if [ -e "$spot" ] || [ -L "$spot" ]; then cat "$spot"; else printf absent; fi ;;
    esac >"$1" 2>/dev/null
}

# --- writing ---------------------------------------------------------------------------------------------------------------

# Of a file that shows all words, $text becomes the chosen one: in brackets, and in parentheses in one file.
chosen() {
    case ${spot:-}:$text in
    "$R/sys/kernel/debug/sched/preempt:"*\(*\)*) text=${text#*\(} && text=${text%%\)*} ;;
    *:*\[*\]*) text=${text#*\[} && text=${text%%\]*} ;;
    esac
}

# Writes the file $1 to $spot. The kernel wants the chosen word as a line: it does not see an empty write, and may take a word without an
# end of line for a longer one. A copy of a machine gets back every byte.
put_file() {
    if [ -n "$R" ]; then
        why=$({ cat "$1" >"$spot"; } 2>&1)
        return
    fi
    text=$(cat "$1")
    chosen
    why=$({ printf '%s\n' "$text" | cat >"$spot"; } 2>&1)
}

put_thread() {
    case $property in
    affinity) why=$(tool taskset -cp "$1" "$tid" 2>&1 >/dev/null) ;;
    policy)
        case $1 in
        other:*) flag=-o ;;
        fifo:*) flag=-f ;;
        rr:*) flag=-r ;;
        batch:*) flag=-b ;;
        idle:*) flag=-i ;;
        *) why='no such policy' && return 1 ;;
        esac
        why=$(tool chrt "$flag" -p "${1#*:}" "$tid" 2>&1 >/dev/null)
        ;;
    timer-slack) why=$({ printf '%s' "$1" | cat >"$R/proc/$tid/timerslack_ns"; } 2>&1) ;;
    esac
}

runs() {
    case $1 in active | activating | reloading) return 0 ;; *) return 1 ;; esac
}

# Each property by itself, and only where it differs.
put_unit() {
    wanted=${1%% *}
    wanted_enabled=${1#* }
    unit_now >/dev/null || return 1
    if [ "$enabled" = masked ] && [ "$wanted_enabled" != masked ]; then
        why=$(tool systemctl unmask -- "$name" 2>&1) && unit_now >/dev/null || return 1
    fi
    if runs "$wanted" && ! runs "$active"; then why=$(tool systemctl start -- "$name" 2>&1) || return 1; fi
    if [ "$enabled" != "$wanted_enabled" ]; then
        case $wanted_enabled in
        enabled) verb=enable ;;
        disabled) verb=disable ;;
        masked) verb=mask ;;
        *) why="nothing makes a unit $wanted_enabled" && return 1 ;;
        esac
        why=$(tool systemctl "$verb" -- "$name" 2>&1) || return 1
    fi
    # Last, so that nothing starts it again before it is masked.
    if ! runs "$wanted" && runs "$active"; then why=$(tool systemctl stop -- "$name" 2>&1) || return 1; fi
}

# The file is there with all of its text, or as it was.
put_dropin() {
    folder=${spot%/*}
    if [ "$(cat "$1")" = absent ]; then
        rm -f -- "$spot" || return 1
        if [ -f "$STATE/$i.made" ]; then rmdir -- "$folder" 2>/dev/null; fi
        return 0
    fi
    if [ ! -d "$folder" ]; then
        why=$(mkdir -m 755 -- "$folder" 2>&1) || return 1
        : >"$STATE/$i.made"
    fi
    if [ -e "$spot" ] || [ -L "$spot" ]; then
        case $(head -n 1 -- "$spot") in
        *quell*) ;;
        *) why='a file of that name is there, and its first line does not say that it is of quell' && return 1 ;;
        esac
    fi
    why=$({ cat "$1" >"$folder/.$NAME.draft" && chmod 644 "$folder/.$NAME.draft" && mv -f "$folder/.$NAME.draft" "$spot"; } 2>&1)
}

# Opens the file, and leaves it open in a process that does nothing else. What the kernel reads there is hexadecimal.
put_held() {
    value=$(cat "$1")
    if [ "$value" = absent ]; then
        [ "$(held_now)" = held ] && kill "$holder" 2>/dev/null
        rm -f -- "$STATE/$i.pid"
        return 0
    fi
    why='it cannot be opened'
    [ -e "$spot" ] || return 1
    { printf '0x%08x' "$value" >&3 && {
        # Not the terminal's, nor a waiting caller's: it outlives both.
        (trap '' HUP && exec sleep 2147483647 3>&3) </dev/null >/dev/null 2>&1 &
        holder=$!
    }; } 3>"$spot" 2>/dev/null || return 1
    thread_stat "/proc/$holder" && echo "$holder $t_start" >"$STATE/$i.pid"
}

put() {
    why=
    case $kind in
    file | irq) put_file "$1" ;;
    thread) put_thread "$(cat "$1")" ;;
    unit) put_unit "$(cat "$1")" ;;
    dropin) put_dropin "$1" ;;
    held) put_held "$1" ;;
    esac
}

# A tool's message, on one line and without terminal control characters.
because() {
    printf '%s' "$why" | tr -c '[:print:]' ' ' | cut -c 1-200
}

# --- comparing -------------------------------------------------------------------------------------------------------------

# A value without what does not count: blanks, the words other than the chosen one, the commas and first zeros of a mask.
plain() {
    text=$(tr -s '[:space:]' ' ' <"$1")
    chosen
    text=${text# }
    printf '%s' "${text% }"
}

mask() {
    printf '%s' "$1" | tr -d , | tr 'A-F' 'a-f' | sed 's/^0*//'
}

list() {
    for part in $(printf '%s' "$1" | tr , ' '); do
        last=${part#*-}
        part=${part%-*}
        [ "$last" -le 65536 ] || return 1
        while [ "$part" -le "$last" ]; do printf '%s ' "$part" && part=$((part + 1)); done
    done
}

same() {
    a=$(plain "$1")
    b=$(plain "$2")
    [ "$a" != "$b" ] || return 0
    case $a$b in
    *[!0-9a-fA-F,]*) ;;
    *) [ "$(mask "$a")" != "$(mask "$b")" ] || return 0 ;;
    esac
    case $a$b in
    *[!0-9,-]* | *--* | *-) return 1 ;;
    *) [ "$(list "$a" 2>/dev/null)" = "$(list "$b" 2>/dev/null)" ] ;;
    esac
}

