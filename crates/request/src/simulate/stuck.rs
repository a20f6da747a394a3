//! Why a program did not finish, as an error message and for the document.

use quell_sim::goal::Place;
use quell_sim::loggops::{ANY, Stuck, Waiting};

use super::document::{LeftOver, StuckFacts, Unfreed};

/// Maximum number of remaining operations in a message.
const MOST_LINES: usize = 10;
/// Maximum number of ranks of a cycle in a message.
const MOST_RANKS: usize = 8;

/// The (rank, operation) of the send of an unreceived message. The rank is the message's peer.
fn sender(message: &Waiting) -> (u32, u32) {
    (message.peer, message.op)
}

/// The operations whose positions in the text are needed: first the receives, then the sends of unreceived messages.
pub fn operations(stuck: &Stuck) -> Vec<(u32, u32)> {
    let receives = stuck.receives.iter().map(|waiting| (waiting.rank, waiting.op));
    receives.chain(stuck.messages.iter().map(sender)).collect()
}

/// Converts to the document's form. `places` holds the positions of [`operations`], or is empty.
pub fn facts(stuck: &Stuck, places: &[Option<Place>]) -> StuckFacts {
    let left_over = |(index, waiting): (usize, &Waiting)| {
        let place = places.get(index).cloned().flatten();
        LeftOver {
            rank: waiting.rank,
            operation: waiting.op,
            line: place.as_ref().map(|place| place.line),
            label: place.and_then(|place| place.label),
            peer: waiting.peer(),
            tag: (waiting.tag != ANY).then_some(waiting.tag),
            bytes: waiting.size,
        }
    };
    let receives = stuck.receives.iter().enumerate().map(left_over).collect();
    let sends = stuck.receives.len()..;
    let messages = sends.zip(&stuck.messages).map(left_over).collect();
    let unfreed = stuck.unfreed.iter().map(|&(rank, operations)| Unfreed { rank, operations });
    StuckFacts {
        cycle: stuck.cycle.clone(),
        receives,
        receives_total: stuck.receives_total,
        messages,
        messages_total: stuck.messages_total,
        unfreed: unfreed.collect(),
        unfreed_total: stuck.unfreed_total,
    }
}

/// The error message: the reason in a sentence, then what remained, one per line.
pub fn message(stuck: &StuckFacts) -> String {
    let receives = stuck.receives.iter().map(receive);
    let messages = stuck.messages.iter().map(unreceived);
    let unfreed = stuck.unfreed.iter().map(|one| {
        format!("rank {}: {} never became free to start", one.rank, count(one.operations, "operation"))
    });
    let lines: Vec<String> = receives.chain(messages).chain(unfreed).take(MOST_LINES).collect();
    let more = left_out(stuck, lines.len()).map(|more| format!("and {more} more"));
    let lines: String = lines.into_iter().chain(more).map(|line| format!("\n  {line}")).collect();
    format!("the program does not end: {}{lines}", reason(stuck))
}

/// How many of the remaining operations the first `lines` lines leave out. A line about operations that never became ready covers all of
/// its rank.
fn left_out(stuck: &StuckFacts, lines: usize) -> Option<u64> {
    let ends = lines.min(stuck.receives.len() + stuck.messages.len());
    let unfreed: u64 = stuck.unfreed.iter().take(lines - ends).map(|one| one.operations).sum();
    let all = stuck.receives_total.saturating_add(stuck.messages_total).saturating_add(stuck.unfreed_total);
    all.checked_sub(ends as u64 + unfreed).filter(|more| *more > 0)
}

fn reason(stuck: &StuckFacts) -> String {
    if let [first, rest @ ..] = stuck.cycle.as_slice() {
        let shown = rest.iter().take(MOST_RANKS).map(|rank| format!("rank {rank}, which waits for "));
        let left_out = rest.len().saturating_sub(MOST_RANKS);
        let gap = (left_out > 0).then(|| format!("{left_out} more, the last of which waits for "));
        let chain: String = shown.chain(gap).collect();
        return format!("rank {first} waits for {chain}rank {first}");
    }
    match (stuck.receives_total, stuck.messages_total, stuck.unfreed_total) {
        (0, 0, unfreed) => format!("{} never became free to start", count(unfreed, "operation")),
        (0, messages, _) => format!("no rank received {}", count(messages, "message")),
        (receives, 0, _) => format!("no message came for {}", count(receives, "receive")),
        (receives, messages, _) => format!(
            "no message came for {}, and no rank received {}",
            count(receives, "receive"),
            count(messages, "message")
        ),
    }
}

fn receive(one: &LeftOver) -> String {
    let from = one.peer.map_or_else(|| "any rank".into(), |rank| format!("rank {rank}"));
    format!("rank {}, {}: waits for {} from {from}, {}", one.rank, operation(one), bytes(one), tag(one))
}

fn unreceived(one: &LeftOver) -> String {
    let (rank, bytes, tag) = (one.rank, bytes(one), tag(one));
    match one.peer {
        Some(sender) => format!(
            "rank {sender}, {}: sent {bytes} to rank {rank}, {tag}, which never received it",
            operation(one)
        ),
        None => format!("rank {rank} has not received {bytes}, {tag}"),
    }
}

/// An operation by its number from 1, its label and its line.
fn operation(one: &LeftOver) -> String {
    let number = u64::from(one.operation) + 1;
    match (&one.label, one.line) {
        (Some(label), Some(line)) => format!("operation {number} (`{label}`, line {line})"),
        (None, Some(line)) => format!("operation {number} (line {line})"),
        _ => format!("operation {number}"),
    }
}

fn bytes(one: &LeftOver) -> String {
    count(one.bytes, "byte")
}

fn tag(one: &LeftOver) -> String {
    one.tag.map_or_else(|| "any tag".into(), |tag| format!("tag {tag}"))
}

fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
