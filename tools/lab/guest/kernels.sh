#!/bin/sh
# Runs the probe and the recorder on this kernel, and reports what they see.
export PATH=/usr/bin:/bin RUST_BACKTRACE=1
word() { tr ' ' '\n' < /proc/cmdline | sed -n "s/^lab\.$1=//p"; }
say() { echo "LAB: $*"; }
# A document, in lines that a console can carry.
document() { gzip -c "$2" | base64 -w 200 | sed "s/^/LAB: $1+ /"; }
hostname lab
mount -t tmpfs none /tmp
mount -t tmpfs none /run
mount -t tracefs none /sys/kernel/tracing
mount -t bpf none /sys/fs/bpf
mount -t securityfs none /sys/kernel/security
[ "$(word hide)" = btf ] && mount -t tmpfs none /sys/kernel/btf
[ "$(word cgroup)" = 1 ] && mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/cpuset && mount -t cgroup -o cpuset none /sys/fs/cgroup/cpuset
cd /tmp || exit
# Emulated CPUs that outnumber the host's cannot all be watched.
cpus=$(word cpus)
record() { quell record ${cpus:+--cpus "$cpus"} "$@" > out 2>&1; }
last() { tail -n 3 "$1" | tr '\n' ' '; }
if [ "$(word brief)" = 1 ]; then
    record -q -o both.quell --duration 1s --effect 0 --sources on
    say "both $?"
    say "both-error $(last out)"
    quell show both.quell --json > shown 2> error && document both-show shown
    say END
    exec sleep 1000
fi
quell doctor --json > examined 2> error
say "doctor $?"
document doctor-show examined
record -q -o probe.quell --duration 2s --sources off
say "probe $?"
say "probe-error $(last out)"
# Load for the recorder: writers to the disk, short tasks, a task that sleeps.
(while :; do dd if=/dev/zero of=/load bs=1k count=64 conv=fsync; ls / > /dev/null; sleep 0.01; done > /dev/null 2>&1) &
load=$!
record -o kernel.quell --method kernel --duration 4s
say "kernel $?"
say "kernel-error $(grep -h '^error\|^ *→\|next' out | head -n 3 | tr '\n' ' ')"
[ -e kernel.quell ] && quell show kernel.quell --json > shown 2> error && document kernel-show shown
record -o both.quell --duration 3s --threshold 20us
say "both $?"
say "both-error $(last out)"
[ -e both.quell ] && quell show both.quell --json > shown 2> error && document both-show shown
kill $load
say END
exec sleep 1000
