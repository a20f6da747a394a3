#!/bin/sh
# Recovers what the last power cut left, reports whether all is as it was, and dies at a step of `tune apply` or `tune revert`.
export PATH=/usr/bin:/bin RUST_BACKTRACE=1
hostname lab
word() { tr ' ' '\n' < /proc/cmdline | sed -n "s/^lab\.$1=//p"; }
say() { echo "LAB: $*"; }
what=$(word what)
step=$(word step)

# As systemd-sysctl does.
set_at_boot() {
    for file in /etc/sysctl.d/*.conf; do
        [ -e "$file" ] && sysctl -q -p "$file"
    done
}
# Whether each place has the plan's value. No program of this guest reads tmpfiles.d, so a boot resets what only that sets.
in_force() {
    quell --quiet tune verify --json > /tmp/verified 2>&1
    grep -q '"standing": "ok"' /tmp/verified || return 1
    grep -qE '"standing": "(foreign|unknown|unavailable)"' /tmp/verified && return 1
    [ "$(grep -c '"standing": "drifted"' /tmp/verified)" = "$(grep -c '"why": "a boot reset it"' /tmp/verified)" ]
}
# What a plan left that was applied whole stays over a boot; to be compared, it must go.
give_back() { quell --quiet tune revert >> /tmp/recovered 2>&1 || say "REVERT $? $(tail -n 1 /tmp/recovered)"; }

quell --quiet tune revert --interrupted > /tmp/recovered 2>&1
recovered=$?
case $what in
    revert | end) give_back ;;
    apply)
        # After a cut that comes when the commit is on disk, the plan must be in force as a whole.
        if grep -q '"step":"commit"' /var/lib/quell/tune/2*.jsonl 2> /dev/null; then
            set_at_boot
            if in_force; then say "COMMIT whole"; else say "COMMIT torn"; fi
            give_back
        fi
        ;;
esac
# After quell-recover.service.
set_at_boot
[ $recovered -eq 0 ] || say "RECOVER $recovered $(tail -n 1 /tmp/recovered)"
find /etc /boot | sort | while read -r path; do
    say "IMAGE $(stat -c '%a %u %F' "$path") $path $([ -f "$path" ] && sha256sum < "$path" | cut -c1-16)"
done
for path in /proc/sys/vm/stat_interval /proc/sys/vm/swappiness /proc/sys/kernel/timer_migration /sys/kernel/mm/transparent_hugepage/enabled \
    /proc/sys/vm/dirty_writeback_centisecs /proc/sys/kernel/hung_task_timeout_secs; do
    say "IMAGE $path $(cat $path)"
done
open=0
for journal in /var/lib/quell/tune/2*; do
    [ -e "$journal" ] && open=$((open + 1)) && say "JOURNAL $journal $(tail -n 1 "$journal" | cut -c 1-200)"
done
say "OPEN $open"
say READY
[ "$what" = end ] && exec sleep 1000

apply() { quell tune apply /plan --yes --max-risk high --allow-users; }
if ! [ -e /plan ]; then
    quell tune plan vm-stat-interval swappiness timer-migration thp dirty-writeback hung-task nohz-full --persist -o /plan
    sync
fi
case "$what $step" in
    *" 0") ;;
    apply*) export QUELL_FAULT_AT="$step"; apply ;;
    revert*) apply && sync && export QUELL_FAULT_AT="$step" && quell tune revert ;;
esac
say "CUT $?"
exec sleep 1000
