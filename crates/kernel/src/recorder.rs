//! Loading the programs, attaching them, and emptying their rings.

use std::cell::RefCell;
use std::convert::Infallible;
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::rc::Rc;
use std::time::Duration;

use foldhash::HashMap;
use libbpf_rs::skel::{OpenSkel as _, Skel as _, SkelBuilder as _};
use libbpf_rs::{
    Btf, Link, MapCore, MapFlags, MapHandle, MapType, OpenObject, RingBuffer, RingBufferBuilder,
};
use quell_recording::{Cpu, Interval, PROBE_THREAD, ProgramCost, SourcesFacts, Thread};

use crate::adopt::Adopter;
use crate::bpf::{OpenRecorderSkel, RecorderSkel, RecorderSkelBuilder, types};
use crate::container::Container;
use crate::cost::{self, Cost};
use crate::cpu_state::{state_of, watch};
use crate::drained::{Drained, drain_portions};
use crate::error::KernelError;
use crate::faults::Faults;
use crate::hooks;
use crate::names::{Reading, Sources};
use crate::namespaces::{in_pid_namespace, monotonic_offset_ns};
use crate::rings::Rings;
use crate::translate::{Raw, Translator};

/// Maximum number of threads followed at a time, and the header.
const SLOTS: u32 = 4096;
/// As SLOT_OF_PARENT in threads.h.
const SLOT_OF_PARENT: u32 = u32::MAX;
/// Entries of a CPU's ring, and of all rings together at most. At 300,000 intervals a second the first holds nearly half a second.
const RING: u32 = 1 << 17;
const ALL_RINGS: u32 = 1 << 21;
const SMALLEST_RING: u32 = 1 << 11;
/// Bytes of a CPU's ring buffer of the kernel's for each entry of its ring: an interval without names with the kernel's header, rounded up to a
/// power of two. Where only what is rare goes there, a quarter.
const BUFFER_BYTES: u32 = (size_of::<types::record>() as u32 + 8).next_power_of_two();
const BUFFER_BYTES_OF_RARE: u32 = BUFFER_BYTES / 4;
/// Intervals a second on one CPU during a storm. No record is lost if the rings are emptied often enough for this rate.
const STORM_PER_S: u32 = 400_000;
/// Number of records taken at a time, if that is enough of each ring: their rows and columns stay in the core's cache.
const PORTION: usize = 1 << 10;
const LEAST_OF_A_RING: usize = 1 << 6;

/// What to watch.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// CPUs on which everything is recorded.
    pub cpus: Vec<Cpu>,
    /// Whether threads are followed, from [`Recorder::follow_children_started_by`] on, on whichever CPU they run.
    pub follow: bool,
    /// Whether a process that requests the container is followed from then on, with all its threads and what they start.
    pub adopt: bool,
    /// Whether the page faults of followed threads are counted. They are the program's own work, and each one costs it more time then.
    pub own_work: bool,
    /// Whether the kernel measures the programs' run time, which itself costs a little.
    pub cost: bool,
}

/// The programs while they are attached. They are detached when it is dropped, and when its process ends in any way.
pub struct Recorder {
    rings: Rings,
    /// What the programs cannot put into `rings`.
    buffers: RingBuffer<'static>,
    /// The CPUs that have a ring.
    ringed: Vec<Cpu>,
    pending: Rc<RefCell<Vec<Raw>>>,
    skeleton: RecorderSkel<'static>,
    translator: Translator,
    container: Option<Container>,
    hooks: Vec<Link>,
    faults: Faults,
    plan: Plan,
    cost: Option<Cost>,
    ring_entries: u32,
    missing: Vec<String>,
    steal: bool,
    /// Number of intervals lost before the zero.
    lost_before: u64,
    /// By how much this process's CLOCK_MONOTONIC is ahead of the kernel's.
    clock_offset_ns: i64,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Loads and attaches the programs. All slow steps are complete when this returns.
    ///
    /// # Errors
    /// [`KernelError`], for instance where this user lacks a privilege.
    pub fn start(plan: Plan) -> Result<Self, KernelError> {
        crate::libbpf_log::keep();
        let symbols = Reading::begin(&hooks::TICK_FUNCTIONS);
        let kernel = hooks::types()?;
        let cpus = possible_cpus()?;
        if let Some(&cpu) = plan.cpus.iter().find(|cpu| cpu.0 >= cpus) {
            return Err(KernelError::UnknownCpu(cpu));
        }
        if plan.follow && in_pid_namespace() {
            return Err(KernelError::PidNamespace);
        }
        let clock_offset_ns = monotonic_offset_ns();
        // Readers of the container compare its times with their own clock.
        if plan.follow && clock_offset_ns != 0 {
            return Err(KernelError::TimeNamespace);
        }
        let ringed: Vec<Cpu> = if plan.follow { (0..cpus).map(Cpu).collect() } else { plan.cpus.clone() };
        let ring_entries = ring_entries(ringed.len());
        let mut open = open()?;
        let (mut missing, steal) =
            adapt(&mut open, &kernel, cpus, &plan, symbols.address(hooks::tick_function(&kernel)))?;
        size_rings(&mut open, ringed.len(), ring_entries)?;
        let mut skeleton = open.load().map_err(|e| KernelError::refused("the programs", &e))?;
        let rings = Rings::map(
            skeleton.maps.entries.as_fd(),
            skeleton.maps.emptied.as_fd(),
            ringed.len(),
            ring_entries,
        )
        .map_err(|e| KernelError::Refused { what: "a ring".into(), reason: e.to_string() })?;
        let pending = Rc::new(RefCell::new(Vec::new()));
        let is_rare = softirqs_use_rings(&kernel) && !plan.own_work;
        let bytes = if is_rare { BUFFER_BYTES_OF_RARE } else { BUFFER_BYTES };
        let buffers = make_buffers(&skeleton, &ringed, ring_entries * bytes, &pending)?;
        watch(&skeleton, &plan.cpus, &ringed, ring_entries)?;
        let mut container = if plan.follow { Some(Container::make(&skeleton, SLOTS)?) } else { None };
        let cost = plan.cost.then(cost::count_cost).transpose()?;
        skeleton.attach().map_err(|e| KernelError::refused("to attach a program", &e))?;
        let hooks = hooks::attach(&mut skeleton)?;
        if let Some(container) = container.as_mut().filter(|_| plan.adopt) {
            container.adopt(Adopter::new(&skeleton, cpus)?);
        }
        let counts_faults = plan.follow && plan.own_work;
        let faults = if counts_faults { Faults::attach(&skeleton, cpus)? } else { Faults::default() };
        let symbols = symbols.end();
        if symbols.is_empty() {
            missing.push("/proc/kallsyms: functions have no names (it needs CAP_SYSLOG)".into());
        }
        let translator = Translator {
            sources: Sources::default(),
            symbols,
            own_pid: own_pid(),
            causes: HashMap::default(),
            zero_ns: 0,
        };
        Ok(Self {
            rings,
            buffers,
            ringed,
            pending,
            skeleton,
            translator,
            container,
            hooks,
            faults,
            plan,
            cost,
            ring_entries,
            missing,
            steal,
            lost_before: 0,
            clock_offset_ns,
        })
    }

    /// Detaches the programs from the kernel's hooks, until [`Self::attach`].
    pub fn detach(&mut self) {
        self.hooks.clear();
    }

    /// Attaches the programs again. What happened since [`Self::detach`] is in no row, and [`Self::lost`] begins at zero.
    ///
    /// # Errors
    /// [`KernelError::Refused`].
    pub fn attach(&mut self) -> Result<(), KernelError> {
        watch(&self.skeleton, &self.plan.cpus, &self.ringed, self.ring_entries)?;
        self.lost_before = 0;
        self.hooks = hooks::attach(&mut self.skeleton)?;
        Ok(())
    }

    /// Sets the zero of all rows' times, on this process's CLOCK_MONOTONIC: now. Intervals that ended before it are left out, and those that
    /// were lost before it are not counted.
    pub fn set_zero(&mut self, monotonic_ns: u64) {
        self.translator.zero_ns = monotonic_ns.saturating_add_signed(-self.clock_offset_ns);
        self.lost_before = self.lost_ever();
    }

    /// Runs `start`, and follows the threads that the calling thread starts in it, from their birth.
    ///
    /// # Errors
    /// [`KernelError::Refused`] where nothing can be followed.
    pub fn follow_children_started_by<T>(&self, start: impl FnOnce() -> T) -> Result<T, KernelError> {
        // SAFETY: the call has no preconditions.
        let tid = unsafe { libc::gettid() }.to_ne_bytes();
        let slots = &self.skeleton.maps.slots;
        let refused = |e: libbpf_rs::Error| KernelError::refused("to follow a thread's children", &e);
        slots.update(&tid, &SLOT_OF_PARENT.to_ne_bytes(), MapFlags::ANY).map_err(refused)?;
        let started = start();
        slots.delete(&tid).map_err(refused)?;
        Ok(started)
    }

    /// The container, where threads are followed.
    pub fn container(&self) -> Option<&Container> {
        self.container.as_ref()
    }

    /// Takes a portion of the records that have arrived since the last call.
    pub fn drain(
        &mut self,
        intervals: &mut Vec<(Cpu, Interval)>,
        threads: &mut Vec<(Cpu, Thread)>,
    ) -> Drained {
        let rings = self.ringed.len().max(1);
        let each = (PORTION / rings).max(LEAST_OF_A_RING);
        // Consumed without polling: the programs submit records without a wakeup.
        let taken = self.buffers.consume_raw_n(each * rings);
        let mut more = usize::try_from(taken).is_ok_and(|taken| taken >= each * rings);
        let first = intervals.len();
        let translator = &mut self.translator;
        let (in_rings, rest) = self
            .rings
            .take(each as u32, |(record, named)| intervals.extend(translator.interval(record, named)));
        more |= rest;
        let mut pending = self.pending.borrow_mut();
        let fill = (in_rings + pending.len()) as f64 / f64::from(self.ring_entries);
        for raw in pending.drain(..) {
            match &raw {
                Raw::Plain(record) => intervals.extend(translator.interval(record, None)),
                Raw::Named(named) => intervals.extend(translator.interval(&named.record, Some(named))),
                Raw::Thread(ended) => {
                    threads.push(translator.thread(&ended.slot, &ended.own, ended.record.end_ns));
                }
            }
        }
        self.missing.extend(self.faults.attach_to_new(&self.skeleton, &intervals[first..]));
        Drained { fill, more }
    }

    /// Drops all records that have arrived.
    pub fn discard(&mut self) {
        let (mut intervals, mut threads) = (Vec::new(), Vec::new());
        let Ok(_) = drain_portions(|| {
            let drained = self.drain(&mut intervals, &mut threads);
            intervals.clear();
            threads.clear();
            Ok::<_, Infallible>(drained)
        });
    }

    /// The longest time between two calls of [`Recorder::drain`] in which a storm does not fill a ring.
    pub fn drain_interval(&self) -> Duration {
        Duration::from_secs(1) * self.ring_entries / STORM_PER_S
    }

    /// The followed threads that are alive, with their counters as of now.
    pub fn living(&mut self, now_ns: u64) -> Vec<(Cpu, Thread)> {
        let Some(container) = &self.container else { return Vec::new() };
        let own = |number: u32| self.own_waits(number).unwrap_or_default();
        let living: Vec<_> =
            container.slots().into_iter().map(|(number, slot)| (slot, own(number))).collect();
        living.iter().map(|(slot, own)| self.translator.thread(slot, own, now_ns)).collect()
    }

    /// The waits that the thread of a slot asked for.
    fn own_waits(&self, slot: u32) -> Option<types::own_waits> {
        let bytes = self.skeleton.maps.own_waits.lookup(&slot.to_ne_bytes(), MapFlags::ANY).ok()??;
        (bytes.len() == size_of::<types::own_waits>()).then(|| {
            // SAFETY: the length was checked, and every bit pattern is valid.
            unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }
        })
    }

    /// Whether any followed process is alive.
    pub fn follows_any(&self) -> bool {
        let Some(container) = &self.container else { return false };
        // SAFETY: signal 0 is not delivered; the call only checks whether the process exists.
        let lives = |pid: u32| unsafe { libc::kill(pid as i32, 0) } == 0 || !gone();
        container.slots().iter().any(|(_, slot)| lives(slot.global_pid))
    }

    /// Number of intervals for which no ring had room, since the zero.
    pub fn lost(&self) -> u64 {
        self.lost_ever().saturating_sub(self.lost_before)
    }

    fn lost_ever(&self) -> u64 {
        let cpus = self.skeleton.maps.cpus.max_entries();
        let states = (0..cpus).filter_map(|cpu| state_of(&self.skeleton, cpu));
        states.fold(0, |sum, state| sum.saturating_add(state.lost))
    }

    /// What a recording's manifest says of this recorder.
    pub fn facts(&self) -> SourcesFacts {
        SourcesFacts {
            unknown_because: None,
            missing: self.missing.clone(),
            steal: self.steal.then(|| "run queue".to_owned()),
            lost: self.lost(),
            lost_threads: self.skeleton.maps.bss_data.as_ref().map_or(0, |bss| bss.lost_threads),
            command_pid: None,
            command_exit_code: None,
            own_pid: self.translator.own_pid,
            cost: self.cost.as_ref().map(|_| self.cost()),
            effect: None,
        }
    }

    /// Runs and run time of every program, while the kernel keeps those statistics ([`cost::count_cost`]).
    pub fn cost(&self) -> Vec<ProgramCost> {
        cost::collect(self.skeleton.object())
    }
}

fn open() -> Result<OpenRecorderSkel<'static>, KernelError> {
    // libbpf needs storage that outlives the skeleton. It is leaked: a few words per recording.
    let place: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
    RecorderSkelBuilder::default().open(place).map_err(|e| KernelError::refused("the programs", &e))
}

/// Adapts the object to this kernel and plan. Returns what is missing, and whether stolen time is seen.
fn adapt(
    open: &mut OpenRecorderSkel<'_>,
    kernel: &Btf<'_>,
    cpus: u32,
    plan: &Plan,
    tick_function: u64,
) -> Result<(Vec<String>, bool), KernelError> {
    let refused = |e: libbpf_rs::Error| KernelError::refused("the programs", &e);
    let only_followed = ["sched_process_fork", "sched_process_exec", "sched_migrate_task"];
    let wanted = |hook: &str| match hook {
        "task" | "begin_here" => plan.adopt,
        // The last is the end of a fault, a software event without a name.
        "page_fault_user" | "page_fault_kernel" | "" => plan.follow && plan.own_work,
        _ => plan.follow || !only_followed.contains(&hook),
    };
    let mut missing = hooks::choose(kernel, open.open_object_mut().progs_mut(), wanted);
    if hooks::NEEDS_ATOMIC_RESULTS && !hooks::has_atomic_results(kernel) {
        return Err(KernelError::NoAtomicResults);
    }
    let other = if softirqs_use_rings(kernel) {
        &mut open.progs.softirq_out_by_buffer
    } else {
        &mut open.progs.softirq_out
    };
    other.set_autoload(false);
    // It has no hook: `Adopter` runs it on each CPU, where an adopted thread may be running already.
    open.progs.begin_here.set_autoattach(false);
    let slots = if plan.follow { SLOTS } else { 1 };
    open.maps.cpus.set_max_entries(cpus).map_err(refused)?;
    open.maps.rings.set_max_entries(cpus).map_err(refused)?;
    open.maps.container.set_max_entries(slots).map_err(refused)?;
    open.maps.slots.set_max_entries(slots).map_err(refused)?;
    open.maps.own_waits.set_max_entries(slots).map_err(refused)?;
    open.maps.free_slots.set_max_entries(slots).map_err(refused)?;
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.settings.tick_function = tick_function;
        rodata.settings.follow = u32::from(plan.follow);
        rodata.settings.adopt = u32::from(plan.adopt);
        rodata.settings.tells_state = u32::from(hooks::switch_tells_state(kernel));
        rodata.settings.own_tgid = own_pid().unwrap_or(0);
        rodata.settings.probe_name = probe_name();
    }
    let unseen_steal = hooks::unseen_steal(kernel);
    let steal = unseen_steal.is_none();
    missing.extend(unseen_steal);
    Ok((missing, steal))
}

/// Entries of each of `cpus` rings.
fn ring_entries(cpus: usize) -> u32 {
    let share = ALL_RINGS / u32::try_from(cpus.max(1)).unwrap_or(u32::MAX);
    // The size of a ring must be a power of two.
    let share = if share.is_power_of_two() { share } else { share.next_power_of_two() / 2 };
    share.clamp(SMALLEST_RING, RING)
}

/// Sets the sizes of the rings, before the programs are loaded.
fn size_rings(open: &mut OpenRecorderSkel<'_>, rings: usize, entries: u32) -> Result<(), KernelError> {
    let refused = |e: libbpf_rs::Error| KernelError::refused("the rings", &e);
    let rings = u32::try_from(rings).unwrap_or(u32::MAX);
    open.maps.entries.set_max_entries(rings.saturating_mul(entries)).map_err(refused)?;
    open.maps.emptied.set_max_entries(rings).map_err(refused)
}

/// Creates a ring buffer of the kernel's for each CPU, all emptied into `pending`.
fn make_buffers(
    skeleton: &RecorderSkel<'static>,
    cpus: &[Cpu],
    bytes: u32,
    pending: &Rc<RefCell<Vec<Raw>>>,
) -> Result<RingBuffer<'static>, KernelError> {
    let refused = |e: libbpf_rs::Error| KernelError::refused("a ring buffer", &e);
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    let mut maps = Vec::new();
    for cpu in cpus {
        let ring = MapHandle::create(MapType::RingBuf, Some("quell_ring"), 0, 0, bytes, &options)
            .map_err(refused)?;
        let fd = std::os::fd::AsRawFd::as_raw_fd(&ring.as_fd()) as u32;
        skeleton
            .maps
            .rings
            .update(&cpu.0.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)
            .map_err(refused)?;
        maps.push(ring);
    }
    let mut builder = RingBufferBuilder::new();
    for map in &maps {
        let pending = Rc::clone(pending);
        let keep = move |bytes: &[u8]| {
            pending.borrow_mut().extend(Raw::read(bytes));
            0
        };
        builder.add(map, keep).map_err(refused)?;
    }
    builder.build().map_err(refused)
}

/// Whether a softirq puts its interval into the ring, or into the kernel's ring buffer. On a fully preemptible kernel it may lose its CPU in the
/// middle of that, to what writes to the ring too.
fn softirqs_use_rings(kernel: &Btf<'_>) -> bool {
    let version = fs_err::read_to_string("/proc/sys/kernel/version").unwrap_or_default();
    hooks::has_atomic_results(kernel) && !version.contains("PREEMPT_RT")
}

/// The id of this process, as the kernel knows it. Unknown in a PID namespace.
fn own_pid() -> Option<u32> {
    (!in_pid_namespace()).then(std::process::id)
}

/// As PROBE_NAME_REST in records.h.
const _: () = assert!(PROBE_THREAD.len() == 8 + 3);

/// The name of the probes' threads, as the programs compare it.
fn probe_name() -> [u64; 2] {
    let mut name = [0; 16];
    name[..PROBE_THREAD.len()].copy_from_slice(PROBE_THREAD.as_bytes());
    let (words, _) = name.as_chunks();
    [u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]
}

/// Whether the last call failed because the process does not exist.
fn gone() -> bool {
    std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// Number of CPUs that this kernel can have, counted from CPU 0.
fn possible_cpus() -> Result<u32, KernelError> {
    let count = libbpf_rs::num_possible_cpus().map_err(|e| KernelError::refused("to count CPUs", &e))?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}
