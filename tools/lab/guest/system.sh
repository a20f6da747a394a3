# shellcheck shell=bash
# What the checks of whole systems share: they report to the console, and compare the machine with itself.
exec > /dev/ttyS0 2>&1
export PATH=/usr/sbin:/usr/bin:/sbin:/bin RUST_BACKTRACE=1 SYSTEMD_PAGER='' SYSTEMD_COLORS=0 SYSTEMD_BUS_TIMEOUT=120s
apply_options=(--yes --max-risk high --allow-users)

say() { echo; echo "LAB: $*"; }

say "OK the kernel has started systemd: $(systemctl --version | head -n 1)"

# Reports whether a command succeeds.
check() {
    local what=$1 status
    shift
    "$@" > /tmp/out 2>&1
    status=$?
    if [[ $status -eq 0 ]]; then say "OK $what"; else say "BAD $what: exit $status: $(tail -n 4 /tmp/out | tr '\n' ' ')"; fi
    return "$status"
}

# Reports whether a command ends with a code and an error that matches.
refused() {
    local what=$1 code=$2 words=$3 status
    shift 3
    "$@" > /tmp/out 2>&1
    status=$?
    if [[ $status -eq $code ]] && grep -q "$words" /tmp/out; then
        say "OK $what: $(grep -m 1 "$words" /tmp/out)"
    else
        say "BAD $what: exit $status, not $code: $(tail -n 4 /tmp/out | tr '\n' ' ')"
    fi
}

# Waits until a command succeeds.
until_true() {
    local end=$((SECONDS + 120))
    until "$@" > /tmp/out 2>&1; do
        ((SECONDS < end)) || return 1
        sleep 0.5
    done
}

# Waits for a service.
up() {
    check "$1 is up" until_true systemctl is-active "$1" || systemctl status "$1" --no-pager | tail -n 12
}

# What systemctl prints; on a slow guest it may have to be asked again.
listed() {
    until systemctl "$@" --no-legend --plain > /tmp/listed 2> /dev/null; do sleep 1; done
    cat /tmp/listed
}

# Each setting of the machine, a line each: its place, a tab, its value.
image() {
    sysctl -a 2> /dev/null | grep -v '^fs\.[a-z-]*-nr\|^fs\.[a-z]*-state\|^kernel\.random' | sed 's/ = /\t/'
    find /sys/devices /sys/module /sys/kernel/mm /sys/kernel/rcu_expedited -type f -perm -0600 \
        ! -name uevent ! -name config ! -name rom ! -name 'resource*' ! -path '*/tty/*' ! -path '*/power/*' ! -path '*/input/*' ! -path '*/thermal/*' -print0 2> /dev/null |
        xargs -0 grep -sIHZ . | tr '\0' '\t'
    find /proc/irq /sys/fs/cgroup -type f \( -name smp_affinity_list -o -name 'cpuset.cpus*' -o -name cpuset.mems \) -print0 2> /dev/null |
        xargs -0 grep -sIHZ . | tr '\0' '\t'
    local status name flags
    for status in /proc/[0-9]*/status; do
        name=$(sed -n 's/^Name:\t//p' "$status" 2> /dev/null)
        # The kernel binds some of its threads itself (PF_NO_SETAFFINITY): no one else can.
        flags=$(sed 's/.*) //' "${status%us}" 2> /dev/null | cut -d ' ' -f 7)
        ((${flags:-0} & 0x04000000)) && continue
        case $name in
            kworker* | systemd-fsckd | sleep | sed | cut | find | grep | bash | quell | '') ;;
            *) printf 'thread %s\t%s\n' "$name" "$(sed -n 's/^Cpus_allowed_list:\t//p' "$status" 2> /dev/null)" ;;
        esac
    done
    listed list-units --type=service,timer,slice,socket | awk '!/quell/ {print "state " $1 "\t" $3}'
    listed show --property=Id,AllowedCPUs '*.slice' | sed -n 's/^AllowedCPUs=//p; s/^Id=/allowed /p' | paste -d '\t' - - | grep -v quell
    find /etc /boot -type f ! -name 'initrd*' ! -name 'vmlinuz*' -exec sha256sum {} + | awk '{print "file " $2 "\t" $1}'
    find /etc /boot -printf 'entry %p\t%m %U %y\n'
}

# Remembers how the machine is, and which of its settings change by themselves.
remember() {
    mkdir -p /lab/kept
    image | sort -u > /lab/kept/before
    sleep 5
    image | sort -u > /tmp/again
    diff /lab/kept/before /tmp/again | sed -n 's/^[<>] //p' | cut -f 1 | sort -u > /lab/kept/moving
    say "OK $(wc -l < /lab/kept/before) places are compared, but for $(wc -l < /lab/kept/moving) that change by themselves"
}

# Reports what differs from what is remembered; with `files`, only files and what a plan persisted, which a boot must not change.
same() {
    local compared='[<>]'
    [[ ${2:-} == files ]] && compared='[<>] \(file\|entry\|vm\.s\)'
    image | sort -u > /tmp/after
    diff /lab/kept/before /tmp/after | grep "^$compared" | while IFS= read -r line; do
        grep -qxF "$(cut -f 1 <<< "${line#??}")" /lab/kept/moving || echo "$line"
    done > /tmp/differs
    if [[ -s /tmp/differs ]]; then
        say "BAD $1: differs from before: $(head -n 12 /tmp/differs | tr '\t\n' ' ;')"
        cp /tmp/after /lab/kept/before
    else
        say "OK $1: everything is as before"
    fi
}

# What `revert` leaves may not be an open journal.
nothing_applied() { quell tune status | grep -qi 'nothing is applied'; }

# Plans mitigations, applies, verifies and reverts them. A function `applied`, if there is one, looks between.
cycle() {
    local what=$1
    shift
    check "$what: plan" quell tune plan "$@" -o /tmp/plan.quell || {
        unset -f applied
        return
    }
    say "OK $what: $(grep -c '"place"' /tmp/plan.quell) places in the plan"
    check "$what: apply" quell tune apply /tmp/plan.quell "${apply_options[@]}"
    check "$what: verify" quell tune verify
    if declare -F applied > /dev/null; then applied; fi
    check "$what: revert" quell tune revert
    check "$what: nothing is applied" nothing_applied
    same "$what"
    unset -f applied
}
