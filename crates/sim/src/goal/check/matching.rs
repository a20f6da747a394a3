//! Messages that find no receive, and receives that find no message, in whatever order they arrive.
//!
//! Each rank's receives are compared with all messages to it. This takes 8 bytes for every message of the schedule, and 8 for
//! every receive of one rank.

use super::super::finding::{Finding, Findings, Problem, Severity};
use crate::goal::rank_part::Op;
use crate::goal::schedule::Schedule;
use crate::loggops::{ANY, Kind, Program};

/// The other side's rank and the tag; either may be [`ANY`].
type Pair = (u32, u32);

pub(super) fn look(schedule: &Schedule, findings: &mut Findings) {
    let mut messages = Messages::collect(schedule);
    let mut receives = Vec::new();
    for rank in 0..schedule.ranks() {
        receives.clear();
        receives.extend(pairs(schedule, rank, Kind::Recv).map(|(_, pair)| pair));
        receives.sort_unstable_by_key(in_one);
        let sends = messages.to(rank);
        sends.sort_unstable_by_key(in_one);
        let wild = |pair: &Pair| pair.0 == ANY || pair.1 == ANY;
        if sends == receives && !sends.iter().any(wild) {
            continue;
        }
        let meeting =
            Matching { schedule, rank, sends: Tally::count(sends), receives: Tally::count(&receives) };
        meeting.look(findings);
    }
}

/// A pair as one number, in the same order: such numbers are compared sooner.
fn in_one(pair: &Pair) -> u64 {
    u64::from(pair.0) << 32 | u64::from(pair.1)
}

/// Source and tag of all messages, by their receiver.
struct Messages {
    begins: Vec<usize>,
    pairs: Vec<Pair>,
}

impl Messages {
    fn collect(schedule: &Schedule) -> Self {
        let ranks = schedule.ranks();
        // Counts, shifted by two, become the beginnings of the lists, and move to their ends as the lists fill.
        let mut begins = vec![0; ranks as usize + 2];
        for rank in 0..ranks {
            for (op, _) in pairs(schedule, rank, Kind::Send) {
                begins[op.peer as usize + 2] += 1;
            }
        }
        for index in 1..begins.len() {
            begins[index] += begins[index - 1];
        }
        let mut list = vec![(0, 0); schedule.sends as usize];
        for rank in 0..ranks {
            for (op, (_, tag)) in pairs(schedule, rank, Kind::Send) {
                let next = &mut begins[op.peer as usize + 1];
                list[*next] = (rank, tag);
                *next += 1;
            }
        }
        Self { begins, pairs: list }
    }

    fn to(&mut self, rank: u32) -> &mut [Pair] {
        &mut self.pairs[self.begins[rank as usize]..self.begins[rank as usize + 1]]
    }
}

/// The operations of one kind of a rank, with peer and tag.
fn pairs(schedule: &Schedule, rank: u32, kind: Kind) -> impl Iterator<Item = (&Op, Pair)> {
    schedule.rank_list(rank).iter().filter_map(move |op| {
        let shape = &schedule.shapes[op.shape as usize];
        (shape.kind == kind).then_some((op, (op.peer, shape.tag)))
    })
}

/// Counts messages or receives by rank, tag or both. Treats [`ANY`] as a number like others.
struct Tally<'a> {
    pairs: &'a [Pair],
    tags: Vec<u32>,
}

impl<'a> Tally<'a> {
    fn count(sorted: &'a [Pair]) -> Self {
        let mut tags: Vec<u32> = sorted.iter().map(|pair| pair.1).collect();
        tags.sort_unstable();
        Self { pairs: sorted, tags }
    }

    fn all(&self) -> u64 {
        self.pairs.len() as u64
    }

    fn count_of_pair(&self, pair: Pair) -> u64 {
        self.below(|other| *other <= pair) - self.below(|other| *other < pair)
    }

    fn count_of_rank(&self, rank: u32) -> u64 {
        self.below(|other| other.0 <= rank) - self.below(|other| other.0 < rank)
    }

    fn count_of_tag(&self, tag: u32) -> u64 {
        let below = |limit: &dyn Fn(&u32) -> bool| self.tags.partition_point(limit) as u64;
        below(&|other| *other <= tag) - below(&|other| *other < tag)
    }

    fn below(&self, is_below: impl Fn(&Pair) -> bool) -> u64 {
        self.pairs.partition_point(is_below) as u64
    }

    /// Each pair once, with the number of times that it occurs.
    fn classes(&self) -> impl Iterator<Item = (Pair, u64)> {
        self.pairs.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64))
    }
}

/// The messages to a rank, and its receives.
struct Matching<'a> {
    schedule: &'a Schedule,
    rank: u32,
    sends: Tally<'a>,
    receives: Tally<'a>,
}

impl Matching<'_> {
    fn look(&self, findings: &mut Findings) {
        let (sends, receives) = (self.sends.all(), self.receives.all());
        let unreceived = self.unreceived(findings);
        if sends > receives && !unreceived {
            let problem = Problem::MoreSends { sends, receives };
            findings.push(Finding::at_rank(Severity::Error, self.rank, problem));
        }
        let unsent = self.unsent(findings);
        if receives > sends && !unsent {
            let problem = Problem::MoreReceives { sends, receives };
            findings.push(Finding::at_rank(Severity::Error, self.rank, problem));
        }
    }

    /// Finds messages that no receive can take; returns whether there are any.
    fn unreceived(&self, findings: &mut Findings) -> bool {
        let mut any = false;
        for ((from, tag), sends) in self.sends.classes() {
            let Some(surplus) = above(sends, self.takers(from, tag)) else { continue };
            let problem = Problem::SendUnreceived { to: self.rank, tag, sends, surplus };
            self.push(findings, from, (Kind::Send, self.rank, tag), sends - surplus, problem);
            any = true;
        }
        any
    }

    /// Finds receives that no message can reach; returns whether there are any.
    fn unsent(&self, findings: &mut Findings) -> bool {
        let mut any = false;
        for ((from, tag), receives) in self.receives.classes() {
            let Some(surplus) = above(receives, self.givers(from, tag)) else { continue };
            let problem = Problem::ReceiveUnsent { from, tag, receives, surplus };
            self.push(findings, self.rank, (Kind::Recv, from, tag), receives - surplus, problem);
            any = true;
        }
        any
    }

    /// Number of receives that could take a message.
    fn takers(&self, from: u32, tag: u32) -> u64 {
        let receives = &self.receives;
        match tag {
            ANY => receives.count_of_rank(from) + receives.count_of_rank(ANY),
            _ => [(from, tag), (ANY, tag), (from, ANY), (ANY, ANY)]
                .map(|p| receives.count_of_pair(p))
                .iter()
                .sum(),
        }
    }

    /// Number of messages that a receive could take.
    fn givers(&self, from: u32, tag: u32) -> u64 {
        let sends = &self.sends;
        match (from, tag) {
            (ANY, ANY) => sends.all(),
            (ANY, _) => sends.count_of_tag(tag) + sends.count_of_tag(ANY),
            (_, ANY) => sends.count_of_rank(from),
            _ => sends.count_of_pair((from, tag)) + sends.count_of_pair((from, ANY)),
        }
    }

    /// Adds a finding on the operation of `rank` that follows `before` others of the same kind, peer and tag.
    fn push(
        &self,
        findings: &mut Findings,
        rank: u32,
        (kind, peer, tag): (Kind, u32, u32),
        before: u64,
        problem: Problem,
    ) {
        let same = |(_, op): &(usize, &Op)| {
            let shape = &self.schedule.shapes[op.shape as usize];
            shape.kind == kind && shape.tag == tag && op.peer == peer
        };
        // Finding the operation takes a walk over the rank, which is wasted where the finding is only counted.
        let ops =
            findings.has_room(Severity::Error).then(|| self.schedule.rank_list(rank).iter().enumerate());
        let op = ops.and_then(|ops| ops.filter(same).nth(before as usize)).map(|(op, _)| op as u32);
        findings.push(match op {
            Some(op) => Finding::at_op(Severity::Error, rank, op, problem),
            None => Finding::at_rank(Severity::Error, rank, problem),
        });
    }
}

fn above(count: u64, limit: u64) -> Option<u64> {
    count.checked_sub(limit).filter(|surplus| *surplus > 0)
}
