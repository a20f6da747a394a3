//! Recordings of one node: a resampled job draws them again, because a node's noise differs from one recording to the next.

use quell_recording::{Cpu, Recording, Trace};
use quell_sim::{Draws, Node};

use super::NodeNoise;
use crate::Warning;
use crate::stats::{mean, normal_quantile, student_t, variance};

/// Number of parts of a recording whose lost times show how much two recordings of equal noise would differ (batch means: Schmeiser,
/// "Batch Size Effects in the Analysis of Simulation Output", Operations Research 30, 1982).
const BATCHES: u64 = 10;

/// Number of recordings from which on their spread gives an interval as wide as Student's, see [`drawn`].
const ENOUGH: usize = 4;

/// Where noise was recorded, and how evenly. It stays with what is left of the noise after sources or CPUs were taken away, so that all that is made of
/// some recordings is drawn alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// The host's name, which is untrusted text.
    pub host: String,
    /// Its kernel and processor, by their own names.
    machine: [Option<String>; 2],
    /// The recorded CPUs.
    cpus: Vec<Cpu>,
    /// The share of each of its parts that was lost to noise.
    lost: Vec<f64>,
}

impl Origin {
    /// That of a recording; `None` if its host is not known.
    pub fn from_recording(recording: &Recording) -> Option<Self> {
        let manifest = &recording.manifest;
        let machine = [manifest.kernel.clone(), manifest.processor.clone()];
        Some(Self { machine, ..Self::new(manifest.host.as_deref()?, &recording.traces) })
    }

    /// That of traces of a host.
    pub(super) fn new(host: &str, traces: &[Trace]) -> Self {
        let cpus = traces.iter().map(|trace| trace.cpu).collect();
        Self { host: host.to_owned(), machine: [None, None], cpus, lost: lost(traces) }
    }

    /// Whether both are of the same CPUs of one machine under one kernel.
    fn is_as(&self, other: &Self) -> bool {
        (&self.host, &self.machine, &self.cpus) == (&other.host, &other.machine, &other.cpus)
    }
}

/// Several recordings of the same CPUs of a host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Repeats {
    /// The host's name, which is untrusted text.
    host: String,
    /// Their indices among a job's nodes.
    recordings: Vec<usize>,
    /// The share of their variance that does not come from the limited length of each.
    share: f64,
    /// Number of recordings that are drawn in their place.
    drawn: u64,
}

impl Repeats {
    /// The nodes of which there are several recordings.
    pub(super) fn find(nodes: &[NodeNoise]) -> Vec<Self> {
        let mut groups: Vec<Vec<(usize, &Origin)>> = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            let Some(origin) = &node.origin else { continue };
            match groups.iter_mut().find(|group| group[0].1.is_as(origin)) {
                Some(group) => group.push((at, origin)),
                None => groups.push(vec![(at, origin)]),
            }
        }
        groups.iter().filter(|group| group.len() > 1).map(|group| Self::new(group)).collect()
    }

    fn new(group: &[(usize, &Origin)]) -> Self {
        let lost: Vec<&[f64]> = group.iter().map(|(_, origin)| origin.lost.as_slice()).collect();
        Self {
            host: group[0].1.host.clone(),
            recordings: group.iter().map(|one| one.0).collect(),
            share: share_between(&lost),
            drawn: drawn(group.len() as u64),
        }
    }

    /// That they are too few to know how much the node's noise varies, if it varies more than their own errors.
    fn warning(&self) -> Option<Warning> {
        let recordings = self.recordings.len();
        let few = recordings < ENOUGH && self.share > 0.5;
        few.then(|| Warning::FewRecordings { host: self.host.clone(), recordings: recordings as u64 })
    }

    /// For each recording the one that takes its place.
    ///
    /// All stay in their places as often as the variance between them is that of equal noise. Otherwise they are drawn with replacement, fewer
    /// than they are, so that the mean of the drawn ones varies as the mean of all does (McCarthy & Snowden, "The Bootstrap and Finite
    /// Population Sampling", 1985), widened as Student's t is against the normal distribution.
    pub(super) fn draw(&self, draws: &Draws) -> impl Iterator<Item = (usize, usize)> {
        let count = self.recordings.len() as u64;
        let again = draws.unit(0) < self.share;
        let draws = *draws;
        let of = move |(place, &recording): (u64, &usize)| {
            let chosen = draws.below(1 + place % self.drawn, count) as usize;
            (recording, if again { self.recordings[chosen] } else { recording })
        };
        (0..).zip(&self.recordings).map(of)
    }
}

/// That there are too few recordings of nodes.
pub(crate) fn few_recordings(nodes: &[NodeNoise]) -> impl Iterator<Item = Warning> {
    Repeats::find(nodes).into_iter().filter_map(|repeats| repeats.warning())
}

/// The share of each part of the time in which all CPUs were observed that was lost to noise, in CPUs.
fn lost(traces: &[Trace]) -> Vec<f64> {
    let mut parts = vec![0.0; BATCHES as usize];
    let Ok(span) = Node::shared_span(traces) else { return parts };
    let length = span.length().as_nanos().div_ceil(BATCHES).max(1);
    for detour in traces.iter().flat_map(Trace::noise) {
        if (span.start..span.end).contains(&detour.start) {
            let part = (detour.start - span.start).as_nanos() / length;
            parts[part as usize] += detour.duration.as_nanos() as f64 / length as f64;
        }
    }
    parts
}

/// The share of the variance of the recordings' means that their parts do not explain: 1 − 1/F of a one-way analysis of variance (Fisher,
/// "Statistical Methods for Research Workers", 1925, VII).
fn share_between(parts: &[&[f64]]) -> f64 {
    let means: Vec<f64> = parts.iter().filter_map(|parts| mean(parts.iter().copied())).collect();
    let of_means = mean(means.iter().copied()).and_then(|all| variance(means.iter().copied(), all));
    let within =
        parts.iter().filter_map(|parts| variance(parts.iter().copied(), mean(parts.iter().copied())?));
    let within: Vec<f64> = within.collect();
    let (Some(between), Some(within)) = (of_means, mean(within.iter().copied())) else { return 0.0 };
    let between = between * BATCHES as f64;
    if between > within { 1.0 - within / between } else { 0.0 }
}

/// How many of some recordings are drawn: the mean of that many varies as Student's interval for the mean of all is wide. From two or three recordings
/// one is drawn, and the interval is narrower than Student's.
fn drawn(recordings: u64) -> u64 {
    let freedom = recordings.saturating_sub(1);
    let wider = student_t(0.975, freedom) / normal_quantile(0.975);
    ((freedom as f64 / wider.powi(2)).round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use quell_recording::{Detour, Nanos, Span};

    use super::*;

    /// A recording of 1,000 ns with detours of these lengths, 10 ns apart.
    fn node(host: Option<&str>, cpu: u32, lengths: &[u64]) -> NodeNoise {
        let ns = Nanos::from_nanos;
        let detour =
            |(at, &length): (u64, &u64)| Detour { start: ns(10 * at), duration: ns(length), own: false };
        let detours = (0..).zip(lengths).map(detour).collect();
        let span = Span { start: ns(0), end: ns(1_000) };
        let traces = vec![Trace { cpu: Cpu(cpu), span, detours }];
        let origin = host.map(|host| Origin::new(host, &traces));
        NodeNoise { name: "n".into(), origin, traces, limits: Vec::new() }
    }

    #[test]
    fn recordings_of_the_same_cpus_of_a_host_are_of_one_node() {
        let of = |host, cpu| node(host, cpu, &[1]);
        let (a, b) = (Some("a"), Some("b"));
        let nodes = [of(a, 0), of(b, 0), of(None, 0), of(a, 1), of(a, 0), of(None, 0), of(b, 0), of(a, 0)];
        let mut other_kernel = of(a, 0);
        other_kernel.origin.as_mut().unwrap().machine[0] = Some("Linux 6.1".into());
        let nodes = [nodes.as_slice(), &[other_kernel]].concat();
        let found: Vec<Vec<usize>> =
            Repeats::find(&nodes).into_iter().map(|repeats| repeats.recordings).collect();
        assert_eq!(found, [vec![0, 4, 7], vec![1, 6]]);
    }

    #[test]
    fn the_lost_time_is_that_of_each_part() {
        let lengths: Vec<u64> = (0..100).map(|at| u64::from(at >= 50)).collect();
        let expected = [vec![0.0; 5], vec![0.1; 5]].concat();
        assert!(
            lost(&node(None, 0, &lengths).traces)
                .iter()
                .zip(expected)
                .all(|(one, other)| (one - other).abs() < 1e-12)
        );
        assert_eq!(lost(&node(None, 0, &[]).traces), [0.0; 10]);
    }

    /// Two samples of ten values, worked by hand: means 1 and 3, both variances 10/9, so F = 10 × 2 / (10/9) = 18.
    #[test]
    fn the_share_is_that_of_an_analysis_of_variance() {
        let around = |mean: f64| (0..10).map(|at| mean + f64::from(at % 2 * 2 - 1)).collect::<Vec<f64>>();
        let share = |one: &[f64], other: &[f64]| share_between(&[one, other]);
        assert!((share(&around(1.0), &around(3.0)) - 17.0 / 18.0).abs() < 1e-12);
        assert_eq!(share(&around(1.0), &around(1.0)), 0.0);
        assert_eq!(share(&[1.0; 10], &[1.0; 10]), 0.0, "no variance at all");
        assert_eq!(share(&[1.0; 10], &[2.0; 10]), 1.0);
    }

    /// (n − 1) × (1.960 / t)² with t from tables: 3.182 for n = 4, 2.571 for 6, 2.131 for 16.
    #[test]
    fn fewer_are_drawn_than_there_are() {
        assert_eq!([2, 3, 4, 6, 16].map(drawn), [1, 1, 1, 3, 13]);
    }

    #[test]
    fn fewer_than_four_recordings_that_differ_are_reported() {
        let [calm, busy] = [1u64, 9].map(|length| node(Some("a"), 0, &[length; 100]));
        let warning = |nodes: &[&NodeNoise]| {
            let nodes: Vec<NodeNoise> = nodes.iter().map(|&node| node.clone()).collect();
            Repeats::find(&nodes)[0].warning()
        };
        let few = Warning::FewRecordings { host: "a".into(), recordings: 3 };
        assert_eq!(warning(&[&calm, &busy, &busy]), Some(few));
        assert_eq!(warning(&[&calm, &calm, &calm]), None);
        assert_eq!(warning(&[&calm, &busy, &calm, &busy]), None);
    }

    #[test]
    fn recordings_that_differ_are_drawn_again() {
        let [calm, busy] = [1u64, 9].map(|length| node(Some("a"), 0, &[length; 100]));
        let alike = vec![calm.clone(); 6];
        let differ: Vec<NodeNoise> =
            (0..6).map(|at| if at < 3 { calm.clone() } else { busy.clone() }).collect();
        let drawn = |nodes: &[NodeNoise]| -> Vec<Vec<(usize, usize)>> {
            let repeats = Repeats::find(nodes);
            (0..600).map(|seed| repeats[0].draw(&Draws::new(seed, &[])).collect()).collect()
        };
        let unchanged: Vec<(usize, usize)> = (0..6).map(|at| (at, at)).collect();
        assert!(drawn(&alike).iter().all(|draw| *draw == unchanged));
        let mut counts = [0; 6];
        for draw in drawn(&differ) {
            assert!(draw.iter().map(|one| one.0).eq(0..6));
            let sources: Vec<usize> = draw.iter().map(|one| one.1).collect();
            assert_eq!(sources[..3], sources[3..], "three take the places of six");
            sources[..3].iter().for_each(|&source| counts[source] += 1);
        }
        // 1,800 draws of six: 300 each, with a standard deviation of 16.
        assert!(counts.iter().all(|count| (220..380).contains(count)), "{counts:?}");
    }
}
