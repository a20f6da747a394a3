# shellcheck shell=bash
# systemd and cgroup v2: a partition, affinities of threads and interrupts, a CPU that goes and comes.
up multi-user.target
# Debian's slurmd.service delegates all controllers. As soon as systemd loads it, for the order of quell's unit, it enables the cpuset controller,
# and a kernel before 6.2 forgets what is bound.
systemctl mask slurmd
# What the administrator has bound stays bound.
tail -f /dev/null &
one=$!
mkfifo /tmp/never
cat /tmp/never &
two=$!
taskset -cp 1 "$one" > /dev/null
taskset -cp 2,3 "$two" > /dev/null
remember
partition() { grep -qx isolated /sys/fs/cgroup/*/cpuset.cpus.partition; }
applied() { check "the partition is isolated" partition; }
cycle "isolated partition" cpuset-isolated --cpus 2-3
cycle "placement" irq-cpu0 irqaffinity kthread-affinity rcu-kthread-affinity workqueue-cpumask workqueue-writeback-mask watchdog-cpumask \
    timer-migration systemd-cpuaffinity --persist --cpus 1-3
cycle "profile vm-guest" --profile vm-guest --cpus 1-3
cycle "profile hpc-node" --profile hpc-node --cpus 1-3
cycle "profile realtime" --profile realtime --cpus 1-3

cpu3() { echo "$1" > /sys/devices/system/cpu/cpu3/online; }
goes_and_comes() {
    cpu3 0
    sleep 3
    cpu3 1
    sleep 3
}
goes_and_comes
same "after a CPU has gone and come back without quell"

# A service keeps the profile over that.
serving() { quell tune verify && systemctl is-active quell-tune@vm-guest; }
check "quell-tune@vm-guest starts" systemctl start quell-tune@vm-guest
check "the profile is applied" serving
goes_and_comes
check "the profile is applied again on a CPU that came back" until_true serving
check "quell-tune@vm-guest stops" systemctl stop quell-tune@vm-guest
same "after the service"
