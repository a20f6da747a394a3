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
            Self::SourcesIncomplete { intervals } => write!(
                f,
                "{intervals} intervals were lost because a buffer was full: the sources took more than is shown"
            ),
            Self::CommandIncomplete { threads } => {
                write!(f, "quell could not follow {threads} threads of the command")
            }
            Self::KindMissing { what } => f.write_str(what),
            Self::ClocksDisagree { overhang_p99_ns, allowed_ns } => write!(
                f,
                "intervals extend beyond their detours by {overhang_p99_ns} ns (99th percentile), more than the permitted \
                 {allowed_ns} ns: the clocks of the probe and of the kernel disagree, so some detours keep no source"
            ),
            Self::NestingDisagrees { net_ns, nested_ns } => write!(
                f,
                "the intervals' own net times add up to {net_ns} ns and their nesting to {nested_ns} ns: some intervals overlap \
                 without being nested, or were lost"
            ),
            Self::Extrapolated { supported_ranks, windows, window_ns, quantum_ns } => write!(
                f,
                "beyond {supported_ranks} ranks the prediction is extrapolated and tends to be too low: the traces have only \
                 {windows} independent windows of {}, a quantum of {} and the longest detour, and quell asks for ten for each \
                 rank; record for longer, or give a model a longer `span`",
                Nanos::from_nanos(*window_ns),
                Nanos::from_nanos(*quantum_ns)
            ),
            Self::NoDetours { recording } => {
                write!(f, "{recording} has no detours, so the prediction treats its nodes as free of noise")
            }
            Self::FewQuanta { recording, span_ns, quantum_ns } => write!(
                f,
                "{recording} spans {}, fewer than forty quanta of {}: the confidence intervals are too narrow; record for longer",
                Nanos::from_nanos(*span_ns),
                Nanos::from_nanos(*quantum_ns)
            ),
            Self::FewRecordings { host, recordings } => write!(
                f,
                "the {recordings} recordings of the same CPUs of {host} differ, and fewer than four give confidence intervals \
                 that are too narrow; record it more often"
            ),
            Self::NotResampled => f.write_str(
                "this is too large to resample, so there are no confidence intervals; give fewer ranks or phases",
            ),
            Self::NotResampledFrom { ranks } => write!(
                f,
                "from {ranks} ranks on a phase is too large to resample, so there is no confidence interval"
            ),
            Self::FewReplicates { done, tried } => write!(
                f,
                "only {done} of {tried} resampled traces left any useful time, so the confidence intervals are unreliable; record \
                 for longer"
            ),
            Self::FewerPhases { phases, requested, ranks } => write!(
                f,
                "to limit the time, quell simulated {phases} of {requested} phases at {ranks} ranks, and no more at larger scales"
            ),
            Self::OtherHost { recorded, audited } => write!(
                f,
                "the recording is from {recorded} and this is {audited}, so quell does not know which mitigations are applied or \
                 possible there; run it there, or give a copy of its /proc, /sys and /etc with --sysroot"
            ),
            Self::HostUnknown { audited } => write!(
                f,
                "the recording's host is unknown: whether a mitigation is applied or possible is reported for this machine, {audited}"
            ),
            Self::NeverEnds { errors, more } => {
                f.write_str("the program cannot end, for reasons visible before it runs:")?;
                errors.iter().try_for_each(|error| write!(f, "\n  {error}"))?;
                if *more > 0 { write!(f, "\n  and {more} more (`quell goal check`)") } else { Ok(()) }
            }
            Self::ThresholdsDiffer { before_ns, after_ns } => write!(
                f,
                "the thresholds differ ({} and {}): one recording has short detours that the other lacks",
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
                "only {injected} of {due} detours could be injected: this machine is too busy"
            ),
            Self::InjectedUnlogged { detours } => write!(
                f,
                "{detours} injected detours were not logged, and count as the machine's own: record for a shorter --duration"
            ),
            Self::FewDetours { detours } => {
                write!(f, "{detours} detours are too few to show their distribution: record for a longer --duration")
            }
            Self::OwnNoise { percent } => write!(
                f,
                "the machine's own noise took {percent:.0} % of the time, and lengthened injected detours"
            ),
            Self::NothingInjectable => f.write_str(
                "none of the noise can be injected this way: try --scale auto, or another --context",
            ),
            Self::RunEnded { run, exit_code, stderr } => {
                write!(f, "run {run} ended with exit code {exit_code}, so quell started no more")?;
                if stderr.is_empty() { Ok(()) } else { write!(f, ": {stderr}") }
            }
            Self::NoMpiCalls => f.write_str(
                "no process called MPI through quell, so no noise was injected: the program does not use MPI, or links it \
                 statically; try --context timer or --context process",
            ),
            Self::NoProcess => f.write_str(
                "no process loaded the injector, so no noise was injected: the program is linked statically, or runs with other \
                 privileges; try --context process",
            ),
            Self::RanksUnreported { missing, ranks } => write!(
                f,
                "{missing} of {ranks} ranks did not report, and may have run without noise: does every host see the folder? Give one that \
                 they all see with -o"
            ),
            Self::BurningInterrupted { requested_ns, took_ns } => write!(
                f,
                "the injected detours were interrupted themselves: {:.1} ms were requested and {:.1} ms passed, so this machine is \
                 busy with other work",
                *requested_ns as f64 / 1e6,
                *took_ns as f64 / 1e6
            ),
            Self::NoPhaseEnded => {
                f.write_str("no phase ended, so all ranks continued from one offset: see --phase-at")
            }
            Self::FewBlocks { pairs, needed } => write!(
                f,
                "the run has {pairs} pairs of blocks with and without noise, and a slowdown needs {needed}: run it for longer, or \
                 with shorter blocks"
            ),
            Self::BlocksApart => f.write_str(
                "the ranks count different phases, so noise was not in the same blocks on all of them: choose calls that all ranks \
                 make with --phase-at",
            ),
            Self::ShareUsedUp { rank } => {
                rank.map_or(Ok(()), |rank| write!(f, "rank {rank} and perhaps others "))?;
                f.write_str("used up its share of the trace, and ran without noise from then on")
            }
            Self::ThreadsUnreached { threads } => {
                write!(f, "quell could not reach {threads} threads, which ran without noise")
            }
            Self::RunsDisturbed { percent, tries } => write!(
                f,
                "this machine's own noise disturbed {percent:.1} % of the runs on each of {tries} tries; quell subtracts it from \
                 their times, but a quieter machine or a smaller --scale measures better"
            ),
            Self::StoppedEarly => f.write_str(
                "it was stopped before its end: the last scale has fewer phases, and larger scales are missing",
            ),
            Self::PhasesUnrun => f.write_str(
                "ranks used up their --share of the trace before all phases had run",
            ),
            Self::RecordedDifferently { ways } => write!(
                f,
                "the nodes were recorded in {ways} ways (method, and whether sources are known): quell compares each node with those recorded in the same way"
            ),
            Self::FewNodes { nodes, method, with_sources, needed } => write!(
                f,
                "{nodes} {} recorded by {method}{}: too few to find outliers (at least {needed} are needed)",
                if *nodes == 1 { "node was" } else { "nodes were" },
                if *with_sources { " with sources" } else { "" }
            ),
            Self::OtherKind { source, nodes, of } => write!(
                f,
                "{nodes} of {of} nodes have much more of `{source}` than the others: quell treats them as another kind of node, and \
                 not as outliers"
            ),
            Self::WithoutCost { nodes: 1, first, because } => {
                write!(f, "the cost leaves out {first}: {because}")
            }
            Self::WithoutCost { nodes, first, because } => {
                write!(f, "the cost leaves out {nodes} nodes ({first} among them): {because}")
            }
            Self::SourcesUnknown { recordings, of } => write!(
                f,
                "{recordings} of {of} recordings have no sources, so sums over sources leave them out"
            ),
            Self::SeveralMethods => f.write_str(
                "hosts were recorded by several methods, whose figures are not comparable: quell compares within each method",
            ),
            Self::RanksShareCpus { host, ranks, cpus } => write!(
                f,
                "on {host} {ranks} ranks share {cpus} CPUs: they take turns on a CPU, which shows as noise of the program's own \
                 ranks"
            ),
            Self::KernelNotWatched => {
                f.write_str("the culprits are unknown: the kernel was not recorded (--sources)")
            }
            Self::CulpritsUnknown { host, because } => {
                write!(f, "the culprits on {host} are unknown: {because}")
            }
            Self::QuickestTenthOff { rank, percent } if *percent > 0.0 => write!(
                f,
                "even the quickest tenth of phases took {percent:.1} % more than the quantum on rank {rank}: noise hardly ever \
                 pauses there"
            ),
            Self::QuickestTenthOff { rank, percent } => write!(
                f,
                "the quickest tenth of phases took {:.1} % less than the quantum on rank {rank}: its CPU ran faster than when the \
                 work was calibrated, and slowdowns are too low by about that much",
                -percent
            ),
            Self::QuantumOff { ranks, of, quantum_ns, worst_rank, worst_p10_ns, worst_percent } => write!(
                f,
                "the quickest tenth of quanta differs from the quantum of {quantum_ns} ns on {ranks} of {of} ranks; worst is rank \
                 {worst_rank} with {worst_p10_ns} ns ({worst_percent:+.1} %): its CPU runs at another speed than during \
                 calibration, or something takes time from every quantum"
            ),
            Self::SpikesWithoutSource { ranks, of } => write!(
                f,
                "the kernel was not recorded for {ranks} of {of} ranks: their spikes have no source"
            ),
            Self::OrderUnknown => f.write_str(
                "the order of the quanta is unknown, because the file is a histogram: the cost of the slowest rank of each \
                 iteration and the times of spikes are missing",
            ),
            Self::EndedEarly => {
                f.write_str("the job failed; quell shows what it had measured by then")
            }
            Self::MoreRanksThanCpus => f.write_str(
                "there are more ranks than CPUs; ranks that do not measure sleep, but still disturb the others",
            ),
            Self::FewRounds { kind, rounds } => write!(f, "{kind}: {rounds} rounds are too few for an interval"),
            Self::NoEagerLimit { kind, tried_bytes } => write!(
                f,
                "{kind}: no send up to {tried_bytes} bytes waited for its receive, so S is at least that"
            ),
        }
    }
}
