//! Limits of a document's figures, as typed values: each has a code and its facts. Their sentences are in `text`.

mod text;
pub mod track;

use quell_recording::warning as recording;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A warning for the reader of a document. Codes are unique over all documents, recordings and archives, and each code determines its facts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
#[schemars(rename = "DocumentWarning")]
pub enum Warning {
    // Recordings: `show`, and every document that is made of them.
    /// A warning of one of several recordings.
    OfRecording {
        /// The recording's name.
        recording: String,
        /// Its warning.
        warning: recording::Warning,
    },
    /// Intervals are missing from the figures of sources.
    SourcesIncomplete {
        /// Number of intervals that were lost.
        intervals: u64,
    },
    /// Threads are missing from the figures of a command.
    CommandIncomplete {
        /// Number of threads that were not followed.
        threads: u64,
    },
    /// This kernel cannot record a kind of event.
    KindMissing {
        /// The kind of event, and the consequence.
        what: String,
    },
    /// Intervals start before their detours, or end after them, by more than is allowed.
    ClocksDisagree {
        /// The overhang, as the 99th percentile.
        overhang_p99_ns: u64,
        /// The maximum overhang that is allowed.
        allowed_ns: u64,
    },
    /// The net times of intervals differ from those that follow from their nesting.
    NestingDisagrees {
        /// The sum of the intervals' own net times.
        net_ns: u64,
        /// The sum by their nesting.
        nested_ns: u64,
    },

    // Predictions: `predict`, `advise`, `replay --emulate`.
    /// Some scales exceed what the traces support.
    Extrapolated {
        /// Maximum number of ranks that the traces support.
        supported_ranks: u64,
        /// Number of independent windows that they hold.
        windows: u64,
        /// Length of a window: a quantum and the longest detour.
        window_ns: u64,
        /// Length of a quantum.
        quantum_ns: u64,
    },
    /// A recording holds no detours.
    NoDetours {
        /// Its name.
        recording: String,
    },
    /// A recording is too short for its resampled traces to vary enough.
    FewQuanta {
        /// Its name.
        recording: String,
        /// Its length.
        span_ns: u64,
        /// Length of a quantum.
        quantum_ns: u64,
    },
    /// Too few recordings of one node to know how much its noise varies from one to the next.
    FewRecordings {
        /// The node's host name.
        host: String,
        /// Number of recordings.
        recordings: u64,
    },
    /// There are no confidence intervals, because resampling would take too long.
    NotResampled,
    /// There are no confidence intervals from some scale on, for the same reason.
    NotResampledFrom {
        /// The number of ranks of that scale.
        ranks: u64,
    },
    /// Resampled traces left no useful time.
    FewReplicates {
        /// Number of resampled traces with useful time.
        done: u64,
        /// Number of resampled traces.
        tried: u64,
    },
    /// Fewer phases were simulated than requested, to bound the time.
    FewerPhases {
        /// Number of phases simulated.
        phases: u64,
        /// Number of phases requested.
        requested: u64,
        /// The smallest scale with fewer phases, in ranks.
        ranks: u64,
    },
    /// The recordings are from another host than the one that was audited.
    OtherHost {
        /// The recordings' host.
        recorded: String,
        /// The audited host.
        audited: String,
    },
    /// The host of the noise is not known.
    HostUnknown {
        /// The audited host.
        audited: String,
    },

    // `simulate`.
    /// The program does not finish, according to a check before the run.
    NeverEnds {
        /// The first errors of `quell goal check`, as it prints them.
        errors: Vec<String>,
        /// Number of further errors.
        more: u64,
    },

    // `compare` and `replay --validate`.
    /// Two recordings have different thresholds.
    ThresholdsDiffer {
        /// The threshold of the first.
        before_ns: f64,
        /// The threshold of the second.
        after_ns: f64,
    },
    /// Two recordings have different CPUs.
    CpusDiffer {
        /// The CPUs of the first.
        before: Vec<u32>,
        /// The CPUs of the second.
        after: Vec<u32>,
    },
    /// The probe did not see all injected detours.
    InjectedUnseen {
        /// Number of detours that it saw.
        seen: u64,
        /// Number of detours that were injected while it ran.
        injected: u64,
    },
    /// Fewer detours were injected than were due.
    InjectedFewer {
        /// Number of detours that were due.
        due: u64,
        /// Number of detours that were injected.
        injected: u64,
    },
    /// Injected detours did not fit into the log.
    InjectedUnlogged {
        /// Number of detours.
        detours: u64,
    },
    /// Too few detours were seen to determine the distribution of their lengths.
    FewDetours {
        /// Number of detours.
        detours: u64,
    },
    /// The machine's own noise made injected detours longer.
    OwnNoise {
        /// The time that it took, in percent.
        percent: f64,
    },

    // `replay`.
    /// None of the noise can be injected in this context.
    NothingInjectable,
    /// A run failed or was stopped, so the runs after it are missing.
    RunEnded {
        /// The number of the run, from 1.
        run: u64,
        /// Its exit code.
        exit_code: i32,
        /// The last lines that it wrote to stderr; empty if there are none.
        stderr: String,
    },
    /// No process called MPI through quell, so no noise was injected.
    NoMpiCalls,
    /// No process loaded the noise.
    NoProcess,
    /// Ranks did not report.
    RanksUnreported {
        /// Number of ranks without a report.
        missing: u64,
        /// Number of all ranks.
        ranks: u64,
    },
    /// Burning took longer than requested.
    BurningInterrupted {
        /// Time that was requested.
        requested_ns: u64,
        /// Time that passed.
        took_ns: u64,
    },
    /// No phase ended, so all processes continued from the same place of the trace.
    NoPhaseEnded,
    /// An interleaved run has too few pairs of blocks for a slowdown.
    FewBlocks {
        /// Number of its pairs.
        pairs: u64,
        /// Number of pairs that a slowdown needs.
        needed: u64,
    },
    /// Ranks of an interleaved run count different phases.
    BlocksApart,
    /// A process used up its share of the trace, and continued without noise.
    ShareUsedUp {
        /// Its rank, if it has one.
        rank: Option<u64>,
    },
    /// Threads could not be reached, and ran without noise.
    ThreadsUnreached {
        /// Number of threads.
        threads: u64,
    },
    /// This machine itself disturbed runs of emulated phases.
    RunsDisturbed {
        /// Their share, in percent.
        percent: f64,
        /// Number of tries of each.
        tries: u32,
    },
    /// The emulation was stopped before its end.
    StoppedEarly,
    /// Emulated ranks used up their share of the trace before all phases had run.
    PhasesUnrun,

    // `show DIR` and fleets.
    /// Nodes were recorded in different ways.
    RecordedDifferently {
        /// Number of different ways.
        ways: u64,
    },
    /// Too few nodes were recorded in the same way to compare them.
    FewNodes {
        /// Number of nodes.
        nodes: u64,
        /// Their method of recording.
        method: String,
        /// Whether their sources are known.
        with_sources: bool,
        /// Minimum number of nodes.
        needed: u64,
    },
    /// Too many nodes have more of a source than the others to be outliers: they count as another kind of node.
    OtherKind {
        /// The source.
        source: String,
        /// Number of nodes with more of it.
        nodes: u64,
        /// Number of all nodes.
        of: u64,
    },
    /// Nodes are missing from the cost.
    WithoutCost {
        /// Number of nodes.
        nodes: u64,
        /// The name of the first of them.
        first: String,
        /// The reason.
        because: String,
    },
    /// Recordings have no sources.
    SourcesUnknown {
        /// Number of recordings without sources.
        recordings: u64,
        /// Number of all recordings.
        of: u64,
    },
    /// Hosts were recorded by several methods.
    SeveralMethods,

    // `bench`.
    /// Ranks outnumber the CPUs that they may use.
    RanksShareCpus {
        /// The host.
        host: String,
        /// Number of its ranks.
        ranks: u64,
        /// Number of their CPUs.
        cpus: u64,
    },
    /// The kernel was not recorded.
    KernelNotWatched,
    /// The kernel could not be recorded on a host.
    CulpritsUnknown {
        /// The host.
        host: String,
        /// The reason.
        because: String,
    },
    /// The quickest tenth of a rank's phases differs from the quantum.
    QuickestTenthOff {
        /// The rank with the largest difference.
        rank: u32,
        /// How much longer than the quantum it is, in percent; negative if it is shorter.
        percent: f64,
    },
    /// The quickest tenth of quanta differs from the calibrated quantum.
    QuantumOff {
        /// Number of ranks where it does.
        ranks: u64,
        /// Number of all ranks.
        of: u64,
        /// Length of the quantum.
        quantum_ns: u64,
        /// The rank with the largest difference.
        worst_rank: u32,
        /// The 10th percentile of its quanta.
        worst_p10_ns: u64,
        /// How much longer than the quantum that is, in percent; negative if it is shorter.
        worst_percent: f64,
    },
    /// Spikes of some ranks have no source, because the kernel was not recorded there.
    SpikesWithoutSource {
        /// Number of these ranks.
        ranks: u64,
        /// Number of all ranks.
        of: u64,
    },
    /// The order of the quanta is not known.
    OrderUnknown,
    /// A network benchmark ended before it was complete.
    EndedEarly,
    /// There are more ranks than CPUs.
    MoreRanksThanCpus,
    /// Too few rounds were measured for an interval.
    FewRounds {
        /// The kind of pair of ranks: `intra` or `inter`.
        kind: String,
        /// Number of rounds.
        rounds: u64,
    },
    /// No size was found above which sends wait for their receive.
    NoEagerLimit {
        /// The kind of pair of ranks: `intra` or `inter`.
        kind: String,
        /// The largest size that was tried.
        tried_bytes: f64,
    },

    /// A warning of the recording that the document is about: its own code and facts.
    #[serde(untagged)]
    Recorded(recording::Warning),
    /// A defect of the archive that the document is about: its own code and facts.
    #[serde(untagged)]
    Archive(track::ArchiveWarning),
}

impl From<recording::Warning> for Warning {
    fn from(warning: recording::Warning) -> Self {
        Self::Recorded(warning)
    }
}

/// A sentence from an older document.
impl From<String> for Warning {
    fn from(text: String) -> Self {
        Self::Recorded(recording::Warning::Sentence { text })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn codes_are_unique_over_documents_and_recordings() {
        let schemas = [
            schemars::schema_for!(Warning),
            schemars::schema_for!(recording::Warning),
            schemars::schema_for!(track::ArchiveWarning),
        ];
        let mut codes: BTreeMap<String, usize> = BTreeMap::new();
        for schema in &schemas {
            for variant in
                ["oneOf", "anyOf"].into_iter().filter_map(|of| schema.get(of)?.as_array()).flatten()
            {
                if let Some(code) = variant["properties"]["code"]["const"].as_str() {
                    *codes.entry(code.to_owned()).or_default() += 1;
                }
            }
        }
        let twice: Vec<_> = codes.iter().filter(|(_, count)| **count > 1).collect();
        assert!(codes.len() > 80 && twice.is_empty(), "{} codes, twice: {twice:?}", codes.len());
    }

    #[test]
    fn what_a_recording_says_keeps_its_own_code() {
        let recorded = Warning::from(recording::Warning::RowsLost { rows: 3 });
        let named = Warning::OfRecording {
            recording: "a.quell".into(),
            warning: recording::Warning::RowsLost { rows: 3 },
        };
        let written = serde_json::to_value([&recorded, &named]).unwrap();
        let lost = json!({"code": "rows-lost", "rows": 3});
        assert_eq!(written, json!([lost, {"code": "of-recording", "recording": "a.quell", "warning": lost}]));
        let read: Vec<Warning> = serde_json::from_value(written).unwrap();
        assert_eq!(read, [recorded, named]);
        assert_eq!(
            read[1].to_string(),
            "a.quell: 3 rows were lost: they came faster than they could be written"
        );
    }

    #[test]
    fn older_documents_have_sentences() {
        let old = json!(["said then", {"code": "no-phase-ended"}]);
        let read: Vec<Warning> = quell_recording::warning::typed_or_sentences::<Value, _>(old).unwrap();
        assert_eq!(read[0].to_string(), "said then");
        assert_eq!(read[1], Warning::NoPhaseEnded);
    }
}
