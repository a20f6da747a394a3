//! Translates the programs' records to rows of a recording.

use std::sync::Arc;

use foldhash::HashMap;
use quell_recording::{Cpu, Interval, Nanos, Source, SourceKind, Taken, Thread};

use crate::bpf::types;
use crate::layout::RECORD_THREAD_END;
use crate::names::{Sources, Symbols};

/// One record as it came from a ring.
#[derive(Clone)]
pub(crate) enum Raw {
    Plain(types::record),
    Named(types::named_record),
    Thread(Box<types::thread_record>),
}

impl Raw {
    /// Recognises a record by its length. Bytes of any other length are not a record.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() == size_of::<types::record>() {
            Some(Self::Plain(copy(bytes)))
        } else if bytes.len() == size_of::<types::named_record>() {
            Some(Self::Named(copy(bytes)))
        } else if bytes.len() == size_of::<types::thread_record>() {
            let record: types::thread_record = copy(bytes);
            (record.record.kind == RECORD_THREAD_END).then(|| Self::Thread(Box::new(record)))
        } else {
            None
        }
    }
}

/// Copies a plain C struct out of bytes.
fn copy<T: Copy>(bytes: &[u8]) -> T {
    assert_eq!(bytes.len(), size_of::<T>());
    // SAFETY: the length was checked, every struct of the programs is valid for any bytes, and the read needs no alignment.
    unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }
}

fn bytes_of(name: [i8; 16]) -> [u8; 16] {
    // SAFETY: both are sixteen bytes, each of any value. (A `map` copies them one by one.)
    unsafe { std::mem::transmute(name) }
}

/// What distinguishes causes: kind, id, function, name.
pub(crate) type Cause = (u32, u32, u64, [u8; 16]);
const MOST_CAUSES: usize = 1 << 12;

/// Translates records to rows.
pub(crate) struct Translator {
    pub sources: Sources,
    pub symbols: Symbols,
    /// The id of quell's own process. Unknown in a PID namespace.
    pub own_pid: Option<u32>,
    /// The text of each cause seen, up to a maximum number of them.
    pub causes: HashMap<Cause, Arc<str>>,
    /// CLOCK_MONOTONIC at the recording's zero.
    pub zero_ns: u64,
}

impl Translator {
    /// The row of an interval, unless it ended before the recording's zero. `named` is what has this record and names.
    pub fn interval(
        &mut self,
        record: &types::record,
        named: Option<&types::named_record>,
    ) -> Option<(Cpu, Interval)> {
        let start_ns = record.start_ns.max(self.zero_ns);
        let duration_ns = record.end_ns.checked_sub(start_ns).filter(|_| record.end_ns > self.zero_ns)?;
        let kind = *SourceKind::ALL.get(record.kind as usize)?;
        let name = named.map_or([0; 16], |named| bytes_of(named.name));
        let interval = Interval {
            start: Nanos::from_nanos(start_ns - self.zero_ns),
            duration: Nanos::from_nanos(duration_ns),
            net: Nanos::from_nanos(record.net_ns.min(duration_ns)),
            source: self.source(kind, record.id, name)?,
            // quell's own threads share one pid.
            pid: named
                .map_or(0, |named| if Some(named.tgid) == self.own_pid { named.tgid } else { named.pid }),
            victim: record.victim,
            detail: self.symbols.name(record.what),
            cause: named.and_then(|named| self.cause(&named.cause, named.pid)),
        };
        Some((Cpu(record.cpu), interval))
    }

    fn source(&mut self, kind: SourceKind, id: u32, name: [u8; 16]) -> Option<Source> {
        match kind {
            SourceKind::Irq => Some(self.sources.irq(id, name)),
            SourceKind::Ipi => Some(self.sources.ipi(id)),
            SourceKind::Softirq => Some(self.sources.softirq(id)),
            SourceKind::Task => Some(Source::Task(self.sources.name(name))),
            SourceKind::Nmi | SourceKind::Tick | SourceKind::Fault | SourceKind::Steal => {
                Source::new(kind, None)
            }
        }
    }

    /// `COMM (PID)` for a task; for an interrupt its source and the function that it ran. `woken` is the task that it woke, or 0. `None`
    /// also where two CPUs wrote it at the same time.
    fn cause(&mut self, cause: &types::cause, woken: u32) -> Option<Arc<str>> {
        let is_whole = cause.known == 1 && cause.check == check_of(cause, woken);
        let kind = *SourceKind::ALL.get(cause.kind as usize).filter(|_| is_whole)?;
        // An interrupt has no name here, and a task no function: those fields are zero.
        let key = (cause.kind, cause.id, cause.what, bytes_of(cause.name));
        if let Some(known) = self.causes.get(&key) {
            return Some(Arc::clone(known));
        }
        let text: Arc<str> = if kind == SourceKind::Task {
            format!("{} ({})", self.sources.name(key.3), cause.id).into()
        } else {
            let source = self.source(kind, cause.id, [0; 16])?;
            match self.symbols.name(cause.what) {
                Some(function) => format!("{source} {function}").into(),
                None => source.to_string().into(),
            }
        };
        if self.causes.len() >= MOST_CAUSES {
            self.causes.clear();
        }
        self.causes.insert(key, Arc::clone(&text));
        Some(text)
    }

    /// The row of a thread, from its slot and the waits that it asked for, at `end_ns`.
    pub fn thread(&mut self, slot: &types::quell_slot, own: &types::own_waits, end_ns: u64) -> (Cpu, Thread) {
        let taken = |ns: u64, count: u64| Taken { time: Nanos::from_nanos(ns), count };
        let since_zero = |ns: u64| Nanos::from_nanos(ns.saturating_sub(self.zero_ns));
        let on_cpu = match slot.on_since_ns {
            0 => slot.on_cpu_ns,
            since => slot.on_cpu_ns + end_ns.saturating_sub(since),
        };
        let thread = Thread {
            tid: slot.global_tid,
            pid: slot.global_pid,
            start: since_zero(slot.start_ns),
            end: since_zero(end_ns.max(slot.start_ns)),
            on_cpu: Nanos::from_nanos(on_cpu),
            run_delay: Nanos::from_nanos(slot.run_delay_ns),
            taken: std::array::from_fn(|kind| taken(slot.ns[kind], slot.count[kind])),
            yielded: taken(own.yielded_ns, own.yields),
            moved: taken(own.moved_ns, own.moves),
            comm: self.sources.name(bytes_of(slot.comm)),
        };
        (Cpu(slot.cpu), thread)
    }
}

/// As `check_of` in causes.h computes it.
fn check_of(cause: &types::cause, woken: u32) -> u32 {
    let name = bytes_of(cause.name);
    let (words, _) = name.as_chunks();
    let [first, second] = [words[0], words[1]].map(u64::from_ne_bytes);
    let who = u64::from(cause.kind) << 32 | u64::from(cause.id);
    let mixed = [
        (cause.what, 0x9e37_79b9_7f4a_7c15_u64),
        (first, 0xc2b2_ae3d_27d4_eb4f),
        (second, 0x1656_67b1_9e37_79f9),
        (who, 0xd6e8_feb8_6659_fd93),
        (u64::from(woken), 0xff51_afd7_ed55_8ccd),
    ];
    (mixed.iter().fold(0_u64, |sum, (word, by)| sum.wrapping_add(word.wrapping_mul(*by))) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translator() -> Translator {
        Translator {
            sources: Sources::default(),
            symbols: Symbols::default(),
            own_pid: None,
            causes: HashMap::default(),
            zero_ns: 0,
        }
    }

    #[test]
    fn a_cause_that_two_cpus_wrote_is_unknown() {
        let of = |id: u32, name: &[u8], woken: u32| {
            let mut cause =
                types::cause { known: 1, kind: SourceKind::Task as u32, id, ..Default::default() };
            let mut whole = [0; 16];
            whole[..name.len()].copy_from_slice(name);
            cause.name = whole.map(|byte: u8| byte as i8);
            cause.check = check_of(&cause, woken);
            cause
        };
        // As neighbours on a node are: their names and ids differ in a bit.
        let (one, other) = (of(1000, b"rank0", 7), of(1001, b"rank1", 7));
        let mut translator = translator();
        assert_eq!(translator.cause(&one, 7).as_deref(), Some("rank0 (1000)"));
        assert_eq!(translator.cause(&other, 7).as_deref(), Some("rank1 (1001)"));
        assert_eq!(translator.cause(&types::cause { id: other.id, ..one }, 7), None);
        assert_eq!(translator.cause(&types::cause { name: other.name, ..one }, 7), None);
        assert_eq!(translator.cause(&types::cause { check: other.check, ..one }, 7), None);
        assert_eq!(translator.cause(&types::cause { what: 1, ..one }, 7), None);
        assert_eq!(translator.cause(&types::cause { known: 0, ..one }, 7), None);
        // It woke another task.
        assert_eq!(translator.cause(&one, 8), None);
    }

    #[test]
    fn every_kind_has_a_source() {
        let mut translator = translator();
        for kind in SourceKind::ALL {
            assert_eq!(translator.source(kind, 0, [0; 16]).map(|source| source.kind()), Some(kind));
        }
    }
}
