//! The sentence of each warning of a document. Only rendering is here.

mod track;

use std::fmt::{Display, Formatter, Result};

use quell_recording::{Cpu, Nanos, format_cpu_list, format_ns};

use super::Warning;

impl Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Recorded(warning) => warning.fmt(f),
            Self::Archive(warning) => warning.fmt(f),
            Self::OfRecording { recording, warning } => write!(f, "{recording}: {warning}"),
            Self::CpuTaken { cpu, percent } => write!(
                f,
                "CPU {cpu} was taken for {percent:.0} % of the time: another program ran there; measure on an idle node to see the \
                 system's own noise"
            ),
            Self::SourcesIncomplete { intervals } => write!(
                f,
                "{intervals} intervals were lost for want of room: the sources took more than is shown"
            ),
            Self::CommandIncomplete { threads } => {
                write!(f, "{threads} threads of the command could not be followed")
            }
            Self::KindMissing { what } => f.write_str(what),
            Self::ClocksDisagree { overhang_p99_ns, allowed_ns } => write!(
                f,
                "intervals stick out of their detours by {overhang_p99_ns} ns (99th percentile), more than the {allowed_ns} ns that \
                 are allowed: the clocks of the probe and of the kernel do not agree well, so less is explained than could be"
            ),
            Self::NestingDisagrees { net_ns, nested_ns } => write!(
                f,
                "the intervals' own net times add up to {net_ns} ns and their nesting to {nested_ns} ns: some of them cut through \
                 one another, or were lost"
            ),
            Self::Extrapolated { supported_ranks, quanta, quantum_ns } => write!(
                f,
                "beyond {supported_ranks} ranks the prediction extrapolates, and is rather too low: the traces hold {quanta} quanta \
                 of {}, of which each phase meets the worst, and no detour longer than the longest recorded; record for longer to \
                 support more",
                Nanos::from_nanos(*quantum_ns)
            ),
            Self::NoDetours { recording } => {
                write!(f, "{recording} holds no detours, so its nodes are predicted as free of noise")
            }
            Self::SpanBelowQuantum { recording, span_ns, quantum_ns } => write!(
                f,
                "the quantum, {}, is longer than {recording}, {}, which therefore repeats within each phase; record for longer than \
                 one quantum",
                Nanos::from_nanos(*quantum_ns),
                Nanos::from_nanos(*span_ns)
            ),
            Self::FewQuanta { recording, span_ns, quantum_ns } => write!(
                f,
                "{recording} spans {}, fewer than forty quanta of {}: the confidence intervals are too narrow; record for longer",
                Nanos::from_nanos(*span_ns),
                Nanos::from_nanos(*quantum_ns)
            ),
            Self::NotResampled => f.write_str(
                "this is too large to resample, so there are no confidence intervals; ask for fewer ranks or phases",
            ),
            Self::NotResampledFrom { ranks } => write!(
                f,
                "from {ranks} ranks on a phase is too large to resample, so there is no confidence interval"
            ),
            Self::FewReplicates { done, tried } => write!(
                f,
                "only {done} of {tried} resampled traces left any useful time, so the confidence intervals say little; record for \
                 longer"
            ),
            Self::FewerPhases { phases, requested, ranks } => write!(
                f,
                "to bound the time, {phases} of {requested} phases were simulated at {ranks} ranks, and no more than that beyond"
            ),
            Self::OtherHost { recorded, audited } => write!(
                f,
                "the noise is that of {recorded}, and this is {audited}: whether a mitigation is on or possible there is not known; \
                 ask there, or give a copy of its /proc, /sys and /etc with --sysroot"
            ),
            Self::HostUnknown { audited } => write!(
                f,
                "the recording's host is unknown: whether a mitigation is applied or possible is reported for this machine, {audited}"
            ),
            Self::NeverEnds { errors, more } => {
                f.write_str("the program does not end, which is plain before it runs:")?;
                errors.iter().try_for_each(|error| write!(f, "\n  {error}"))?;
                if *more > 0 { write!(f, "\n  and {more} more (`quell goal check`)") } else { Ok(()) }
            }
            Self::ThresholdsDiffer { before_ns, after_ns } => write!(
                f,
                "the thresholds differ ({} and {}): short detours are in one and not in the other",
                format_ns(*before_ns),
                format_ns(*after_ns)
            ),
            Self::CpusDiffer { before, after } => {
                let list = |cpus: &[u32]| format_cpu_list(&cpus.iter().copied().map(Cpu).collect::<Vec<_>>());
                write!(f, "the CPUs differ: {} and {}", list(before), list(after))
            }
            Self::InjectedUnseen { seen, injected } => write!(
                f,
                "the probe saw {seen} of {injected} injected detours: the others were on another CPU, or shorter than its threshold"
            ),
            Self::InjectedFewer { due, injected } => write!(
                f,
                "{due} detours were due, and only {injected} came: this machine is too busy for them"
            ),
            Self::InjectedUnlogged { detours } => write!(
                f,
                "{detours} injected detours were not logged, and are taken for the machine's own: record for a shorter --duration"
            ),
            Self::FewDetours { detours } => {
                write!(f, "{detours} detours say little of their distribution: record for a longer --duration")
            }
            Self::OwnNoise { percent } => write!(
                f,
                "the machine's own noise took {percent:.0} % of the time, and made injected detours longer too"
            ),
            Self::NothingInjectable => f.write_str(
                "none of the noise can be injected this way: try --scale auto, or another --context",
            ),
            Self::RunEnded { run, exit_code, stderr } => {
                write!(f, "run {run} ended with exit code {exit_code}, so no more followed")?;
                if stderr.is_empty() { Ok(()) } else { write!(f, ": {stderr}") }
            }
            Self::NoMpiCalls => f.write_str(
                "no process called MPI through quell, so no noise came in: it is no MPI program, or MPI is linked into it \
                 statically; --context timer or process may do",
            ),
            Self::NoProcess => f.write_str(
                "no process took the noise: it is linked statically, or runs with privileges of its own; --context process may do",
            ),
            Self::RanksUnreported { missing, ranks } => write!(
                f,
                "{missing} of {ranks} ranks did not report, and may have run without noise: does every host see the folder? Name \
                 one that it does with -o"
            ),
            Self::BurningInterrupted { requested_ns, took_ns } => write!(
                f,
                "burning itself was interrupted: {:.1} ms were asked for and {:.1} ms passed, so this machine is busy with other \
                 things",
                *requested_ns as f64 / 1e6,
                *took_ns as f64 / 1e6
            ),
            Self::NoPhaseEnded => {
                f.write_str("no phase ended, so all went on from one place: see --phase-at")
            }
            Self::ShareUsedUp { rank } => {
                rank.map_or(Ok(()), |rank| write!(f, "rank {rank} and perhaps others "))?;
                f.write_str("used up the share of the trace, and ran without noise from then on")
            }
            Self::ThreadsUnreached { threads } => {
                write!(f, "{threads} threads were beyond reach, and ran without noise")
            }
            Self::RunsDisturbed { percent, tries } => write!(
                f,
                "{percent:.1} % of the runs were disturbed by this machine itself on each of {tries} tries; what its noise took is \
                 left out of their times, but a quieter machine or a smaller --scale measures better"
            ),
            Self::StoppedEarly => f.write_str(
                "it was stopped before its end: the last scale is of fewer phases, and others are missing",
            ),
            Self::PhasesUnrun => f.write_str(
                "ranks had used their --share of the trace up before all phases had run",
            ),
            Self::RecordedDifferently { ways } => write!(
                f,
                "the nodes were recorded in {ways} ways (method, and whether sources are known): each is held against its like"
            ),
            Self::FewNodes { nodes, method, with_sources, needed } => write!(
                f,
                "{nodes} {} recorded by {method}{}: too few to say which is unlike the rest (it takes {needed})",
                if *nodes == 1 { "node was" } else { "nodes were" },
                if *with_sources { " with sources" } else { "" }
            ),
            Self::OtherKind { source, nodes, of } => write!(
                f,
                "{nodes} of {of} nodes have much more of `{source}` than the others: that is another kind of node, and none is \
                 called unlike the rest for it"
            ),
            Self::WithoutCost { nodes: 1, first, because } => {
                write!(f, "{first} has no part in the cost: {because}")
            }
            Self::WithoutCost { nodes, first, because } => {
                write!(f, "{nodes} nodes ({first} among them) have no part in the cost: {because}")
            }
            Self::SourcesUnknown { recordings, of } => write!(
                f,
                "{recordings} of {of} recordings know no sources: sums over sources are without them"
            ),
            Self::SeveralMethods => f.write_str(
                "hosts were recorded by several methods, whose figures are not comparable: each is held against its like",
            ),
            Self::RanksShareCpus { host, ranks, cpus } => write!(
                f,
                "on {host} {ranks} ranks share {cpus} CPUs: they wait for one another's turns, which shows as noise of the \
                 program's own ranks"
            ),
            Self::KernelNotWatched => {
                f.write_str("the culprits stay unknown: the kernel was not watched (--sources)")
            }
            Self::CulpritsUnknown { host, because } => {
                write!(f, "the culprits on {host} stay unknown: {because}")
            }
            Self::QuickestTenthOff { rank, percent } if *percent > 0.0 => write!(
                f,
                "even the quickest tenth of phases took {percent:.1} % more than the quantum on rank {rank}: noise hardly ever rests \
                 there"
            ),
            Self::QuickestTenthOff { rank, percent } => write!(
                f,
                "the quickest tenth of phases took {:.1} % less than the quantum on rank {rank}: its CPU ran faster than when the \
                 work was calibrated, and slowdowns are too low by about that",
                -percent
            ),
            Self::QuantumOff { ranks, of, quantum_ns, worst_rank, worst_p10_ns, worst_percent } => write!(
                f,
                "the quiet tenth of {ranks} of {of} ranks is not the quantum of {quantum_ns} ns; worst is rank {worst_rank} with \
                 {worst_p10_ns} ns ({worst_percent:+.1} %): its CPU runs at another speed than when the work was calibrated, or \
                 something takes from every quantum"
            ),
            Self::SpikesWithoutSource { ranks, of } => write!(
                f,
                "what the kernel did is not known for {ranks} of {of} ranks: their spikes have no source"
            ),
            Self::OrderUnknown => f.write_str(
                "the order of the quanta is not known (a histogram was read): what the slowest rank of each iteration costs, and \
                 when spikes came, cannot be reported",
            ),
            Self::EndedEarly => {
                f.write_str("the job did not end well: what it had measured by then is all there is")
            }
            Self::MoreRanksThanCpus => f.write_str(
                "there are more ranks than CPUs; those that do not measure sleep, yet disturb",
            ),
            Self::FewRounds { kind, rounds } => write!(f, "{kind}: {rounds} rounds make no interval"),
            Self::NoEagerLimit { kind, tried_bytes } => write!(
                f,
                "{kind}: no send up to {tried_bytes} bytes waited for its receive; S is at least that"
            ),
        }
    }
}
