//! Limits of a recording, as typed values: each has a code and its facts. Their sentences are in `text`.

mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// A warning for the reader of a recording's figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
#[schemars(rename = "RecordingWarning")]
pub enum Warning {
    /// The processor's counter cannot be used, so the probe reads CLOCK_MONOTONIC.
    CoarseClock {
        /// Why it cannot be used.
        because: String,
    },
    /// The probe's buffers could not be locked into memory.
    BuffersNotLocked,
    /// A CPU went offline, or was closed to quell, during the run.
    CpuClosed {
        /// The CPU.
        cpu: u32,
    },
    /// A CPU was taken from the probe for more of the time than any system takes for itself.
    CpuTaken {
        /// The CPU.
        cpu: u32,
        /// The share of the time, in percent.
        percent: f64,
    },
    /// quell itself was stopped (SIGSTOP, a debugger), and went on.
    Stopped {
        /// How often.
        times: u64,
    },
    /// The threshold is a multiple of the loop's shortest turn, which the clock's steps are too coarse to measure.
    ThresholdOfCoarseClock {
        /// The smallest step that the clock shows.
        granularity_ns: f64,
    },
    /// The threshold is below what the probe can distinguish from its own loop.
    ThresholdInsideLoop {
        /// Only longer gaps were recorded.
        threshold_ns: f64,
        /// The coarsest resolution over the CPUs.
        resolution_ns: f64,
    },
    /// The clock's calibrated rate changed between the start and the end.
    ClockDrift {
        /// The change, in parts per million.
        drift_ppm: f64,
    },
    /// The kernel recorder itself lengthens the detours that it explains.
    LongerByRecorder {
        /// By how much, in percent.
        percent: f64,
        /// The lower end of its 95 % interval.
        low_percent: f64,
        /// The upper end.
        high_percent: f64,
        /// Only detours below this length were measured.
        below_ns: u64,
    },
    /// Rows arrived faster than they could be written.
    RowsLost {
        /// Number of rows, over all CPUs.
        rows: u64,
    },
    /// Rows were lost, and the recording does not state why.
    RowsMissing {
        /// Number of rows, over all CPUs.
        rows: u64,
    },
    /// The kernel takes time from real-time threads (`sched_rt_runtime_us`).
    RealtimeThrottled {
        /// The share of each second, in percent.
        percent: f64,
    },
    /// The processor slowed CPUs because of heat.
    Throttled {
        /// Number of CPUs.
        cpus: u64,
        /// The one that it slowed for the longest time.
        cpu: u32,
        /// How often it slowed that one.
        times: u64,
        /// For how long in all; zero where the kernel only counts.
        total_ns: u64,
    },
    /// The machine is virtual.
    VirtualMachine,
    /// Kernel intervals arrived faster than they could be read.
    IntervalsLost {
        /// Number of intervals, over all CPUs.
        intervals: u64,
    },
    /// Threads of the command were not followed for lack of space.
    ThreadsNotFollowed {
        /// Number of threads.
        threads: u64,
    },
    /// The writer ended without finishing: the recording ends with its last flush.
    CutOff,
    /// A signal ended the recording early.
    Interrupted,
    /// An imported file does not state the CPU.
    CpuUnknown,
    /// An imported file does not state the CPUs of its threads.
    CpusOfThreadsUnknown,
    /// An imported file does not state the CPUs of its ranks.
    CpusOfRanksUnknown,
    /// Ranks of an imported file moved between CPUs.
    RanksMoved,
    /// A folder has no file of some ranks of its run.
    RankFilesMissing {
        /// Number of ranks.
        ranks: u64,
        /// The first of them.
        rank: u32,
    },
    /// An imported file does not record when each quantum began.
    StartsUnknown {
        /// Whether it has a column of clock ticks, whose rate it does not state.
        ticks: bool,
    },
    /// An imported file has neither the order nor the starts of its quanta, nor the CPUs.
    QuantaCounted,
    /// An imported file is a log of latencies without times, so only their counts are kept.
    LatenciesCounted,
    /// An imported file is a summary: only counts, minima and maxima are exact.
    Summary,
    /// An imported file's values have no unit.
    UnitUnknown,
    /// An imported file has whole microseconds.
    WholeMicroseconds {
        /// The times in question.
        of: MicrosecondTimes,
    },
    /// An imported file ends before the tool's sums.
    SumsMissing {
        /// The tool.
        tool: SummingTool,
    },
    /// The sums of the osnoise tracer on one CPU.
    OsnoiseSums {
        /// The CPU.
        cpu: u32,
        /// Sum of the noise in all periods.
        noise_ns: u64,
        /// Sum of the lengths of all periods.
        runtime_ns: u64,
        /// Number of periods.
        periods: u64,
        /// The longest single noise.
        longest_ns: u64,
    },
    /// Each quantum is a period of the osnoise tracer.
    QuantaArePeriods,
    /// The tags of a log are kept as numbers of threads.
    TagsAsThreads {
        /// The first few tags.
        tags: Vec<TaggedThread>,
        /// Number of further tags.
        more: u64,
    },
    /// Task switches and page faults are omitted, because the documentation of the list does not define their numbers.
    SwitchesAndFaultsLeftOut,
    /// Some of a trace's events did not become rows.
    EventsLeftOut {
        /// Number of intervals whose beginning or end is missing in the trace.
        cut: u64,
        /// Number of sums of the osnoise tracer's periods.
        periods: u64,
        /// Number of timer latencies.
        latencies: u64,
    },
    /// Further instances of a trace are omitted.
    InstancesLeftOut {
        /// Their names.
        instances: Vec<String>,
    },
    /// The tracer lost events.
    EventsLost {
        /// Number of events.
        events: u64,
    },
    /// The number of rows of an imported file differs from that in its head.
    RowsCutOff {
        /// Number of rows in its head.
        stated: u64,
        /// Number of rows that it has.
        found: u64,
    },
    /// The rows of ranks do not add up to the sums that the file states.
    SumsDiffer {
        /// Number of ranks.
        ranks: u64,
        /// The first of them.
        rank: u32,
        /// Sum of its rows.
        found_ns: u64,
        /// Sum that the file states.
        stated_ns: u64,
    },
    /// A warning of an older recording, which has only a sentence.
    Sentence {
        /// The sentence.
        text: String,
    },
}

/// Times that a tool writes as whole microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MicrosecondTimes {
    /// Events of a tracer.
    Events,
    /// Quanta.
    Quanta,
    /// Quanta, in files that do not record the time in the barrier either.
    QuantaWithoutBarrier,
}

/// A tool whose files end with sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SummingTool {
    /// cyclictest.
    Cyclictest,
    /// oslat.
    Oslat,
    /// rtla.
    Rtla,
}

/// A tag of a log, and the number of the thread that holds its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaggedThread {
    /// The number.
    pub thread: u32,
    /// The tag.
    pub tag: String,
}

/// The sentence of [`Warning::VirtualMachine`] in manifests before version 5.
const VIRTUAL_MACHINE: &str = "this is a virtual machine: what its hypervisor takes shows as detours";

/// Before version 5 a manifest had sentences. Two of them have facts that are nowhere else in it, or that other code needs.
impl From<String> for Warning {
    fn from(text: String) -> Self {
        let rows = text.strip_suffix(" rows were lost: they came faster than they could be written");
        match rows.and_then(|rows| rows.parse().ok()) {
            Some(rows) => Self::RowsLost { rows },
            None if text == VIRTUAL_MACHINE => Self::VirtualMachine,
            None => Self::Sentence { text },
        }
    }
}

/// Reads a list of warnings, for `#[serde(deserialize_with)]`. Items are typed, or sentences of an older version.
///
/// # Errors
/// If an item is neither.
pub fn typed_or_sentences<'de, D, W>(deserializer: D) -> Result<Vec<W>, D::Error>
where
    D: Deserializer<'de>,
    W: Deserialize<'de> + From<String>,
{
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a warning is neither a known `code` with its facts nor a sentence")]
    enum Item<W> {
        Typed(W),
        Sentence(String),
    }
    let item = |item| match item {
        Item::Typed(warning) => warning,
        Item::Sentence(text) => W::from(text),
    };
    Ok(Vec::deserialize(deserializer)?.into_iter().map(item).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use serde_json::json;

    use super::*;

    fn read(warnings: serde_json::Value) -> Result<Vec<Warning>, serde_json::Error> {
        typed_or_sentences(warnings)
    }

    #[test]
    fn a_warning_is_its_code_and_its_facts() {
        let drift = Warning::ClockDrift { drift_ppm: 120.5 };
        assert_eq!(serde_json::to_value(&drift).unwrap(), json!({"code": "clock-drift", "drift_ppm": 120.5}));
        assert_eq!(read(json!([{"code": "clock-drift", "drift_ppm": 120.5}])).unwrap(), [drift]);
        assert_eq!(read(json!([{"code": "virtual-machine"}])).unwrap(), [Warning::VirtualMachine]);
        assert!(read(json!([{"code": "no-such-code"}])).is_err() && read(json!([1])).is_err());
    }

    #[test]
    fn sentences_of_older_versions_are_kept() {
        let texts = [
            VIRTUAL_MACHINE,
            "12 rows were lost: they came faster than they could be written",
            "its lost rows, in a virtual machine, are no fact",
        ];
        let read = read(json!(texts)).unwrap();
        let sentence = Warning::Sentence { text: texts[2].to_owned() };
        assert_eq!(read, [Warning::VirtualMachine, Warning::RowsLost { rows: 12 }, sentence]);
        assert_eq!(read[1..].iter().map(ToString::to_string).collect::<Vec<_>>(), texts[1..]);
        let again = serde_json::to_value(&read[2]).unwrap();
        assert_eq!(again, json!({"code": "sentence", "text": texts[2]}));
    }
}
