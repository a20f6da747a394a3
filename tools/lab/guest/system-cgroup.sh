# shellcheck shell=bash
# systemd and cgroup v2: a partition, affinities of threads and interrupts, a CPU that goes and comes.
up multi-user.target
# What the administrator has bound stays bound.
taskset -c 1 tail -f /dev/null &
mkfifo /tmp/never
taskset -c 2,3 cat /tmp/never &
remember
partition() { grep -qx isolated /sys/fs/cgroup/*/cpuset.cpus.partition; }
applied() { check "the partition is isolated" partition; }
cycle "isolated partition" cpuset-isolated --cpus 2-3
cycle "placement" irq-cpu0 irqaffinity kthread-affinity rcu-kthread-affinity workqueue-cpumask workqueue-writeback-mask watchdog-cpumask \
    timer-migration systemd-cpuaffinity --persist --cpus 1-3
cycle "profile vm-guest" --profile vm-guest --cpus 1-3
cycle "profile hpc-node" --profile hpc-node --cpus 1-3
cycle "profile realtime" --profile realtime --cpus 1-3

# A service keeps the profile while a CPU goes and comes.
serving() { quell tune verify && systemctl is-active quell-tune@vm-guest; }
check "quell-tune@vm-guest starts" systemctl start quell-tune@vm-guest
check "the profile is applied" serving
echo 0 > /sys/devices/system/cpu/cpu3/online
sleep 3
echo 1 > /sys/devices/system/cpu/cpu3/online
check "the profile is applied again on a CPU that came back" until_true serving
check "quell-tune@vm-guest stops" systemctl stop quell-tune@vm-guest
same "after the service"
