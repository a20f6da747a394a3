//! Folders that represent machines, for `--sysroot`: their `/proc`, `/sys` and `/etc`. Uses only std and fs_err, so that tests of other
//! crates can include it.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;

const X86: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu sse2 constant_tsc\n";
const POWER: &str = "processor\t: 0\ncpu\t\t: POWER9 (architected), altivec supported\n";
const PLAIN_OPTIONS: &str = "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet -- isolcpus=9";

/// A machine under construction.
pub struct Machine {
    folder: PathBuf,
}

impl Machine {
    /// An empty machine, with the kernel's name and the settings that every machine has.
    pub fn at(folder: &Path, host: &str, cpuinfo: &str, cmdline: &str) -> Self {
        let machine = Self { folder: folder.to_owned() };
        for (path, text) in [
            ("proc/sys/kernel/hostname", host),
            ("proc/sys/kernel/osrelease", "6.12.9-fake"),
            ("proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555"),
            ("proc/cmdline", cmdline),
            ("proc/cpuinfo", cpuinfo),
            ("proc/stat", "cpu  10 0 10 1000 0 0 0 0 0 0"),
            ("proc/sys/vm/stat_interval", "1"),
            ("proc/sys/vm/swappiness", "60"),
            ("proc/sys/vm/dirty_writeback_centisecs", "500"),
            ("proc/sys/vm/dirty_background_ratio", "10"),
            ("proc/sys/vm/dirty_ratio", "20"),
            ("proc/sys/vm/dirty_bytes", "0"),
            ("proc/sys/vm/dirty_background_bytes", "0"),
            ("proc/sys/kernel/hung_task_check_count", "4194304"),
            ("proc/sys/kernel/hung_task_timeout_secs", "120"),
            ("proc/sys/kernel/soft_watchdog", "1"),
            ("proc/sys/kernel/watchdog", "1"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never"),
        ] {
            machine.file(path, text);
        }
        machine.file("proc/sys/kernel/nmi_watchdog", "1").mode("proc/sys/kernel/nmi_watchdog", 0o444);
        for folder in ["etc/sysctl.d", "etc/tmpfiles.d"] {
            fs::create_dir_all(machine.folder.join(folder)).unwrap();
        }
        machine
    }

    /// Adds a file with one line.
    pub fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    /// Removes a file; its folder stays.
    pub fn remove(&self, path: &str) -> &Self {
        fs::remove_file(self.folder.join(path)).unwrap();
        self
    }

    /// Sets the mode of a file.
    pub fn mode(&self, path: &str, mode: u32) -> &Self {
        fs::set_permissions(self.folder.join(path), std::fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    /// Sets the possible and the online CPUs, and the threads of each core as lists.
    pub fn cpus(&self, possible: &str, online: &str, cores: &[Vec<u32>]) -> &Self {
        let cpus = "sys/devices/system/cpu";
        self.file(&format!("{cpus}/possible"), possible).file(&format!("{cpus}/online"), online);
        self.file(&format!("{cpus}/isolated"), "");
        for core in cores {
            let list = core.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            for cpu in core {
                self.file(&format!("{cpus}/cpu{cpu}/topology/thread_siblings_list"), &list);
            }
        }
        self.file("proc/sys/kernel/watchdog_cpumask", online)
    }

    /// Adds NUMA nodes with their CPUs.
    pub fn nodes(&self, nodes: &[(u32, &str)]) -> &Self {
        for (node, list) in nodes {
            self.file(&format!("sys/devices/system/node/node{node}/cpulist"), list);
        }
        self
    }

    /// Adds an interrupt. A managed one has a file that is not writable.
    pub fn irq(&self, number: u32, name: &str, mask: &str, managed: bool) -> &Self {
        let file = format!("proc/irq/{number}/smp_affinity");
        fs::create_dir_all(self.folder.join(format!("proc/irq/{number}/{name}"))).unwrap();
        self.file(&file, mask).mode(&file, if managed { 0o444 } else { 0o644 })
    }

    /// Adds a thread with its name, flags as in `stat`, and CPUs as a list; `folder` is `proc/PID` or `proc/PID/task/TID`.
    fn task(&self, folder: &str, id: u32, comm: &str, flags: u32, cpus: &str) {
        let stat = format!(
            "{id} ({comm}) S 2 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 {} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0",
            100 + id
        );
        self.file(&format!("{folder}/stat"), &stat);
        self.file(&format!("{folder}/comm"), comm);
        self.file(&format!("{folder}/status"), &format!("Name:\t{comm}\nCpus_allowed_list:\t{cpus}"));
        self.file(&format!("{folder}/timerslack_ns"), "50000");
    }

    /// Adds a kernel thread; a bound one cannot be moved.
    pub fn kernel_thread(&self, pid: u32, comm: &str, cpus: &str, bound: bool) -> &Self {
        let flags = 0x0020_0040 | if bound { 0x0400_0000 } else { 0 };
        self.task(&format!("proc/{pid}"), pid, comm, flags, cpus);
        self
    }

    /// Adds a process; its threads have consecutive ids that start with its own.
    pub fn process(&self, pid: u32, comm: &str, threads: u32, cpus: &str) -> &Self {
        self.task(&format!("proc/{pid}"), pid, comm, 0x0040_0000, cpus);
        for id in pid..pid + threads {
            self.task(&format!("proc/{pid}/task/{id}"), id, comm, 0x0040_0000, cpus);
        }
        self
    }

    /// Adds a systemd whose units keep their two states in a file.
    pub fn units(&self, units: &[(&str, &str)]) -> &Self {
        self.file("usr/bin/systemctl", SYSTEMCTL).mode("usr/bin/systemctl", 0o755);
        fs::create_dir_all(self.folder.join("run/systemd/system")).unwrap();
        fs::create_dir_all(self.folder.join("run/fake-units")).unwrap();
        for (name, words) in units {
            self.file(&format!("run/fake-units/{name}"), words);
        }
        self
    }
}

/// A systemctl that supports only what the states of units need.
const SYSTEMCTL: &str = r#"#!/bin/sh
verb=$1
for unit; do :; done
file=$(dirname "$0")/../../run/fake-units/$unit
[ -f "$file" ] && read -r active enabled <"$file"
case $verb in
is-active) echo "${active:-inactive}"; [ "$active" = active ] ;;
is-enabled) echo "${enabled:-not-found}"; [ "$enabled" = enabled ] ;;
start) echo "active $enabled" >"$file" ;;
stop) echo "inactive $enabled" >"$file" ;;
enable) echo "$active enabled" >"$file" ;;
disable) echo "$active disabled" >"$file" ;;
mask) echo "$active masked" >"$file" ;;
unmask) echo "$active disabled" >"$file" ;;
*) exit 1 ;;
esac"#;

/// 256 CPUs: 8 NUMA nodes of 16 cores of 2 threads that are 128 apart. Debian's grub; a site's own sysctl file.
pub fn large(folder: &Path) -> Machine {
    let machine = Machine::at(folder, "large", X86, PLAIN_OPTIONS);
    let cores: Vec<Vec<u32>> = (0..128).map(|core| vec![core, core + 128]).collect();
    let lists: Vec<String> = (0..8)
        .map(|n| format!("{}-{},{}-{}", n * 16, n * 16 + 15, 128 + n * 16, 128 + n * 16 + 15))
        .collect();
    let nodes: Vec<(u32, &str)> = (0..).zip(lists.iter().map(String::as_str)).collect();
    machine.cpus("0-255", "0-255", &cores).nodes(&nodes);
    let all = ["ffffffff"; 8].join(",");
    machine.file("sys/devices/virtual/workqueue/cpumask", &all);
    machine
        .file("etc/default/grub.d/init-select.cfg", "")
        .file("boot/config-6.12.9-fake", "CONFIG_SMP=y\nCONFIG_NO_HZ_FULL=y\nCONFIG_CPU_ISOLATION=y");
    machine.file("etc/sysctl.d/99-site.conf", "# site\nvm/stat_interval=1\nvm.swappiness = 10");
    machine.file("etc/sysctl.d/10-early.conf", "vm.stat_interval = 5");
    machine
}

/// POWER: 4 cores of 8 threads in 2 nodes; idle states that hand the CPU to the hypervisor; a process of two threads (4242).
pub fn power(folder: &Path) -> Machine {
    let machine = Machine::at(folder, "power", POWER, "root=/dev/sda1 ro");
    let cores: Vec<Vec<u32>> = (0..4).map(|core| (core * 8..core * 8 + 8).collect()).collect();
    machine.cpus("0-31", "0-31", &cores).nodes(&[(0, "0-15"), (8, "16-31"), (252, "")]);
    for cpu in 0..32 {
        machine.file(&format!("sys/devices/system/cpu/cpu{cpu}/smt_snooze_delay"), "100");
        for (state, name) in [(0, "snooze"), (1, "CEDE"), (2, "Extended CEDE")] {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}");
            machine.file(&format!("{folder}/name"), name).file(&format!("{folder}/disable"), "0");
        }
    }
    machine.file("proc/ppc64/lparcfg", "lparcfg 1.9\nshared_processor_mode=1");
    machine.process(4242, "solver", 2, "0-31");
    machine
}

/// cgroup v2 that offers cpusets, on 8 CPUs of 2 threads.
pub fn partitioned(folder: &Path) -> Machine {
    let machine = Machine::at(folder, "partitioned", X86, PLAIN_OPTIONS);
    let cores: Vec<Vec<u32>> = (0..4).map(|core| vec![core, core + 4]).collect();
    machine.cpus("0-7", "0-7", &cores).nodes(&[(0, "0-7")]);
    machine.file("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0");
    let top = "sys/fs/cgroup";
    machine.file(&format!("{top}/cgroup.controllers"), "cpuset cpu io memory pids");
    machine.file(&format!("{top}/cgroup.subtree_control"), "cpu memory pids");
    machine
        .file(&format!("{top}/cpuset.cpus.effective"), "0-7")
        .file(&format!("{top}/cpuset.mems.effective"), "0");
    machine
}

/// Units of systemd that run, that only others start, that are masked, and that are not there; 4 CPUs. A cron that systemd does not know.
pub fn services(folder: &Path) -> Machine {
    let machine = Machine::at(folder, "services", X86, PLAIN_OPTIONS);
    machine.cpus("0-3", "0-3", &[vec![0], vec![1], vec![2], vec![3]]).nodes(&[(0, "0-3")]);
    machine.units(&[
        ("cron.service", "active enabled"),
        ("atd.service", "inactive enabled"),
        ("man-db.timer", "active enabled"),
        ("logrotate.timer", "active static"),
        ("fstrim.timer", "inactive masked"),
        ("irqbalance.service", "inactive disabled"),
    ]);
    machine.process(900, "crond", 1, "0-3");
    machine
}

/// Offline and missing CPUs: possible 0-11, online 0-1,4,6-7,10; a node of one core, one without CPUs.
pub fn holes(folder: &Path) -> Machine {
    let machine = Machine::at(folder, "holes", X86, "quiet isolcpus=domain,6-7,9 dyndbg=\"file a.c +p\"");
    let cores = [vec![0, 1], vec![4, 5], vec![6, 7], vec![10, 11]];
    machine.cpus("0-11", "0-1,4,6-7,10", &cores).nodes(&[(0, "0-5"), (1, "6-7,8"), (2, "10-11"), (3, "")]);
    machine.file("sys/devices/system/cpu/isolated", "6-7,9");
    machine.file("sys/devices/virtual/workqueue/cpumask", "fff");
    for cpu in [0, 1, 4, 6, 7, 10] {
        machine.file(&format!("sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us"), "0");
    }
    machine
}

/// 40 interrupts on 40 CPUs, of which 8 are managed, and kernel threads of which some are bound.
pub fn interrupts(folder: &Path) -> Machine {
    let machine = Machine::at(folder, "interrupts", X86, PLAIN_OPTIONS);
    let cores: Vec<Vec<u32>> = (0..40).map(|cpu| vec![cpu]).collect();
    machine.cpus("0-39", "0-39", &cores).nodes(&[(0, "0-19"), (1, "20-39")]);
    machine.file("proc/irq/default_smp_affinity", "ff,ffffffff");
    for number in 0..32 {
        machine.irq(100 + number, &format!("mlx5_comp{number}@pci:0000:41:00.0"), "ff,ffffffff", false);
    }
    for queue in 0..8 {
        machine.irq(140 + queue, &format!("nvme0q{}", queue + 1), "00,0000001f", true);
    }
    machine.kernel_thread(30, "khugepaged", "0-39", false).kernel_thread(31, "kswapd0", "0-19", false);
    machine.kernel_thread(32, "kswapd1", "20-39", true).kernel_thread(33, "khungtaskd", "0,20", false);
    machine
}
