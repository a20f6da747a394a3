//! Two plain lists from small programs: detours as `MONO_NS DURATION_NS` after a line with the clock's anchors, and tracepoints as
//! `MONO_NS KIND ID AUX COMM`.

use super::{Events, Key, What, events};
use crate::formats::content::{Content, Rows, trace_of};
use crate::formats::{for_each_line, printable};
use crate::{Cpu, Detour, Method, Nanos, Span, Warning};

/// The beginning of the list of detours, after `#`.
pub(in super::super) const ANCHORS: &str = "tsc_anchor ";

/// Reads `# tsc_anchor T mono NS tsc2 T mono2 NS …`, then one detour per line.
pub(in super::super) fn read_detours(text: &str) -> Result<Content, String> {
    let (mut from, mut to) = (None, None);
    let mut detours: Vec<Detour> = Vec::new();
    for_each_line(text, |number, line| {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            let words: Vec<&str> = comment.split_whitespace().collect();
            for pair in words.windows(2) {
                let value = pair[1].parse().ok();
                match pair[0] {
                    "mono" => from = value,
                    "mono2" => to = value,
                    _ => {}
                }
            }
            return Ok(());
        }
        let wrong = |reason: &str| format!("line {number}: {reason}");
        let fields: Vec<Option<u64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
        let (start, duration) = match fields[..] {
            [] => return Ok(()),
            [Some(start), Some(duration)] => (start, duration),
            _ => return Err(wrong(&format!("`{}` is not `mono_ns duration_ns`", printable(line)))),
        };
        let zero = from.ok_or_else(|| wrong("no line `# tsc_anchor … mono NS` stands before it"))?;
        let start = start
            .checked_sub(zero)
            .map(Nanos::from_nanos)
            .ok_or_else(|| wrong("it is before the first anchor"))?;
        detours.push(Detour { start, duration: Nanos::from_nanos(duration), own: false });
        Ok(())
    })?;
    let end = from.zip(to).map(|(from, to): (u64, u64)| Nanos::from_nanos(to.saturating_sub(from)));
    let last = detours.iter().map(Detour::end).max().unwrap_or(Nanos::ZERO);
    let span = Span { start: Nanos::ZERO, end: end.unwrap_or(last).max(last) };
    let traces = vec![trace_of(Cpu(0), detours, Some(span))];
    let mut content = Content::new(Method::Detour, "a list of detours", Rows::Detours(traces));
    content.manifest.zero_monotonic_ns = from;
    content.manifest.warnings.push(Warning::CpuUnknown);
    Ok(content)
}

/// Reads one tracepoint per line: kinds 10 and 11 are an interrupt's vector, 20 and 21 a device's interrupt, 30 and 31 a softirq; the second
/// of each pair is its end.
pub(in super::super) fn read_events(text: &str) -> Result<Content, String> {
    let mut all = Events::default();
    for_each_line(text, |number, line| {
        let of_line = |reason: String| format!("line {number}: {reason}");
        let mut fields = line.trim().splitn(5, ' ');
        let mut number = || fields.next().and_then(|field| field.parse::<u64>().ok());
        let (Some(time), Some(kind), Some(id), Some(_)) =
            (number(), number(), number().and_then(|id| u32::try_from(id).ok()), number())
        else {
            if line.trim().is_empty() || line.starts_with('#') {
                return Ok(());
            }
            return Err(of_line(format!("`{}` is not `mono_ns kind id aux comm`", printable(line))));
        };
        let name = fields.next().unwrap_or_default().trim();
        let names = &mut all.names;
        let what = match kind {
            10 => What::Enter(Key::Vector(id), source_of_x86_vector(id, names)),
            11 => What::Exit(Key::Vector(id)),
            20 => What::Enter(Key::Irq(id), events::irq(if name == "-" { "unnamed" } else { name }, names)),
            21 => What::Exit(Key::Irq(id)),
            30 => What::Enter(Key::Softirq(id), events::softirq(id, names)),
            31 => What::Exit(Key::Softirq(id)),
            40 | 50 => What::Other,
            other => return Err(of_line(format!("the kind {other} is not known"))),
        };
        all.push(Cpu(0), time, "switches and faults", what).map_err(of_line)
    })?;
    all.warnings.push(Warning::CpuUnknown);
    if all.others.contains_key("switches and faults") {
        all.warnings.push(Warning::SwitchesAndFaultsLeftOut);
    }
    all.content("a list of tracepoints", true)
}

/// The source of a vector of Linux on x86-64 (arch/x86/include/asm/irq_vectors.h).
fn source_of_x86_vector(id: u32, names: &mut super::Names) -> crate::Source {
    let name = match id {
        236 => "local_timer",
        246 => "irq_work",
        251 => "call_function_single",
        252 => "call_function",
        253 => "reschedule",
        _ => return crate::Source::Irq(names.get(&format!("vector {id}"))),
    };
    events::vector(name, names).unwrap_or(crate::Source::Tick)
}
