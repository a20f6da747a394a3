# shellcheck shell=bash
# Two sockets, two NUMA nodes, SMT.
up multi-user.target
siblings() { grep -qx 1 /sys/devices/system/cpu/smt/active && [[ -e /sys/devices/system/node/node1 ]]; }
check "SMT is on, and there are two NUMA nodes" siblings
remember
smt_is_off() { [[ $(cat /sys/devices/system/cpu/smt/active) == 0 ]]; }
applied() { check "no sibling is online" smt_is_off; }
cycle "SMT off" smt-off
cycle "NUMA" numa-balancing zone-reclaim
cycle "profile hpc-node" --profile hpc-node
same_cpus() { ! quell tune plan irq-cpu0 --cpus 1,3 2>&1 | grep -q panicked; }
check "a plan for one sibling of a core" same_cpus
cycle "placement on node 1" irq-cpu0 kthread-affinity workqueue-cpumask --cpus 8-15
cycle "isolated partition over a node" cpuset-isolated --cpus 8-15
