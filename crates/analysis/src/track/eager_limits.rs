//! The eager limits of a run: larger sends may wait for their receivers. An MPI has one for each way that messages take, so ranks of one host
//! have another than ranks of different hosts. If none is given, the run itself shows it: a send that ended before its receiver came to MPI
//! was eager; sends that end only after that, again and again, wait.

mod evidence;

use quell_recording::columns::{Columns, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use evidence::{Came, Evidence, Left, Others, Sent};

/// The limit if nothing is known. Most MPIs have a larger one.
const ASSUMED: u64 = 4096;
/// An eager limit from outside of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenLimit {
    /// The largest message that is sent eagerly.
    pub bytes: u64,
    /// Whether it was measured, rather than typed.
    pub measured: bool,
}

/// The eager limit of messages between ranks of one host, or of different hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct EagerLimit {
    /// The messages it holds for: `one host` or `different hosts` of sender and receiver; `all` if it was given.
    #[column(title = "between", name)]
    pub between: String,
    /// The largest message that is sent without waiting for its receiver.
    #[column(title = "eager up to", zero)]
    pub limit_bytes: u64,
    /// Where it comes from: `given` (an option or a preset), `learned` from this run's own sends, `measured` by `quell bench loggp`, or `assumed`
    /// because nothing shows it.
    #[column]
    pub origin: String,
    /// Number of sends that showed whether they waited.
    #[column]
    pub sends: u64,
    /// The largest message that did not wait for its receiver; null if none is known.
    pub eager_bytes: Option<u64>,
    /// The smallest message that waited; null if none is known.
    pub waiting_bytes: Option<u64>,
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    OneHost,
    DifferentHosts,
}

const WAYS: [(Way, &str); 2] = [(Way::OneHost, "one host"), (Way::DifferentHosts, "different hosts")];

/// The largest messages, in bytes, that were eager in a measurement: between ranks of one host, and of different hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredLimits {
    /// Between ranks of one host.
    pub one_host: Option<u64>,
    /// Between ranks of different hosts.
    pub different_hosts: Option<u64>,
}

impl MeasuredLimits {
    fn for_way(self, way: Way) -> Option<u64> {
        match way {
            Way::OneHost => self.one_host,
            Way::DifferentHosts => self.different_hosts,
        }
    }
}

/// The eager limits by which a run is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EagerLimits {
    given: Option<GivenLimit>,
    /// What `bench loggp` measured there, for ranks of one host, and of different hosts: it holds where the run shows nothing.
    measured: MeasuredLimits,
    /// Of messages between ranks of one host, and of different hosts.
    ways: [Learned; 2],
}

/// What a run shows about a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Learned {
    /// Number of messages.
    messages: u64,
    sends: u64,
    eager: Option<u64>,
    waiting: Option<u64>,
}

impl Learned {
    /// The assumed limit, if it is between the largest size that is eager and the smallest that waits; otherwise the nearer of the two.
    fn limit(&self, assumed: u64) -> u64 {
        let most = self.waiting.map_or(u64::MAX, |bytes| bytes.saturating_sub(1));
        assumed.max(self.eager.unwrap_or(0)).min(most)
    }

    /// Whether the run shows the limit, or that the assumed one is wrong.
    fn is_known(&self, assumed: u64) -> bool {
        (self.eager.is_some() && self.waiting.is_some()) || self.limit(assumed) != assumed
    }
}

impl EagerLimits {
    pub(super) fn new(given: Option<GivenLimit>, measured: MeasuredLimits) -> Self {
        Self { given, measured, ways: [Learned::default(); 2] }
    }

    fn limit(&self, way: Way) -> u64 {
        let assumed = self.measured.for_way(way).unwrap_or(ASSUMED);
        self.ways[way as usize].limit(assumed)
    }

    /// Where the limit of a way comes from.
    fn origin(&self, way: Way) -> &'static str {
        let measured = self.measured.for_way(way);
        if self.ways[way as usize].is_known(measured.unwrap_or(ASSUMED)) {
            "learned"
        } else if measured.is_some() {
            "measured"
        } else {
            "assumed"
        }
    }

    /// Whether a send of this size may wait for its receiver.
    pub(super) fn may_wait(&self, way: Way, bytes: u64) -> bool {
        bytes > self.given.map_or_else(|| self.limit(way), |given| given.bytes)
    }

    /// Each limit that a message of the run was subject to.
    pub(super) fn rows(&self) -> Vec<EagerLimit> {
        if let Some(GivenLimit { bytes, measured }) = self.given {
            let origin = if measured { "measured" } else { "given" };
            return vec![EagerLimit {
                between: "all".into(),
                limit_bytes: bytes,
                origin: origin.into(),
                sends: 0,
                eager_bytes: None,
                waiting_bytes: None,
            }];
        }
        let used = WAYS.iter().map(|(way, name)| (&self.ways[*way as usize], *way, *name));
        let row = |(learned, way, between): (&Learned, Way, &str)| EagerLimit {
            between: between.into(),
            limit_bytes: self.limit(way),
            origin: self.origin(way).into(),
            sends: learned.sends,
            eager_bytes: learned.eager,
            waiting_bytes: learned.waiting,
        };
        used.filter(|(learned, ..)| learned.messages > 0).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread(given: Option<GivenLimit>) -> EagerLimits {
        EagerLimits::new(given, MeasuredLimits::default())
    }

    #[test]
    fn a_measured_limit_holds_where_the_run_shows_nothing() {
        let measured = MeasuredLimits { one_host: Some(256), different_hosts: None };
        let limits = |learned| {
            let limits = EagerLimits { ways: [learned; 2], ..EagerLimits::new(None, measured) };
            limits.rows().into_iter().map(|row| (row.limit_bytes, row.origin)).collect::<Vec<_>>()
        };
        let shows = |eager, waiting| Learned { messages: 1, sends: 9, eager, waiting };
        let row = |bytes: u64, origin: &str| (bytes, origin.to_owned());
        assert_eq!(limits(shows(None, None)), [row(256, "measured"), row(4096, "assumed")]);
        assert_eq!(limits(shows(Some(8), None)), [row(256, "measured"), row(4096, "assumed")]);
        assert_eq!(limits(shows(Some(512), None)), [row(512, "learned"), row(4096, "assumed")]);
        assert_eq!(limits(shows(Some(8), Some(64))), [row(63, "learned"), row(63, "learned")]);
    }

    #[test]
    fn a_send_may_wait_above_the_limit_of_its_way() {
        let given = unread(Some(GivenLimit { bytes: 100, measured: true }));
        assert!(!given.may_wait(Way::OneHost, 100) && given.may_wait(Way::OneHost, 101));
        assert_eq!(given.rows()[0].origin, "measured");
        let far = Learned { messages: 3, eager: Some(9000), ..Learned::default() };
        let learned = EagerLimits { ways: [Learned::default(), far], ..unread(None) };
        assert!(!learned.may_wait(Way::DifferentHosts, 9000) && learned.may_wait(Way::DifferentHosts, 9001));
        assert!(!learned.may_wait(Way::OneHost, 4096) && learned.may_wait(Way::OneHost, 4097));
        let rows = learned.rows();
        assert_eq!(rows.len(), 1, "no message took the other way");
        assert_eq!((rows[0].between.as_str(), rows[0].origin.as_str()), ("different hosts", "learned"));
    }
}
