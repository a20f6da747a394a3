//! The kernel's names of events, and the format of their text (include/trace/events/{irq,sched,nmi,osnoise,ipi}.h,
//! arch/x86/include/asm/trace/irq_vectors.h, kernel/trace/trace_output.c).

use super::{Key, Names, What};
use crate::formats::printable;
use crate::kernel_names::{IPIS, SOFTIRQS};
use crate::{HistogramKind, Source};

/// The source of a softirq's vector.
pub(super) fn softirq(vector: u32, names: &mut Names) -> Source {
    match SOFTIRQS.get(vector as usize) {
        Some(name) => Source::Softirq(names.get(name)),
        None => Source::Softirq(names.get(&vector.to_string())),
    }
}

/// The source of an interrupt by the kernel's name for its vector; `None` if it is not an interrupt of this kind.
pub(super) fn vector(name: &str, names: &mut Names) -> Option<Source> {
    if name == "local_timer" {
        return Some(Source::Tick);
    }
    IPIS.iter().find(|ipi| ipi.tracepoint == name).map(|ipi| Source::Ipi(names.get(ipi.name)))
}

/// The source of a device's interrupt. On some machines it is the timer.
pub(super) fn irq(name: &str, names: &mut Names) -> Source {
    match name {
        "arch_timer" | "riscv-timer" => Source::Tick,
        _ => Source::Irq(names.get(name)),
    }
}

/// Parses an event's text.
pub(super) fn what(event: &str, text: &str, names: &mut Names) -> Result<What, String> {
    let wrong = || format!("`{}: {}` is not what the kernel writes", printable(event), printable(text));
    let number = |name: &str| field(text, name).and_then(|word| word.parse::<u32>().ok()).ok_or_else(wrong);
    Ok(match event {
        "irq_handler_entry" => {
            let (_, name) = text.split_once("name=").ok_or_else(wrong)?;
            What::Enter(Key::Irq(number("irq=")?), irq(name.trim(), names))
        }
        "irq_handler_exit" => What::Exit(Key::Irq(number("irq=")?)),
        "softirq_entry" => {
            let vector = number("vec=")?;
            What::Enter(Key::Softirq(vector), softirq(vector, names))
        }
        "softirq_exit" => What::Exit(Key::Softirq(number("vec=")?)),
        "ipi_entry" => What::Enter(Key::Ipi, Source::Ipi(names.get(text.trim_matches(['(', ')', ' '])))),
        "ipi_exit" => What::Exit(Key::Ipi),
        "sched_switch" => switch(text, names).ok_or_else(wrong)?,
        "nmi_handler" => {
            let (_, rest) = text.split_once("delta_ns:").ok_or_else(wrong)?;
            let ns = rest.split_whitespace().next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
            What::Took { source: Source::Nmi, ns }
        }
        "irq_noise" | "softirq_noise" | "thread_noise" | "nmi_noise" | "sample_threshold" => {
            noise(event, text, names).ok_or_else(wrong)?
        }
        "" => tracer_row(text).ok_or_else(|| format!("`{}` names no event", printable(text)))?,
        _ => {
            let (name, enters) = match (event.strip_suffix("_entry"), event.strip_suffix("_exit")) {
                (Some(name), _) => (name, true),
                (_, Some(name)) => (name, false),
                _ => return Ok(What::Other),
            };
            match vector(name, names) {
                Some(source) if enters => What::Enter(Key::Vector(number("vector=")?), source),
                Some(_) => What::Exit(Key::Vector(number("vector=")?)),
                None => What::Other,
            }
        }
    })
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(name)?;
    rest.split_whitespace().next()
}

/// Parses `… ==> next_comm=COMM next_pid=PID …`, or libtraceevent's `… ==> COMM:PID [PRIORITY]`. A comm may contain anything.
fn switch(text: &str, names: &mut Names) -> Option<What> {
    let (_, next) = text.rsplit_once(" ==> ")?;
    let (comm, pid) = match next.strip_prefix("next_comm=") {
        Some(next) => {
            let (comm, rest) = next.rsplit_once(" next_pid=")?;
            // The priority is missing in a line that was cut off.
            rest.contains("next_prio=").then_some(())?;
            (comm, rest.split_whitespace().next()?)
        }
        None => {
            let (task, rest) = next.rsplit_once(" [")?;
            rest.contains(']').then_some(())?;
            task.rsplit_once(':')?
        }
    };
    Some(What::Switch { pid: pid.parse().ok()?, comm: names.get(comm) })
}

/// Parses events of the osnoise tracer: `[NAME:NUMBER] start SECONDS.NS duration N ns`.
fn noise(event: &str, text: &str, names: &mut Names) -> Option<What> {
    let (task, rest) = text.rsplit_once("start ")?;
    let mut words = rest.split_whitespace();
    let start = seconds(words.next()?)?;
    let (Some("duration"), Some(duration), Some("ns")) = (words.next(), words.next(), words.next()) else {
        return None;
    };
    let duration = duration.parse().ok()?;
    if event == "sample_threshold" {
        return Some(What::Gap { start, duration });
    }
    if event == "nmi_noise" {
        return Some(What::Ended { source: Source::Nmi, pid: 0, start, net: duration });
    }
    let (name, number) = task.trim().rsplit_once(':')?;
    let number: u32 = number.parse().ok()?;
    Some(noise_of(event, name.trim(), number, start, duration, names))
}

/// The same event from its fields.
pub(super) fn noise_of(
    event: &str,
    name: &str,
    number: u32,
    start: u64,
    net: u64,
    names: &mut Names,
) -> What {
    let (source, pid) = match event {
        "thread_noise" => (Source::Task(names.get(name)), number),
        "softirq_noise" => (softirq(number, names), 0),
        _ => (vector(name, names).unwrap_or_else(|| irq(name, names)), 0),
    };
    What::Ended { source, pid, start, net }
}

/// Parses a row of the tracers `osnoise` and `timerlat`, which has no event name.
fn tracer_row(text: &str) -> Option<What> {
    if let Some(rest) = text.strip_prefix('#') {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [_, "context", context, "timer_latency", ns, "ns"] = words[..] else { return None };
        let kind = match context {
            "irq" => HistogramKind::IrqLatency,
            "thread" => HistogramKind::ThreadLatency,
            "user-ret" => HistogramKind::UserLatency,
            _ => return None,
        };
        return Some(What::Late { kind, ns: ns.parse().ok()? });
    }
    if text.contains("<-") || text.starts_with("<stack trace>") {
        return Some(What::Other);
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let (9, Some(watched), Some(noise)) = (words.len(), words.first(), words.get(1)) else { return None };
    words.iter().all(|word| word.parse::<f64>().is_ok_and(f64::is_finite)).then_some(())?;
    let ns = |us: &str| us.parse::<u64>().ok()?.checked_mul(1_000);
    Some(What::Period { watched: ns(watched)?, noise: ns(noise)? })
}

/// Parses `SECONDS.FRACTION`, with up to nine digits after the point.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.')?;
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| (1..=9).contains(digits))?;
    if !fraction.bytes().chain(whole.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction = fraction.parse::<u64>().ok()? * 10u64.pow(9 - digits);
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}
