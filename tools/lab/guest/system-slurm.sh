# shellcheck shell=bash
# Slurm with core specialisation: what the audit says of it, and a plan next to it.
up multi-user.target
systemctl stop slurmd slurmctld munge
# Slurm looks for addresses that are not the loopback's.
ip link add lab0 type dummy
ip address add 10.0.0.1/24 dev lab0
ip link set lab0 up
echo "10.0.0.1 lab" > /etc/hosts
mkdir -p /etc/slurm /var/spool/slurmctld
head -c 128 /dev/urandom > /etc/munge/munge.key
chown munge: /etc/munge/munge.key
chmod 400 /etc/munge/munge.key
chown slurm: /var/spool/slurmctld
configure() {
    printf '%s\n' ClusterName=lab SlurmctldHost=lab SlurmUser=slurm AuthType=auth/munge MpiDefault=none \
        ProctrackType=proctrack/cgroup TaskPlugin=task/affinity,task/cgroup SchedulerType=sched/builtin \
        SelectType=select/cons_tres SelectTypeParameters=CR_Core StateSaveLocation=/var/spool/slurmctld \
        SlurmdSpoolDir=/var/spool/slurmd ReturnToService=2 SlurmdTimeout=600 \
        "NodeName=lab CPUs=4 Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=1000 $1" \
        "PartitionName=p Nodes=ALL Default=YES State=UP" > /etc/slurm/slurm.conf
    printf '%s\n' ConstrainCores=yes CgroupAutomount=yes > /etc/slurm/cgroup.conf
    systemctl restart munge slurmctld slurmd
}
idle() { sinfo -h -o %t | grep -qx idle; }
configure ""
check "Slurm is up" until_true idle
remember
quell tune audit slurm-corespec > /tmp/without
configure CoreSpecCount=1
check "Slurm is up with a core of its own" until_true idle
quell tune audit slurm-corespec > /tmp/with
differs() { ! cmp -s /tmp/without /tmp/with; }
check "the audit sees the core specialisation" differs
say "OK without: $(grep -m 1 slurm-corespec /tmp/without); with: $(grep -m 1 slurm-corespec /tmp/with)"
# A job computes on the cores that are left: Slurm keeps the last one.
job_cpus() { [[ $(srun -n 1 sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status) != *3* ]]; }
check "a job runs off the specialised core" until_true job_cpus
remember
cycle "placement next to Slurm" irq-cpu0 kthread-affinity workqueue-cpumask vm-stat-interval --cpus 1-3
check "a job runs after it" until_true job_cpus
# A plan for the time of one job.
check "plan for a job" quell tune plan vm-stat-interval swappiness -o /tmp/job.quell
during() { srun -n 1 true && quell tune apply /tmp/job.quell "${apply_options[@]:?}" --with -- srun -n 1 cat /proc/sys/vm/stat_interval; }
check "apply while a job runs" during
same "after the job"
