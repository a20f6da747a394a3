//! Disturbers of known kind and rate for a CPU, and the same CPU as perf sees it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use quell_recording::Recording;

use crate::support::node::{last_cpu, median, monotonic_ns, pin, sleep_until, until};
use crate::support::run;

/// Gives the calling thread a name, of arbitrary bytes.
pub fn rename_this_thread(name: &[u8]) {
    let name = std::ffi::CString::new(name).unwrap();
    // SAFETY: the name ends with a zero and lives through the call; the kernel takes 15 bytes of it.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Sets the scheduling policy and the priority of the calling thread, if permitted.
fn schedule(policy: i32, sched_priority: i32) {
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: `parameters` lives through the call; this thread's own policy is set.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
}

/// A task that wakes up periodically, at multiples of its period on CLOCK_MONOTONIC, and burns CPU time. It runs at high priority, if permitted, so that other tasks do not blur its
/// period.
pub struct Burner {
    pub cpu: usize,
    pub every_ns: u64,
    pub burn_ns: u64,
}

/// One burn, as measured.
pub struct Burn {
    /// Its start, on CLOCK_MONOTONIC.
    pub start: u64,
    /// How often the burner had left its CPU by then.
    pub left: u64,
    /// The CPU time that the burner had had by then.
    pub had_ns: u64,
    /// How late it started.
    pub late_ns: u64,
    /// Whether other tasks interrupted it: it then continues later.
    pub interrupted: bool,
}

impl Burner {
    /// Burns the given CPU time once per period, until `stop`.
    pub fn run(&self, stop: &AtomicBool) -> Vec<Burn> {
        pin(self.cpu);
        schedule(libc::SCHED_FIFO, 1);
        let (mut burns, mut beat) = (Vec::new(), monotonic_ns() / self.every_ns * self.every_ns);
        while !stop.load(Ordering::Relaxed) {
            beat += self.every_ns;
            sleep_until(beat);
            let (start, left) = now_and_left();
            let had_ns = thread_cpu_ns();
            while thread_cpu_ns() < had_ns + self.burn_ns {}
            let interrupted = times_left() != left;
            burns.push(Burn { start, left, had_ns, late_ns: start - beat, interrupted });
        }
        burns
    }
}

/// Tasks that run one after another on a CPU, each woken by the one before: the first every `every_ns`, for `beats` times.
pub struct Chain {
    /// The tasks are called NAME-0, NAME-1 and so on.
    pub name: &'static str,
    pub cpu: usize,
    pub every_ns: u64,
    pub beats: u64,
    /// The CPU time that each task burns per beat.
    pub burn_ns: Vec<u64>,
    /// Whether a task that is woken takes the CPU from the one that woke it, which goes on afterwards.
    pub nested: bool,
}

impl Chain {
    /// Tasks that take the last CPU every 20 ms, for half a second.
    pub fn on_last_cpu(burn_ns: Vec<u64>, nested: bool) -> Self {
        Self { name: "chain", cpu: last_cpu(), every_ns: 20_000_000, beats: 25, burn_ns, nested }
    }

    /// Compares what a thread lost to each source, `task:NAME`, with what the kernel charged that task in [`Self::run`].
    pub fn hold_against(&self, ran_ns: &[u64], lost_ns: impl Fn(&str) -> u64) -> Result<(), String> {
        for (number, &ran_ns) in ran_ns.iter().enumerate() {
            let ratio = lost_ns(&format!("task:{}", self.task(number))) as f64 / ran_ns as f64;
            if !(0.95..=1.05).contains(&ratio) {
                let (tasks, nested) = (&self.burn_ns, self.nested);
                return Err(format!(
                    "task {number} of {tasks:?}, nested {nested}: {ratio:.3} of what it ran"
                ));
            }
        }
        Ok(())
    }

    /// The name of a task.
    pub fn task(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    /// Runs it to its end; returns the CPU time that the kernel charged each task in the beats.
    pub fn run(&self) -> Vec<u64> {
        let last = self.burn_ns.len() - 1;
        let (mut wakes, mut wakeups): (Vec<_>, Vec<_>) =
            (0..last).map(|_| std::sync::mpsc::channel()).unzip();
        std::thread::scope(|scope| {
            let mut tasks = Vec::new();
            for (number, &burn_ns) in self.burn_ns.iter().enumerate().rev() {
                let wake = if number < last { wakes.pop() } else { None };
                let wakeup = if number > 0 { wakeups.pop() } else { None };
                tasks.push(scope.spawn(move || {
                    // The name comes second: what runs under it runs on this CPU.
                    pin(self.cpu);
                    rename_this_thread(self.task(number).as_bytes());
                    schedule(
                        libc::SCHED_FIFO,
                        if self.nested { 1 + number } else { 1 + last - number } as i32,
                    );
                    let (mut beat, mut begun_ns) = (monotonic_ns(), None);
                    for _ in 0..self.beats {
                        beat += self.every_ns;
                        wakeup.as_ref().map_or_else(|| sleep_until(beat), |wakeup| wakeup.recv().unwrap());
                        let had_ns = thread_cpu_ns();
                        begun_ns.get_or_insert(had_ns);
                        let woken_at_ns = if self.nested { burn_ns / 2 } else { burn_ns };
                        while thread_cpu_ns() < had_ns + woken_at_ns {}
                        wake.iter().for_each(|wake| wake.send(()).unwrap());
                        while thread_cpu_ns() < had_ns + burn_ns {}
                    }
                    thread_cpu_ns() - begun_ns.unwrap_or(0)
                }));
            }
            tasks.into_iter().rev().map(|task| task.join().unwrap()).collect()
        })
    }
}

/// The time, and how often this thread had left its CPU by exactly that time.
fn now_and_left() -> (u64, u64) {
    loop {
        let (before, now) = (times_left(), monotonic_ns());
        if times_left() == before {
            return (now, before);
        }
    }
}

/// How often this thread has left its CPU, voluntarily or not. The kernel counts each switch once.
fn times_left() -> u64 {
    // SAFETY: an all-zero usage is a valid place for the answer.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
        (usage.ru_nvcsw + usage.ru_nivcsw) as u64
    }
}

/// Two threads of this name that wake each other on a CPU, `trips` times there and back; returns how often they left it.
pub fn wake_each_other(cpu: usize, name: &[u8], trips: u32) -> u64 {
    let begin = || {
        rename_this_thread(name);
        pin(cpu);
        times_left()
    };
    let ((mut there_in, mut there_out), (mut back_in, mut back_out)) =
        (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    std::thread::scope(|scope| {
        let there = scope.spawn(move || {
            let before = begin();
            for _ in 0..trips {
                there_out.write_all(&[0]).unwrap();
                back_in.read_exact(&mut [0]).unwrap();
            }
            times_left() - before
        });
        let back = scope.spawn(move || {
            let before = begin();
            for _ in 0..trips {
                there_in.read_exact(&mut [0]).unwrap();
                back_out.write_all(&[0]).unwrap();
            }
            times_left() - before
        });
        there.join().unwrap() + back.join().unwrap()
    })
}

/// A timer that fires on a CPU, and a task that reads each expiry there before it continues; returns the times after each expiry.
pub fn timer_storm(cpu: usize, every_ns: i64, stop: &AtomicBool) -> Vec<u64> {
    pin(cpu);
    let every = libc::timespec { tv_sec: 0, tv_nsec: every_ns };
    let timer = libc::itimerspec { it_interval: every, it_value: every };
    let (mut expired, mut fired) = (0u64, Vec::new());
    // SAFETY: `timer` and `expired` live through the calls; the descriptor is closed only here.
    unsafe {
        let fd = libc::timerfd_create(libc::CLOCK_MONOTONIC, 0);
        assert!(fd >= 0);
        assert_eq!(libc::timerfd_settime(fd, 0, &raw const timer, std::ptr::null_mut()), 0);
        while !stop.load(Ordering::Relaxed) {
            if libc::read(fd, (&raw mut expired).cast(), 8) == 8 {
                fired.push(monotonic_ns());
            }
        }
        libc::close(fd);
    }
    fired
}

/// Spins whenever no other task wants the CPU.
fn fill_idle_time(cpu: usize, stop: &AtomicBool) {
    rename_this_thread(b"quell-filler");
    pin(cpu);
    schedule(libc::SCHED_IDLE, 0);
    while !stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// Sends packets to itself, some thousand a second; returns the time of each send.
pub fn flood_loopback(cpu: usize, stop: &AtomicBool) -> Vec<u64> {
    pin(cpu);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = socket.local_addr().unwrap();
    let mut sent = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..10 {
            sent.extend(socket.send_to(b"noise", to).is_ok().then(monotonic_ns));
            let mut received = [0; 8];
            let _ = socket.recv(&mut received);
        }
        sleep_until(monotonic_ns() + 1_000_000);
    }
    sent
}

const MEMBARRIER_PRIVATE_EXPEDITED: i32 = 8;
const MEMBARRIER_REGISTER_PRIVATE_EXPEDITED: i32 = 16;

fn membarrier(command: i32) {
    // SAFETY: the call takes numbers only.
    let code = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    assert_eq!(code, 0, "membarrier {command}");
}

/// A thread, `quell-spinner`, spins on `cpu`, and another one interrupts it every half millisecond. Returns the start and end of each call,
/// which returns only after the interrupt is done. The spinner is only interrupted while it has its CPU. It pauses now and then, so that
/// its CPU time is known from its runs, of which only the last does not end within a recording.
pub fn interrupt_by_membarrier(cpu: usize, stop: &AtomicBool) -> Vec<(u64, u64)> {
    membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            rename_this_thread(b"quell-spinner");
            pin(cpu);
            while !stop.load(Ordering::Relaxed) {
                let until = monotonic_ns() + 20_000_000;
                while monotonic_ns() < until {}
                sleep_until(monotonic_ns() + 50_000);
            }
        });
        rename_this_thread(b"quell-sender");
        pin(usize::from(cpu == 0));
        let mut sent = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let before = monotonic_ns();
            membarrier(MEMBARRIER_PRIVATE_EXPEDITED);
            sent.push((before, monotonic_ns()));
            sleep_until(monotonic_ns() + 500_000);
        }
        sent
    })
}

fn thread_cpu_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Intervals by source: (start, duration), times in ns on CLOCK_MONOTONIC.
type BySource = BTreeMap<String, Vec<(u64, u64)>>;

/// Lets quell and perf record one CPU at the same time, and checks that they agree on every source with enough intervals.
pub fn against_perf(folder: &Path, n: usize, cpu: usize) -> Result<(), String> {
    let (name, data) = (format!("perf-{n}.quell"), format!("{n}.data"));
    let events = [
        "irq_vectors:local_timer_entry",
        "irq_vectors:local_timer_exit",
        "irq_vectors:call_function_single_entry",
        "irq_vectors:call_function_single_exit",
        "irq:softirq_entry",
        "irq:softirq_exit",
        "irq:irq_handler_entry",
        "irq:irq_handler_exit",
        "sched:sched_switch",
    ];
    let stop = AtomicBool::new(false);
    // Threads inherit the name of their creator, and a test's name contains the character that ends a name in perf's output.
    rename_this_thread(b"quell-test");
    let quell = std::thread::scope(|scope| {
        // Enough events of every kind: a busy task that is preempted, packets, timers.
        scope.spawn(|| timer_storm(cpu, 1_000_000, &stop));
        scope.spawn(|| flood_loopback(cpu, &stop));
        // perf omits events while the CPU idles.
        scope.spawn(|| fill_idle_time(cpu, &stop));
        scope.spawn(|| {
            rename_this_thread(b"quell-burner");
            Burner { cpu, every_ns: 5_000_000, burn_ns: 500_000 }.run(&stop)
        });
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-k", "CLOCK_MONOTONIC", "-m", "4M", "-C", &cpu.to_string()]);
        for event in events {
            perf.args(["-e", event]);
        }
        // perf records as long as its command runs, which is until its input ends.
        perf.args(["-o", &data, "cat"]).current_dir(folder).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut perf = crate::support::Guard(perf.spawn().unwrap());
        // Of two tools on a tracepoint, the work of the later one may lie inside the interval that the earlier one measures. So perf starts
        // first.
        let descriptors = format!("/proc/{}/fd", perf.0.id());
        until("perf", || count_events(&descriptors) >= events.len());
        let args = ["record", "-o", &name, "--method", "kernel", "--duration", "3s", "-q", "--cpus"];
        let output = run(folder, &[&args[..], &[&cpu.to_string()]].concat());
        stop.store(true, Ordering::SeqCst);
        // `wait` closes the input first.
        assert!(perf.0.wait().unwrap().success(), "perf failed");
        output
    });
    assert!(quell.status.success(), "{}", String::from_utf8_lossy(&quell.stderr));
    let (theirs, range) = read_perf(folder, &data)?;
    let ours = read_quell(folder, &name, range);
    compare(&ours, &theirs)
}

/// The number of performance events that a process holds.
fn count_events(descriptors: &str) -> usize {
    let links = fs_err::read_dir(descriptors).into_iter().flatten().flatten();
    links
        .filter_map(|link| fs_err::read_link(link.path()).ok())
        .filter(|to| to.to_string_lossy().contains("perf_event"))
        .count()
}

/// Checks that nearly every interval above 1 µs that one tool saw, the other saw too, and that their total times agree, except for what
/// either tool's own work at the entry adds between the two clock readings.
fn compare(ours: &(BySource, (u64, u64)), theirs: &BySource) -> Result<(), String> {
    const ENOUGH: usize = 200;
    /// Limit in ns on the median time that the first tool's work at an entry takes before the second one reads its clock.
    const NEAR: u64 = 2_500;
    let ((ours, span), mut compared) = (ours, 0);
    let inside = |rows: &[(u64, u64)]| -> Vec<(u64, u64)> {
        rows.iter().filter(|row| row.0 >= span.0 && row.0 + row.1 <= span.1).copied().collect()
    };
    for (source, rows) in theirs {
        let (theirs, ours) = (inside(rows), ours.get(source).map(|rows| inside(rows)).unwrap_or_default());
        let long = theirs.iter().filter(|row| row.1 > 1000).count();
        if long < ENOUGH {
            continue;
        }
        compared += 1;
        let pairs: Vec<_> = theirs.iter().filter_map(|row| Some((*row, partner(&ours, *row)?))).collect();
        let both = pairs.iter().filter(|(perf, _)| perf.1 > 1000).count();
        let extra = ours.iter().filter(|row| row.1 > 1000 && partner(&theirs, **row).is_none()).count();
        if (long - both + extra) * 100 > long * 2 {
            return Err(format!("{source}: of {long} that perf saw {both} were seen, and {extra} more"));
        }
        let lags: Vec<u64> = pairs.iter().map(|(perf, quell)| perf.0.abs_diff(quell.0)).collect();
        let (lag, lags) = (median(lags.clone()), lags.iter().sum::<u64>());
        if lag > NEAR {
            return Err(format!("{source}: half of the intervals begin {lag} ns apart or more"));
        }
        let (quell, perf): (u64, u64) = pairs.iter().fold((0, 0), |sum, (p, q)| (sum.0 + q.1, sum.1 + p.1));
        if quell.abs_diff(perf) > perf / 50 + lags {
            return Err(format!(
                "{source}: {quell} ns by quell, {perf} by perf, {} pairs, lag {lag}",
                pairs.len()
            ));
        }
    }
    if compared >= 3 { Ok(()) } else { Err(format!("only {compared} sources had enough intervals")) }
}

/// The row that overlaps `of`, where several do, the one with the closest start. Each tool reads its clock at the entry and at the exit of
/// the same handler, so what both saw overlaps, however long a tool's own work at the entry takes. Rows of a source do not overlap.
fn partner(rows: &[(u64, u64)], of: (u64, u64)) -> Option<(u64, u64)> {
    let end = of.0 + of.1;
    let first = rows.partition_point(|row| row.0 + row.1 <= of.0);
    let overlapping = rows[first..].iter().copied().take_while(|row| row.0 < end);
    overlapping.min_by_key(|row| row.0.abs_diff(of.0))
}

/// Pairs the entries and exits of `perf script`; returns the intervals and the time span of the output.
fn read_perf(folder: &Path, data: &str) -> Result<(BySource, (u64, u64)), String> {
    let fields = ["script", "--ns", "-F", "comm,tid,time,event,trace", "-i", data];
    let output = Command::new("perf").args(fields).current_dir(folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (mut found, mut open): (BySource, BTreeMap<&str, (String, u64)>) = Default::default();
    let (mut first, mut last) = (u64::MAX, 0);
    let mut running: Option<(String, u64)> = None;
    for line in text.lines() {
        let Some((head, tail)) = line.split_once(": ") else { continue };
        let Some(stamp) = head.split_whitespace().last() else { continue };
        let Some((seconds, nanos)) = stamp.split_once('.') else { continue };
        let (Ok(seconds), Ok(nanos)) = (seconds.parse::<u64>(), nanos.parse::<u64>()) else { continue };
        let at = seconds * 1_000_000_000 + nanos;
        (first, last) = (first.min(at), last.max(at));
        let tail = tail.trim_start();
        let Some((event, detail)) = tail.split_once(": ").map(|(e, d)| (e.trim(), d.trim())) else {
            continue;
        };
        let word = |key: &str| {
            detail.split_once(key).map(|(_, rest)| rest.split([' ', ']']).next().unwrap().to_owned())
        };
        let mut pair = |slot: &'static str, entry: bool, source: Option<String>| {
            if entry {
                open.insert(slot, (source.unwrap_or_default(), at));
            } else if let Some((source, start)) = open.remove(slot) {
                found.entry(source).or_default().push((start, at - start));
            }
        };
        match event {
            "irq_vectors:local_timer_entry" => pair("tick", true, Some("tick".into())),
            "irq_vectors:local_timer_exit" => pair("tick", false, None),
            "irq_vectors:call_function_single_entry" => {
                pair("ipi", true, Some("ipi:call_function_single".into()));
            }
            "irq_vectors:call_function_single_exit" => pair("ipi", false, None),
            "irq:softirq_entry" => pair("softirq", true, word("action=").map(|a| format!("softirq:{a}"))),
            "irq:softirq_exit" => pair("softirq", false, None),
            "irq:irq_handler_entry" => pair("irq", true, word("name=").map(|name| format!("irq:{name}"))),
            "irq:irq_handler_exit" => pair("irq", false, None),
            "sched:sched_switch" => {
                if let Some((comm, start)) = running.take().filter(|(comm, _)| comm != "idle") {
                    found.entry(format!("task:{comm}")).or_default().push((start, at - start));
                }
                // `… ==> COMM:PID [PRIO]`, or with the names of the fields.
                let next = detail.split_once("==> ").map_or("", |(_, next)| next);
                let next = next.strip_prefix("next_comm=").unwrap_or(next);
                let (comm, pid) = match next.split_once(" next_pid=") {
                    Some((comm, rest)) => (comm, rest.split(' ').next().unwrap_or("")),
                    None => {
                        next.rsplit_once(" [").map_or(next, |(n, _)| n).rsplit_once(':').unwrap_or((next, ""))
                    }
                };
                running = Some((if pid == "0" { "idle".into() } else { comm.to_owned() }, at));
            }
            _ => {}
        }
    }
    if last == 0 { Err("perf saw nothing".into()) } else { Ok((found, (first, last))) }
}

/// The intervals of a recording, and the time span in which both tools recorded.
fn read_quell(folder: &Path, name: &str, perf: (u64, u64)) -> (BySource, (u64, u64)) {
    let recording = Recording::open(&folder.join(name)).unwrap();
    let zero = recording.manifest.zero_monotonic_ns.unwrap();
    let mut found = BySource::new();
    let mut reach = (u64::MAX, 0);
    for interval in &recording.intervals[0].intervals {
        let (start, duration) = (zero + interval.start.as_nanos(), interval.duration.as_nanos());
        reach = (reach.0.min(start), reach.1.max(start + duration));
        found.entry(interval.source.to_string()).or_default().push((start, duration));
    }
    (found, (reach.0.max(perf.0), reach.1.min(perf.1)))
}
