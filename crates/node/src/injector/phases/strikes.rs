//! The detours that a rank may encounter in a phase, on the phase's own timeline.

use quell_replay::ProgressClockView;

use super::task::PlannedDetour;

/// Fills `strikes` with the detours from `at_ns` on that may hit `work_ns` of work. `ticks_per_ns` converts times of the trace to ticks.
///
/// It takes slightly more than the work should encounter, because the work may take slightly longer than it should.
pub(super) fn gather(
    track: &ProgressClockView<'_>,
    at_ns: u64,
    work_ns: u64,
    ticks_per_ns: f64,
    strikes: &mut Vec<PlannedDetour>,
) {
    let ticks = |ns: u64| (ns as f64 * ticks_per_ns).round() as u64;
    let end = work_ns.saturating_add(track.delay(at_ns, work_ns)).saturating_add(work_ns / 8);
    strikes.clear();
    let mut now = 0u64;
    while let Some(ahead) = track.ahead(at_ns.saturating_add(now)) {
        let begin = now.saturating_add(ahead.wait_ns);
        if begin > end {
            break;
        }
        now = begin.saturating_add(ahead.length_ns);
        if ahead.length_ns > 0 {
            strikes.push(PlannedDetour { at: ticks(begin), length: ticks(now) - ticks(begin) });
        }
    }
}
