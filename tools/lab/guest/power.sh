#!/bin/sh
# Recovers what the last power cut left, reports whether all is as it was, and dies at a step of `tune apply` or `tune revert`.
export PATH=/usr/bin:/bin RUST_BACKTRACE=1
hostname lab
word() { tr ' ' '\n' < /proc/cmdline | sed -n "s/^lab\.$1=//p"; }
say() { echo "LAB: $*"; }
what=$(word what)
step=$(word step)

# As systemd-sysctl does, after quell-recover.service.
quell --quiet tune revert --interrupted > /tmp/recovered 2>&1
recovered=$?
case $what in
    # What a plan left that was applied whole stays over a boot; to be compared, it must go.
    revert | end) quell --quiet tune revert >> /tmp/recovered 2>&1 || say "REVERT $? $(tail -n 1 /tmp/recovered)" ;;
esac
for file in /etc/sysctl.d/*.conf; do
    [ -e "$file" ] && sysctl -q -p "$file"
done
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
