//! Small synthetic MPI runs, written event by event.

use std::path::Path;

use quell_otf2::Writer;
use quell_recording::mpi::{BLOCKING, Comm, Definitions, Event, Location, Operation, Region, UNKNOWN, What};

pub const SEND: u32 = 0;
pub const RECV: u32 = 1;
pub const ALLREDUCE: u32 = 2;
pub const STEP: u32 = 3;
pub const FINALIZE: u32 = 4;

/// Definitions of `ranks` ranks on two hosts, with the sources `tick` and `task`.
pub fn definitions(ranks: u32) -> Definitions {
    let region = |name: &str, site: Option<&str>, mpi| Region {
        name: name.to_owned(),
        site: site.map(str::to_owned),
        mpi,
    };
    Definitions {
        regions: vec![
            region("MPI_Send", Some("exchange (app)"), true),
            region("MPI_Recv", Some("exchange (app)"), true),
            region("MPI_Allreduce", None, true),
            region("step", None, false),
            region("MPI_Finalize", None, true),
        ],
        comms: vec![Comm { name: "MPI_COMM_WORLD".into(), members: (0..ranks).collect(), remote: None }],
        locations: (0..ranks)
            .map(|rank| Location {
                id: rank.into(),
                name: "Master thread".into(),
                rank,
                thread: 0,
                host: format!("node{}", rank % 2),
            })
            .collect(),
        sources: vec!["tick".into(), "task".into()],
        span_ns: [0, 10_000_000],
    }
}

/// The events of one rank; times are in us.
pub struct Rank(pub Vec<Event>);

impl Rank {
    pub fn new() -> Self {
        Self(Vec::new())
    }

    pub fn at(mut self, us: u64, what: What) -> Self {
        self.0.push(Event { time_ns: us * 1_000, what });
        self
    }

    /// Sets the total noise that has struck by `us`: of `tick` and of `task`.
    pub fn struck(self, us: u64, tick_us: u64, task_us: u64) -> Self {
        let noise = |source, total: u64| What::Noise { source, total_ns: total * 1_000 };
        self.at(us, noise(0, tick_us)).at(us, noise(1, task_us))
    }

    pub fn sends(self, from: u64, until: u64, to: u32) -> Self {
        self.sends_bytes([from, until], to, 8)
    }

    pub fn sends_bytes(self, [from, until]: [u64; 2], to: u32, bytes: u64) -> Self {
        self.at(from, What::Enter(SEND))
            .at(from, What::Send { comm: 0, to, tag: 1, bytes, request: BLOCKING })
            .at(until, What::Leave(SEND))
    }

    pub fn receives(self, begin: u64, until: u64, from: u32) -> Self {
        self.receives_bytes([begin, until], from, 8)
    }

    pub fn receives_bytes(self, [begin, until]: [u64; 2], from: u32, bytes: u64) -> Self {
        self.at(begin, What::Enter(RECV))
            .at(until, What::Recv { comm: 0, from, tag: 1, bytes, request: BLOCKING })
            .at(until, What::Leave(RECV))
    }

    pub fn reduces(self, from: u64, until: u64) -> Self {
        let (operation, root) = (Operation::Allreduce, UNKNOWN);
        self.at(from, What::Enter(ALLREDUCE))
            .at(from, What::CollectiveBegin)
            .at(until, What::Collective { operation, comm: 0, root, sent: 8, received: 8, request: BLOCKING })
            .at(until, What::Leave(ALLREDUCE))
    }

    pub fn finalizes(self, from: u64, until: u64) -> Self {
        self.at(from, What::Enter(FINALIZE)).at(until, What::Leave(FINALIZE))
    }
}

/// Writes the ranks as an archive.
pub fn write(folder: &Path, definitions: &Definitions, ranks: &[Rank]) {
    let mut writer = Writer::create(folder, definitions).unwrap();
    for (location, rank) in ranks.iter().enumerate() {
        for event in &rank.0 {
            writer.event(location, *event).unwrap();
        }
    }
    writer.finish().unwrap();
}

/// A task keeps rank 0 from sending for 400 us, so that rank 1 waits, which absorbs its own tick. Then all wait for rank 1.
pub fn two_ranks() -> Vec<Rank> {
    let first = Rank::new()
        .at(0, What::Enter(STEP))
        .struck(1_000, 0, 400)
        .sends(1_000, 1_010, 1)
        .at(1_200, What::Leave(STEP))
        .reduces(1_200, 1_520)
        .finalizes(1_600, 2_000);
    let second = Rank::new()
        .at(0, What::Enter(STEP))
        .struck(300, 50, 0)
        .receives(300, 1_020, 0)
        .at(1_500, What::Leave(STEP))
        .reduces(1_500, 1_520)
        .finalizes(1_600, 2_000);
    vec![first, second]
}

/// Ranks that work and then wait for all; higher ranks have more noise.
pub fn many_ranks(count: u32) -> Vec<Rank> {
    let rank = |rank: u32| {
        let own = u64::from(rank % 37) * 10;
        let rank = Rank::new().struck(1_000 + own, own / 10, own);
        rank.reduces(1_000 + own, 1_400)
            .struck(2_400, own / 10, own + 5)
            .reduces(2_400, 2_420)
            .finalizes(2_500, 2_600)
    };
    (0..count).map(rank).collect()
}
