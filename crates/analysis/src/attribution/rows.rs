//! The rows of the tables of sources, tasks, classes and CPUs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use quell_recording::{Interval, Method, Recording, Source, SourceKind};

use super::Side;
use super::class::Class;
use super::document::{ClassRow, CpuSource, CpuSources, Explained, SourceRow, TaskRow};
use super::figures::figures;
use super::groups::{Group, Tally, find_periods, groups};

/// The id of quell's own process, if it is known.
pub(crate) fn own_pid(recording: &Recording) -> Option<u32> {
    recording.manifest.sources.as_ref().and_then(|facts| facts.own_pid)
}

/// Whether an interval is quell's own work, not noise of the node.
pub(crate) fn is_own(one: &Interval, own: Option<u32>) -> bool {
    one.source.kind() == SourceKind::Task && Some(one.pid) == own
}

/// Whether the recording has detours that can be attributed.
fn has_detours(recording: &Recording) -> bool {
    recording.manifest.method == Method::Detour
}

/// One row per source, by time, quell's own last.
pub(super) fn sources(recording: &Recording, sides: &[Side]) -> Vec<SourceRow> {
    let own = own_pid(recording);
    let mut groups = groups(sides, |one| Some((is_own(one, own), one.source.clone())));
    // The start of a steal window is when the kernel looked, not when time was stolen.
    find_periods(&mut groups, |(_, source)| source.kind() != SourceKind::Steal);
    let row = |((own, source), group): (&(bool, Source), &Group)| SourceRow {
        source: source.to_string(),
        class: class(source, group, *own),
        own: *own,
        pid: group.pid,
        count: group.tally.count,
        total_ns: group.tally.total_ns,
        min_ns: group.tally.min_ns,
        max_ns: group.tally.max_ns,
        mean_ns: group.tally.mean_ns(),
        period_ns: group.period_ns,
        in_detours_ns: has_detours(recording).then_some(group.in_detours_ns),
        details: group.details(),
        causes: group.causes(),
    };
    let mut rows: Vec<SourceRow> = groups.iter().map(row).collect();
    rows.sort_by(|a, b| {
        (a.own, Reverse(a.total_ns), &a.source).cmp(&(b.own, Reverse(b.total_ns), &b.source))
    });
    rows
}

fn class(source: &Source, group: &Group, own: bool) -> Class {
    match Class::from_source(source, own) {
        Class::Interrupt if group.period_ns.is_some() => Class::Type1,
        class => class,
    }
}

/// One row per task and name, by time, quell's own last.
pub(super) fn tasks(recording: &Recording, sides: &[Side]) -> Vec<TaskRow> {
    let own = own_pid(recording);
    let mut groups = groups(sides, |one| match &one.source {
        Source::Task(comm) => Some((is_own(one, own), one.pid, comm.clone())),
        _ => None,
    });
    find_periods(&mut groups, |_| true);
    let mut rows: Vec<TaskRow> = groups
        .iter()
        .map(|((own, pid, name), group)| TaskRow {
            pid: *pid,
            name: name.to_string(),
            own: *own,
            count: group.tally.count,
            total_ns: group.tally.total_ns,
            min_ns: group.tally.min_ns,
            max_ns: group.tally.max_ns,
            mean_ns: group.tally.mean_ns(),
            period_ns: group.period_ns,
            in_detours_ns: has_detours(recording).then_some(group.in_detours_ns),
            causes: group.causes(),
        })
        .collect();
    rows.sort_by_key(|row| (row.own, Reverse(row.total_ns), row.pid));
    rows
}

/// One row per class that occurs.
pub(super) fn classes(sources: &[SourceRow], explained: Option<&Explained>, sides: &[Side]) -> Vec<ClassRow> {
    let mut classes: BTreeMap<Class, (u64, Tally, Option<u64>)> = BTreeMap::new();
    for row in sources {
        let (count, tally, in_detours) = classes.entry(row.class).or_default();
        *count += 1;
        let SourceRow { count, total_ns, min_ns, max_ns, .. } = *row;
        tally.merge(Tally { count, total_ns, min_ns, max_ns });
        *in_detours = row.in_detours_ns.map(|ns| in_detours.unwrap_or(0).saturating_add(ns)).or(*in_detours);
    }
    if explained.is_some() {
        let mut tally = Tally::default();
        let blames = sides.iter().flat_map(|side| &side.joined.blames);
        blames.filter(|blame| blame.left_ns > 0).for_each(|blame| tally.add(blame.left_ns));
        classes.insert(Class::Unattributed, (0, tally, Some(tally.total_ns)));
    }
    let row = |(class, (sources, tally, in_detours_ns)): (Class, (u64, Tally, Option<u64>))| ClassRow {
        class,
        sources,
        count: tally.count,
        total_ns: tally.total_ns,
        min_ns: tally.min_ns,
        max_ns: tally.max_ns,
        mean_ns: tally.mean_ns(),
        in_detours_ns,
    };
    classes.into_iter().map(row).collect()
}

/// The time that each source took from each CPU.
pub(super) fn per_cpu(recording: &Recording, sides: &[Side]) -> Vec<CpuSources> {
    let own = own_pid(recording);
    let per_side = |side: &Side| {
        let groups = groups(std::slice::from_ref(side), |one| Some((is_own(one, own), one.source.clone())));
        let row = |((own, source), group): (&(bool, Source), &Group)| CpuSource {
            source: source.to_string(),
            own: *own,
            count: group.tally.count,
            total_ns: group.tally.total_ns,
            in_detours_ns: has_detours(recording).then_some(group.in_detours_ns),
        };
        let mut sources: Vec<CpuSource> = groups.iter().map(row).collect();
        sources.sort_by(|a, b| {
            (a.own, Reverse(a.total_ns), &a.source).cmp(&(b.own, Reverse(b.total_ns), &b.source))
        });
        let explained = figures(side.joined.blames.iter()).filter(|_| has_detours(recording));
        CpuSources { cpu: side.cpu.0, span_ns: side.span.length().as_nanos(), explained, sources }
    };
    sides.iter().map(per_side).collect()
}
