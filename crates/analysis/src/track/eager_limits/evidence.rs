//! What the sends of a run show about its eager limits.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{EagerLimits, Learned, MeasuredLimits, WAYS, Way};
use crate::track::event_reader::{MessageKey, OperationId};

/// Minimum number of sends that waited for a limit below them.
const FEWEST_WAITS: u64 = 3;
/// Where a call waits for several things, a receiver counts as the last only if it came this long after the others, in ns, and this many
/// times as long as the call then took to end. A message of the others, on its way until then, is shorter.
const CLEARLY_LATER_NS: i64 = 20_000;
const CLEARLY_LATER_TAILS: i64 = 4;
/// Sizes that share a class differ by an eighth at most; the classes end at powers of two, as limits do.
const CLASSES_OF_AN_OCTAVE: u32 = 3;

/// A send, as its sender knows it. Times in ns.
#[derive(Clone, Copy, Debug)]
pub(in crate::track) struct Sent {
    pub key: MessageKey,
    pub way: Way,
    pub bytes: u64,
    pub entered: i64,
}

/// The call of a blocking send, or a call that completed sends. Times in ns.
#[derive(Clone, Copy, Debug)]
pub(in crate::track) struct Left {
    pub entered: i64,
    pub left: i64,
    pub others: Others,
}

/// What a call may have waited for other than the receivers of its sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::track) enum Others {
    Nothing,
    /// For messages, of which the last was sent then.
    Message(i64),
    /// It polled, or waited for something whose time does not show.
    Unknown,
}

/// How a receiver came to MPI. Times in ns.
#[derive(Clone, Copy, Debug)]
pub(in crate::track) struct Came {
    /// When it entered the call that posted the receive, or the first of those that posted something and followed one another at once.
    pub entered: i64,
    /// When its call before that had ended: until then it may have advanced messages that it was not receiving yet.
    pub before: i64,
}

/// One end of a message whose other end was not processed yet. A receive whose posting is unknown shows nothing.
#[derive(Clone, Copy, Debug)]
enum End {
    /// A send, and the number of the call that it ended in.
    Sent(Sent, u64),
    Came(Option<Came>),
}

/// A call that ended sends.
#[derive(Clone, Copy, Debug)]
struct Call {
    call: Left,
    /// Number of its sends, and of those whose receivers are not known yet.
    sends: usize,
    open: usize,
    /// When the last of the receivers came that came before it ended, with the largest send to that receiver if it shows anything.
    last: Option<(i64, Option<Sent>)>,
    /// When the one before came.
    before_last: i64,
}

impl Call {
    /// Notes a receiver that came before the call ended.
    fn came(&mut self, at: i64, shown: Option<Sent>) {
        match &mut self.last {
            Some((last, largest)) if *last == at => {
                let bytes = |sent: &Option<Sent>| sent.map_or(0, |sent| sent.bytes);
                if bytes(&shown) > bytes(largest) {
                    *largest = shown;
                }
            }
            Some((last, _)) if *last > at => self.before_last = self.before_last.max(at),
            last => {
                self.before_last = last.map_or(self.before_last, |(last, _)| last);
                *last = Some((at, shown));
            }
        }
    }

    /// The send whose receiver the call waited for, if that is what it waited for last.
    fn waited(&self) -> Option<Sent> {
        let (at, sent) = self.last?;
        let others = match self.call.others {
            Others::Unknown => return None,
            Others::Nothing if self.sends == 1 => return sent.filter(|_| at > self.call.entered),
            Others::Nothing => self.before_last,
            Others::Message(sent) => self.before_last.max(sent),
        };
        let later = at.saturating_sub(others.max(self.call.entered));
        let tail = self.call.left.saturating_sub(at);
        sent.filter(|_| later >= CLEARLY_LATER_NS.max(tail.saturating_mul(CLEARLY_LATER_TAILS)))
    }
}

/// Messages of a class of sizes.
#[derive(Clone, Copy, Debug)]
struct Class {
    least: u64,
    most: u64,
    messages: u64,
    /// Number of sends that ended without their receiver, and of those that ended with it.
    eager: u64,
    waited: u64,
}

/// What a run's sends show about its eager limits.
#[derive(Debug, Default)]
pub(in crate::track) struct Evidence {
    ends: FxHashMap<MessageKey, End>,
    /// Calls that ended before all their receivers were known, by number.
    calls: FxHashMap<u64, Call>,
    numbers: u64,
    /// Non-blocking sends that are not complete.
    pub pending: FxHashMap<OperationId, Sent>,
    classes: [BTreeMap<u64, Class>; 2],
}

/// The class of a size: the largest size in it.
fn class_of(bytes: u64) -> u64 {
    let below = bytes.saturating_sub(1);
    let shift = (u64::BITS - below.leading_zeros()).saturating_sub(CLASSES_OF_AN_OCTAVE + 1);
    (((below >> shift) + 1) << shift).max(1)
}

impl Evidence {
    /// Notes the end of a call that made blocking sends, or completed others.
    pub fn left(&mut self, sends: &[Sent], call: Left) {
        let mut ended = Call { call, sends: sends.len(), open: 0, last: None, before_last: i64::MIN };
        for sent in sends {
            match self.ends.remove(&sent.key) {
                Some(End::Came(came)) => self.judge(&mut ended, *sent, came),
                _ => {
                    ended.open += 1;
                    self.ends.insert(sent.key, End::Sent(*sent, self.numbers));
                }
            }
        }
        if ended.open == 0 {
            self.conclude(&ended);
        } else {
            self.calls.insert(self.numbers, ended);
            self.numbers += 1;
        }
    }

    /// Notes that a receive was posted.
    pub fn came(&mut self, key: MessageKey, came: Option<Came>) {
        let Some(End::Sent(sent, number)) = self.ends.remove(&key) else {
            self.ends.insert(key, End::Came(came));
            return;
        };
        let Some(mut call) = self.calls.remove(&number) else { return };
        self.judge(&mut call, sent, came);
        call.open -= 1;
        if call.open == 0 {
            self.conclude(&call);
        } else {
            self.calls.insert(number, call);
        }
    }

    fn judge(&mut self, ended: &mut Call, sent: Sent, came: Option<Came>) {
        let class = self.class(&sent);
        class.least = class.least.min(sent.bytes);
        class.most = class.most.max(sent.bytes);
        class.messages += 1;
        let Some(came) = came else {
            ended.call.others = Others::Unknown;
            return;
        };
        // While the receiver was in MPI, the message may have advanced without its receive.
        let shows = came.before < sent.entered && came.entered > sent.entered;
        if ended.call.left >= came.entered {
            ended.came(came.entered, shows.then_some(sent));
        } else if shows {
            class.eager += 1;
        }
    }

    fn conclude(&mut self, call: &Call) {
        if let Some(sent) = call.waited() {
            self.class(&sent).waited += 1;
        }
    }

    fn class(&mut self, sent: &Sent) -> &mut Class {
        let new = Class { least: sent.bytes, most: sent.bytes, messages: 0, eager: 0, waited: 0 };
        self.classes[sent.way as usize].entry(class_of(sent.bytes)).or_insert(new)
    }

    /// The limits that contradict the fewest sends; where these show nothing, the measured ones.
    pub fn limits(&self, measured: MeasuredLimits) -> EagerLimits {
        EagerLimits { given: None, measured, ways: [0, 1].map(|way| learned(&self.classes[way])) }
    }

    /// Whether two sets of limits disagree on a message of the run.
    pub fn distinguishes(&self, one: &EagerLimits, other: &EagerLimits) -> bool {
        WAYS.iter().any(|(way, _)| {
            let [one, other] = [one, other].map(|limits| limits.limit(*way));
            let (low, high) = (one.min(other), one.max(other));
            self.classes[*way as usize]
                .values()
                .any(|class| class.most > low && class.least <= high && low < high)
        })
    }
}

fn learned(classes: &BTreeMap<u64, Class>) -> Learned {
    let classes: Vec<&Class> = classes.values().collect();
    let messages = classes.iter().map(|class| class.messages).sum();
    let sends = classes.iter().map(|class| class.eager + class.waited).sum();
    // Eager are the classes before `cut`. Of equally good cuts the last: what shows nothing counts as eager.
    let mut wrong: u64 = classes.iter().map(|class| class.eager).sum();
    let mut best = (wrong, 0);
    for (place, class) in classes.iter().enumerate() {
        wrong = wrong - class.eager + class.waited;
        best = if wrong <= best.0 { (wrong, place + 1) } else { best };
    }
    let (before, after) = classes.split_at(best.1);
    let waits: u64 = after.iter().map(|class| class.waited).sum();
    let waiting = after.iter().find(|class| class.waited > 0).filter(|_| waits >= FEWEST_WAITS);
    let eager = before.iter().rev().find(|class| class.eager > 0);
    Learned {
        messages,
        sends,
        eager: eager.map(|class| class.most),
        waiting: waiting.map(|class| class.least),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ASSUMED;
    use super::*;
    use crate::track::event_reader::Channel;

    #[test]
    fn classes_end_at_powers_of_two() {
        for power in 1..40 {
            let size = 1 << power;
            assert_eq!(class_of(size), size);
            assert!(class_of(size + 1) > size);
        }
        for (size, class) in
            [(0, 1), (1, 1), (2, 2), (15, 15), (16, 16), (255, 256), (257, 288), (1000, 1024), (4055, 4096)]
        {
            assert_eq!(class_of(size), class, "{size}");
        }
        for size in 1..5000 {
            assert!(class_of(size) >= size && class_of(size) <= size + size / 8, "{size}");
        }
    }

    /// Classes of sizes, each with a number of eager sends and of sends that waited.
    fn limit(classes: &[(u64, u64, u64)]) -> (u64, bool, Option<u64>, Option<u64>) {
        let class = |&(bytes, eager, waited): &(u64, u64, u64)| {
            (
                class_of(bytes),
                Class { least: bytes, most: bytes, messages: 1 + eager + waited, eager, waited },
            )
        };
        let learned = learned(&classes.iter().map(class).collect());
        (learned.limit(ASSUMED), learned.is_known(ASSUMED), learned.eager, learned.waiting)
    }

    #[test]
    fn a_limit_is_between_what_was_eager_and_what_waited() {
        assert_eq!(limit(&[]), (4096, false, None, None));
        assert_eq!(limit(&[(8, 5, 0)]), (4096, false, Some(8), None), "it shows little");
        assert_eq!(limit(&[(256, 5, 0), (257, 0, 3)]), (256, true, Some(256), Some(257)));
        assert_eq!(limit(&[(1024, 0, 9)]), (1023, true, None, Some(1024)));
        assert_eq!(limit(&[(8, 5, 0), (65536, 4, 0)]), (65536, true, Some(65536), None));
        assert_eq!(limit(&[(1024, 5, 0), (8192, 0, 5)]), (4096, true, Some(1024), Some(8192)));
        assert_eq!(limit(&[(16384, 5, 0), (65536, 0, 5)]), (16384, true, Some(16384), Some(65536)));
    }

    #[test]
    fn few_contradictions_do_not_move_a_limit() {
        assert_eq!(limit(&[(1024, 0, 2)]), (4096, false, None, None), "two may be chance");
        // By chance a receiver may come during an eager send, and clocks may disagree.
        assert_eq!(limit(&[(64, 90, 4), (512, 2, 80)]), (511, true, Some(64), Some(512)));
        assert_eq!(limit(&[(1024, 90, 40), (2048, 30, 2)]), (4096, false, Some(2048), None));
    }

    const KEY: MessageKey = MessageKey { channel: Channel { comm: 0, from: 0, to: 1, tag: 0 }, number: 0 };

    const SENT: Sent = Sent { key: KEY, way: Way::DifferentHosts, bytes: 1000, entered: 100 };

    /// The number of messages, of eager sends and of sends that waited, whichever end is known first.
    fn shows(left: Left, came: Option<Came>) -> (u64, u64, u64) {
        let mut sent_first = Evidence::default();
        sent_first.left(&[SENT], left);
        sent_first.came(KEY, came);
        let mut came_first = Evidence::default();
        came_first.came(KEY, came);
        came_first.left(&[SENT], left);
        let [one, other] = [sent_first, came_first].map(|evidence| {
            assert!(evidence.ends.is_empty() && evidence.calls.is_empty() && evidence.classes[0].is_empty());
            let class = evidence.classes[1][&1024];
            assert_eq!((class.least, class.most), (1000, 1000));
            (class.messages, class.eager, class.waited)
        });
        assert_eq!(one, other);
        one
    }

    #[test]
    fn a_send_shows_whether_it_waited_if_its_receiver_came_during_it_or_later() {
        let left = Left { entered: 100, left: 150, others: Others::Nothing };
        let came = |entered, before| Some(Came { entered, before });
        let (eager, waited, nothing) = ((1, 1, 0), (1, 0, 1), (1, 0, 0));
        assert_eq!(shows(left, came(151, 50)), eager, "it ended before its receiver came");
        assert_eq!(shows(left, came(150, 50)), waited);
        assert_eq!(shows(left, came(101, 50)), waited);
        assert_eq!(shows(left, came(100, 50)), nothing, "the receiver was there");
        assert_eq!(shows(left, came(120, 99)), waited);
        assert_eq!(shows(left, came(120, 100)), nothing, "the receiver was in MPI");
        assert_eq!(shows(left, None), nothing);
        for others in [Others::Unknown, Others::Message(50)] {
            let among_others = Left { others, ..left };
            assert_eq!(shows(among_others, came(120, 50)), nothing, "it is not clearly the last");
            assert_eq!(shows(among_others, came(151, 50)), eager);
        }
        // The call that completed it began later, and the receiver came before.
        let completed = Left { entered: 120, ..left };
        assert_eq!(shows(completed, came(120, 50)), nothing);
        assert_eq!(shows(completed, came(121, 50)), waited);
    }

    /// Whether the send of this many bytes is found to have waited, in a call from 0 to 110 us that waited for a message sent at `message` us and
    /// for the receivers of 8 B and 1,000 B, which came at these times.
    fn waited(message: i64, came: [i64; 2]) -> Vec<u64> {
        let number = |number| MessageKey { number, ..KEY };
        let sends =
            [(0, 8), (1, 1000)].map(|(at, bytes)| Sent { key: number(at), bytes, entered: 0, ..SENT });
        let left = Left { entered: 0, left: 110_000, others: Others::Message(message * 1000) };
        let mut evidence = Evidence::default();
        evidence.left(&sends, left);
        for (at, came) in (0..).zip(came) {
            evidence.came(number(at), Some(Came { entered: came * 1000, before: -1 }));
        }
        assert!(evidence.ends.is_empty() && evidence.calls.is_empty());
        let classes = evidence.classes[1].values();
        classes.filter(|class| class.waited > 0).map(|class| class.most).collect()
    }

    #[test]
    fn of_several_causes_of_a_call_the_last_shows_that_it_waited() {
        assert_eq!(waited(0, [10, 105]), [1000]);
        assert_eq!(waited(0, [105, 10]), [8]);
        assert_eq!(waited(0, [105, 105]), [1000], "of one receiver's the largest");
        assert_eq!(waited(0, [105, 111]), [8], "the other did not wait");
        assert_eq!(waited(0, [111, 112]), [] as [u64; 0], "neither waited");
        assert_eq!(waited(106, [10, 105]), [] as [u64; 0], "it waited for the message");
        assert_eq!(waited(90, [10, 105]), [] as [u64; 0], "the message may have been on its way");
        assert_eq!(waited(0, [10, 80]), [] as [u64; 0], "something else made it last");
        assert_eq!(waited(0, [60, 84]), [] as [u64; 0], "no clear last");
    }

    #[test]
    fn limits_differ_only_if_a_message_is_on_different_sides_of_them() {
        let limits = |limit: u64| {
            let learned = Learned { waiting: Some(limit + 1), ..Learned::default() };
            EagerLimits {
                ways: [Learned::default(), learned],
                ..EagerLimits::new(None, MeasuredLimits::default())
            }
        };
        let differ = |sizes: &[u64], one: u64, other: u64| {
            let mut evidence = Evidence::default();
            for bytes in sizes {
                evidence.left(
                    &[Sent { bytes: *bytes, ..SENT }],
                    Left { entered: 0, left: 0, others: Others::Nothing },
                );
                evidence.came(KEY, None);
            }
            let both = [(one, other), (other, one)]
                .map(|(one, other)| evidence.distinguishes(&limits(one), &limits(other)));
            assert_eq!(both[0], both[1]);
            both[0]
        };
        assert!(differ(&[1001], 1000, 4096) && differ(&[4096], 1000, 4096));
        assert!(!differ(&[1000], 1000, 4096), "it is eager by both");
        assert!(!differ(&[4097], 1000, 4096), "it waits by both");
        assert!(!differ(&[980, 1010], 1000, 1000), "they are equal");
        assert!(!differ(&[], 1000, 4096));
    }
}
