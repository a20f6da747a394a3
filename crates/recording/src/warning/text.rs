//! The sentence of each warning of a recording. Only rendering is here.

use std::fmt::{Display, Formatter, Result};

use crate::Nanos;

use super::{MicrosecondTimes, SummingTool, TaggedThread, Warning};

impl Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::CoarseClock { because } => {
                write!(f, "CLOCK_MONOTONIC is used, with a coarser resolution: {because}")
            }
            Self::BuffersNotLocked => f.write_str(
                "the buffers could not be locked into memory (ulimit -l); quell only touched their pages before the run",
            ),
            Self::CpuClosed { cpu } => write!(
                f,
                "CPU {cpu} went offline or was closed to quell during the run: its recording ends there"
            ),
            Self::CpuTaken { cpu, percent } => write!(
                f,
                "other programs had CPU {cpu} for {percent:.0} % of the time; measure on an idle node to see the system's own noise"
            ),
            Self::Stopped { times } => {
                let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
                write!(f, "quell was stopped {times} during the run (SIGSTOP): it saw nothing then, and those gaps count as its own")
            }
            Self::ThresholdOfCoarseClock { granularity_ns } => write!(
                f,
                "the clock moves in steps of {granularity_ns:.0} ns, so the shortest turn of the loop cannot set the \
                 threshold: give a time, such as --threshold 150ns"
            ),
            Self::ThresholdInsideLoop { threshold_ns, resolution_ns } => write!(
                f,
                "the threshold of {threshold_ns:.0} ns lies inside the probe's own loop (resolution {resolution_ns:.0} ns): \
                 some of the rows are the loop's own turns"
            ),
            Self::ClockDrift { drift_ppm } => {
                write!(f, "the clock's rate changed by {drift_ppm:.0} ppm during the run")
            }
            Self::LongerByRecorder { percent, low_percent, high_percent, below_ns } => write!(
                f,
                "the recorder itself makes detours below {} {percent:.1} % longer ({low_percent:.1} to {high_percent:.1}); \
                 no figure is corrected for it",
                Nanos::from_nanos(*below_ns),
            ),
            Self::RowsLost { rows } => {
                write!(f, "{rows} rows were lost: they came faster than they could be written")
            }
            Self::RowsMissing { rows } => write!(f, "{rows} rows were lost"),
            Self::RealtimeThrottled { percent } => write!(
                f,
                "the kernel takes {percent:.0} % of each second from real-time threads (sched_rt_runtime_us): those gaps are \
                 in the trace"
            ),
            Self::Throttled { cpus, cpu, times, total_ns } => {
                write!(f, "the processor slowed {cpus} CPUs because of heat, CPU {cpu} the most: {times} times")?;
                if *total_ns > 0 {
                    write!(f, ", {} in all", Nanos::from_nanos(*total_ns))?;
                }
                f.write_str("; work and noise took longer then")
            }
            Self::VirtualMachine => {
                f.write_str("this is a virtual machine: the figures include time that the hypervisor takes")
            }
            Self::IntervalsLost { intervals } => write!(
                f,
                "{intervals} kernel intervals were lost: they came faster than they could be read"
            ),
            Self::ThreadsNotFollowed { threads } => {
                write!(f, "{threads} threads were not followed: too many existed at the same time")
            }
            Self::CutOff => f.write_str("it was cut off, and ends with its last flush"),
            Self::Interrupted => f.write_str("it was interrupted before its end"),
            Self::CpuUnknown => {
                f.write_str("the file does not name its CPU: quell assumes CPU 0")
            }
            Self::CpusOfThreadsUnknown => f.write_str(
                "the file does not name the CPUs of its threads: quell takes the number of a thread for that of its CPU",
            ),
            Self::CpusOfRanksUnknown => f.write_str("the CPUs are unknown: quell numbers them as the ranks"),
            Self::RankFilesMissing { ranks, rank } => {
                write!(f, "the folder lacks files of ranks, {ranks} in all, such as that of rank {rank}: no figure holds them")
            }
            Self::RanksMoved => {
                f.write_str("some ranks moved between CPUs: all their phases are under the first CPU")
            }
            Self::StartsUnknown { ticks } => {
                f.write_str(
                    "the file has no start times of quanta: quell places them one after another, without gaps",
                )?;
                let column = "; the third column, ticks of a clock of unknown rate, is omitted";
                f.write_str(if *ticks { column } else { "" })
            }
            Self::QuantaCounted => f.write_str(
                "it was read from a histogram: order and times of the quanta are unknown, so each rank's are one after another, \
                 the shortest first; the CPUs are unknown too, and are numbered as the ranks",
            ),
            Self::LatenciesCounted => f.write_str(
                "it was read from `thread: cycle: latency` lines, which have no times: only the counts are kept",
            ),
            Self::Summary => f.write_str(
                "it was read from a summary: the count, the minimum and the maximum are exact, and the rest lies in between",
            ),
            Self::UnitUnknown => f.write_str(
                "values of an HdrHistogram log have no unit: quell reads them as ns, as jHiccup writes them",
            ),
            Self::WholeMicroseconds { of } => f.write_str(whole_microseconds(*of)),
            Self::SumsMissing { tool } => f.write_str(sums_missing(*tool)),
            Self::OsnoiseSums { cpu, noise_ns, runtime_ns, periods, longest_ns } => {
                let [noise, runtime, single] = [noise_ns, runtime_ns, longest_ns].map(|ns| ns / 1_000);
                write!(
                    f,
                    "CPU {cpu}: {noise} us of {runtime} us were noise in {periods} periods; the longest single noise took \
                     {single} us"
                )
            }
            Self::QuantaArePeriods => f.write_str(
                "each quantum is a period of the osnoise tracer; its work is the time in ns that noise left of it",
            ),
            Self::TagsAsThreads { tags, more } => {
                let named = tags.iter().map(|TaggedThread { thread, tag }| format!("{thread}: {tag}"));
                let more = (*more > 0).then(|| format!("and {more} more"));
                let named: Vec<String> = named.chain(more).collect();
                write!(f, "its tags are kept as numbers of threads ({}), all under CPU 0", named.join(", "))
            }
            Self::SwitchesAndFaultsLeftOut => f.write_str(
                "its switches and faults (kinds 40 and 50) are left out: the format does not document their numbers",
            ),
            Self::EventsLeftOut { cut, periods, latencies } => {
                let left = |count: u64, text: String| (count > 0).then_some(text);
                let left = [
                    left(*cut, format!("{cut} intervals of which the trace lacks the beginning or the end")),
                    left(*periods, format!("the osnoise tracer's sums of periods ({periods})")),
                    left(*latencies, format!("timer latencies ({latencies})")),
                ];
                write!(f, "left out: {}", left.into_iter().flatten().collect::<Vec<_>>().join("; "))
            }
            Self::InstancesLeftOut { instances } => {
                write!(f, "left out: the data of further instances ({})", instances.join(", "))
            }
            Self::EventsLost { events } => write!(f, "the tracer lost {events} events"),
            Self::RowsCutOff { stated, found } => {
                write!(f, "the file states {stated} interruptions, and has {found}: it was cut off")
            }
            Self::SumsDiffer { ranks, rank, found_ns, stated_ns } => {
                let [found, stated] = [found_ns, stated_ns].map(|ns| ns / 1_000);
                write!(
                    f,
                    "the rows of {ranks} ranks do not add up to the sum that the file states, such as those of rank {rank} to \
                     {found} us of {stated} us: rows are missing"
                )
            }
            Self::Sentence { text } => f.write_str(text),
        }
    }
}

fn whole_microseconds(of: MicrosecondTimes) -> &'static str {
    match of {
        MicrosecondTimes::Events => {
            "its times are whole us: shorter events may have no length (`trace.dat`, or `perf script --ns`, have ns)"
        }
        MicrosecondTimes::Quanta => "the file has whole microseconds: fractions are cut off",
        MicrosecondTimes::QuantaWithoutBarrier => {
            "it was read from vpsum's files: times are whole microseconds, and the time in the barrier is unknown"
        }
    }
}

fn sums_missing(tool: SummingTool) -> &'static str {
    match tool {
        SummingTool::Cyclictest => {
            "the file ends before its sums: latencies longer than its last row are unknown"
        }
        SummingTool::Oslat => "the file ends before oslat's sums: the longest gap is unknown",
        SummingTool::Rtla => "the file ends before its sums: times beyond its last row are unknown",
    }
}
