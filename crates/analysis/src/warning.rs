//! What limits the figures of a document, as typed values: each has a code and its facts. Their sentences are in `text`.

mod text;
pub mod track;

use quell_recording::warning as recording;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a reader of a document must know. Codes are unique over all documents, recordings and archives: each says which facts there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
#[schemars(rename = "DocumentWarning")]
pub enum Warning {
    // Recordings: `show`, and every document that is made of them.
    /// What one of several recordings says of itself.
    OfRecording {
        /// The recording's name.
        recording: String,
        /// What it says.
        warning: recording::Warning,
    },
    /// Another program ran on a CPU.
    CpuTaken {
        /// The CPU.
        cpu: u32,
        /// It had this share of the time, in percent.
        percent: f64,
    },
    /// Intervals are missing from the figures of sources.
    SourcesIncomplete {
        /// How many were lost.
        intervals: u64,
    },
    /// Threads are missing from the figures of a command.
    CommandIncomplete {
        /// How many were not followed.
        threads: u64,
    },
    /// This kernel cannot record a kind of event.
    KindMissing {
        /// Which, and what follows from that.
        what: String,
    },
    /// Intervals start before their detours, or end after them, by more than is allowed.
    ClocksDisagree {
        /// By so much, as the 99th percentile.
        overhang_p99_ns: u64,
        /// What is allowed.
        allowed_ns: u64,
    },
    /// The net times of intervals are not those that their nesting gives.
    NestingDisagrees {
        /// The sum of the intervals' own net times.
        net_ns: u64,
        /// The sum by their nesting.
        nested_ns: u64,
    },

    // Predictions: `predict`, `advise`, `replay --emulate`.
    /// Some scales lie beyond what the traces can say.
    Extrapolated {
        /// Up to so many ranks they can.
        supported_ranks: u64,
        /// Quanta that they hold.
        quanta: u64,
        /// Length of a quantum.
        quantum_ns: u64,
    },
    /// A recording holds no detours.
    NoDetours {
        /// Its name.
        recording: String,
    },
    /// A recording is shorter than one quantum.
    SpanBelowQuantum {
        /// Its name.
        recording: String,
        /// Its length.
        span_ns: u64,
        /// Length of a quantum.
        quantum_ns: u64,
    },
    /// A recording is too short for its resampled traces to vary as they should.
    FewQuanta {
        /// Its name.
        recording: String,
        /// Its length.
        span_ns: u64,
        /// Length of a quantum.
        quantum_ns: u64,
    },
    /// There are no confidence intervals: to resample would take too long.
    NotResampled,
    /// There are none from some scale on, for the same reason.
    NotResampledFrom {
        /// From so many ranks on.
        ranks: u64,
    },
    /// Resampled traces left no useful time.
    FewReplicates {
        /// How many left some.
        done: u64,
        /// Of how many.
        tried: u64,
    },
    /// Fewer phases were simulated than requested, to bound the time.
    FewerPhases {
        /// How many.
        phases: u64,
        /// Of how many.
        requested: u64,
        /// From so many ranks on.
        ranks: u64,
    },
    /// The recordings are of another host than the one that was audited.
    OtherHost {
        /// The recordings' host.
        recorded: String,
        /// The audited host.
        audited: String,
    },
    /// It is not known which host the noise is of.
    HostUnknown {
        /// The audited host.
        audited: String,
    },

    // `simulate`.
    /// The program does not end, as a check before the run finds.
    NeverEnds {
        /// The first errors of `quell goal check`, as it prints them.
        errors: Vec<String>,
        /// Further errors.
        more: u64,
    },

    // `compare` and `replay --validate`.
    /// Two recordings have different thresholds.
    ThresholdsDiffer {
        /// Of the first.
        before_ns: f64,
        /// Of the second.
        after_ns: f64,
    },
    /// Two recordings have different CPUs.
    CpusDiffer {
        /// Of the first.
        before: Vec<u32>,
        /// Of the second.
        after: Vec<u32>,
    },
    /// The probe did not see all injected detours.
    InjectedUnseen {
        /// Those that it saw.
        seen: u64,
        /// Those that were injected while it watched.
        injected: u64,
    },
    /// Fewer detours were injected than were due.
    InjectedFewer {
        /// How many were due.
        due: u64,
        /// How many were injected.
        injected: u64,
    },
    /// Injected detours did not fit into the log.
    InjectedUnlogged {
        /// How many.
        detours: u64,
    },
    /// Too few detours were seen to know how their lengths are distributed.
    FewDetours {
        /// How many.
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
        /// Which run, from 1.
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
        /// How many.
        missing: u64,
        /// Of how many.
        ranks: u64,
    },
    /// Burning took longer than requested.
    BurningInterrupted {
        /// Time that was to be burned.
        requested_ns: u64,
        /// Time that passed.
        took_ns: u64,
    },
    /// No phase ended, so all processes went on from one place of the trace.
    NoPhaseEnded,
    /// A process used its share of the trace up, and ran on without noise.
    ShareUsedUp {
        /// Its rank, if it has one.
        rank: Option<u64>,
    },
    /// Threads could not be reached, and ran without noise.
    ThreadsUnreached {
        /// How many.
        threads: u64,
    },
    /// This machine itself disturbed runs of emulated phases.
    RunsDisturbed {
        /// That share of them, in percent.
        percent: f64,
        /// How often each was tried.
        tries: u32,
    },
    /// The emulation was stopped before its end.
    StoppedEarly,
    /// Emulated ranks used their share of the trace up before all phases had run.
    PhasesUnrun,

    // `show DIR` and fleets.
    /// Nodes were recorded in different ways.
    RecordedDifferently {
        /// How many ways.
        ways: u64,
    },
    /// Too few nodes were recorded alike to compare them.
    FewNodes {
        /// How many.
        nodes: u64,
        /// By which method.
        method: String,
        /// Whether their sources are known.
        with_sources: bool,
        /// How many it takes.
        needed: u64,
    },
    /// So many nodes have much more of a source than the others that they count as another kind of node.
    OtherKind {
        /// The source.
        source: String,
        /// How many.
        nodes: u64,
        /// Of how many.
        of: u64,
    },
    /// Nodes have no part in the cost.
    WithoutCost {
        /// How many.
        nodes: u64,
        /// The first of them.
        first: String,
        /// Why.
        because: String,
    },
    /// Recordings do not know their sources.
    SourcesUnknown {
        /// How many.
        recordings: u64,
        /// Of how many.
        of: u64,
    },
    /// Hosts were recorded by several methods.
    SeveralMethods,

    // `bench`.
    /// Ranks outnumber the CPUs that they may use.
    RanksShareCpus {
        /// On this host.
        host: String,
        /// Its ranks.
        ranks: u64,
        /// Their CPUs.
        cpus: u64,
    },
    /// The kernel was not recorded.
    KernelNotWatched,
    /// The kernel could not be recorded on a host.
    CulpritsUnknown {
        /// The host.
        host: String,
        /// Why.
        because: String,
    },
    /// The quickest tenth of a rank's phases is not as long as the quantum.
    QuickestTenthOff {
        /// The rank that is farthest off.
        rank: u32,
        /// So much longer than the quantum, in percent; below 0 where it is shorter.
        percent: f64,
    },
    /// The quickest tenth of quanta is not the quantum that was calibrated.
    QuantumOff {
        /// On so many ranks.
        ranks: u64,
        /// Of how many.
        of: u64,
        /// Length of the quantum.
        quantum_ns: u64,
        /// The rank that is farthest off.
        worst_rank: u32,
        /// What its quickest tenth takes at most.
        worst_p10_ns: u64,
        /// So much longer than the quantum, in percent; below 0 where it is shorter.
        worst_percent: f64,
    },
    /// Spikes of some ranks have no source: what the kernel did there is not known.
    SpikesWithoutSource {
        /// On so many ranks.
        ranks: u64,
        /// Of how many.
        of: u64,
    },
    /// The order of the quanta is not known.
    OrderUnknown,
    /// A network benchmark ended before it was done.
    EndedEarly,
    /// There are more ranks than CPUs.
    MoreRanksThanCpus,
    /// Too few rounds were measured for an interval.
    FewRounds {
        /// Between which ranks: `intra` or `inter`.
        kind: String,
        /// How many.
        rounds: u64,
    },
    /// No size was found from which on sends wait for their receive.
    NoEagerLimit {
        /// Between which ranks: `intra` or `inter`.
        kind: String,
        /// The largest size that was tried.
        tried_bytes: f64,
    },

    /// What the recording says of itself that the document is of: its own code and facts.
    #[serde(untagged)]
    Recorded(recording::Warning),
    /// What is wrong with the archive that the document is of: its own code and facts.
    #[serde(untagged)]
    Archive(track::ArchiveWarning),
}

impl From<recording::Warning> for Warning {
    fn from(warning: recording::Warning) -> Self {
        Self::Recorded(warning)
    }
}

/// A sentence of an older document.
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
