//! Matches sends with receives. Messages with one communicator, sender, receiver and tag do not overtake each other: sends match
//! receives in the order in which both were posted (MPI 4.0, 3.5; for non-blocking ones the order of the calls that begin them, 3.7.4). So
//! each end counts its messages, and the n-th send matches the n-th receive.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

/// Identifies messages that are ordered among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::track) struct Channel {
    pub comm: u32,
    /// Ranks in `MPI_COMM_WORLD`.
    pub from: u32,
    pub to: u32,
    pub tag: u32,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::track) struct MessageKey {
    pub channel: Channel,
    /// Its number among the channel's messages; unique in a channel.
    pub number: u64,
}

/// Minimum number of channels before idle ones are dropped.
const SWEEP: usize = 1 << 16;

/// The numbers of the next send and the next receive of a channel.
#[derive(Clone, Copy, Debug)]
struct Next {
    send: u64,
    receive: u64,
}

/// Counts both ends of all messages.
#[derive(Debug, Default)]
pub(super) struct Channels {
    next: FxHashMap<Channel, Next>,
    /// Numbers of receives that were cancelled after they had been counted.
    returned: FxHashMap<Channel, BTreeSet<u64>>,
    /// The number of a new channel's first message: above all numbers of dropped channels.
    first: u64,
    /// Number of channels at which idle ones are dropped.
    sweep_at: usize,
}

impl Channels {
    pub fn send(&mut self, channel: Channel) -> MessageKey {
        let next = self.next_of(channel);
        next.send += 1;
        MessageKey { channel, number: next.send - 1 }
    }

    pub fn receive(&mut self, channel: Channel) -> MessageKey {
        if let Some(number) = self.returned.get_mut(&channel).and_then(BTreeSet::pop_first) {
            return MessageKey { channel, number };
        }
        let next = self.next_of(channel);
        next.receive += 1;
        MessageKey { channel, number: next.receive - 1 }
    }

    /// The message that the next receive will match.
    pub fn probe(&self, channel: Channel) -> MessageKey {
        let returned = self.returned.get(&channel).and_then(BTreeSet::first).copied();
        let number = returned.or_else(|| self.next.get(&channel).map(|next| next.receive));
        MessageKey { channel, number: number.unwrap_or(self.first) }
    }

    /// Returns the message of a cancelled receive to the channel: the next receive gets it.
    pub fn give_back(&mut self, message: MessageKey) {
        self.returned.entry(message.channel).or_default().insert(message.number);
    }

    fn next_of(&mut self, channel: Channel) -> &mut Next {
        if self.next.len() >= self.sweep_at.max(SWEEP) {
            self.forget_idle();
        }
        let first = self.first;
        self.next.entry(channel).or_insert(Next { send: first, receive: first })
    }

    /// Drops channels without pending messages, because a program may use a new tag for each message.
    fn forget_idle(&mut self) {
        self.returned.retain(|_, numbers| !numbers.is_empty());
        let (returned, first) = (&self.returned, &mut self.first);
        self.next.retain(|channel, next| {
            let idle = next.send == next.receive && !returned.contains_key(channel);
            *first = if idle { next.send.max(*first) } else { *first };
            !idle
        });
        self.sweep_at = 2 * self.next.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNEL: Channel = Channel { comm: 0, from: 0, to: 1, tag: 7 };

    #[test]
    fn a_receive_that_was_given_up_leaves_its_message_to_the_next() {
        let mut channels = Channels::default();
        let sent: Vec<MessageKey> = (0..2).map(|_| channels.send(CHANNEL)).collect();
        let given_up = channels.receive(CHANNEL);
        channels.give_back(given_up);
        assert_eq!(channels.probe(CHANNEL), sent[0]);
        assert_eq!([channels.receive(CHANNEL), channels.receive(CHANNEL)], [sent[0], sent[1]]);
    }

    #[test]
    fn idle_channels_are_forgotten_and_no_number_comes_twice() {
        let mut channels = Channels::default();
        let before = (channels.send(CHANNEL), channels.receive(CHANNEL));
        let waiting = channels.send(Channel { tag: 8, ..CHANNEL });
        for tag in 0..2 * SWEEP as u32 {
            channels.send(Channel { comm: 1, tag, ..CHANNEL });
            channels.receive(Channel { comm: 1, tag, ..CHANNEL });
        }
        assert!(channels.next.len() <= SWEEP + 1);
        assert_eq!(channels.receive(Channel { tag: 8, ..CHANNEL }), waiting);
        let after = (channels.send(CHANNEL), channels.receive(CHANNEL));
        assert!(before.0 == before.1 && after.0 == after.1 && after.0 != before.0);
    }

    #[test]
    fn a_channel_whose_message_was_given_back_is_not_forgotten() {
        let mut channels = Channels::default();
        let waits = Channel { tag: 8, ..CHANNEL };
        let [given_up, idle] = [waits, CHANNEL].map(|channel| {
            channels.send(channel);
            channels.receive(channel)
        });
        channels.give_back(given_up);
        // Of this one a message was given back and received.
        let over = Channel { tag: 9, ..CHANNEL };
        channels.send(over);
        let received = channels.receive(over);
        channels.give_back(received);
        channels.receive(over);
        channels.forget_idle();
        assert_eq!(channels.next.keys().collect::<Vec<_>>(), [&waits]);
        assert_eq!((channels.returned.len(), channels.sweep_at, channels.first), (1, 2, 1));
        assert_eq!(channels.probe(waits), given_up);
        assert_eq!(channels.receive(waits), given_up);
        assert_eq!(channels.probe(CHANNEL).number, idle.number + 1, "no number comes twice");
        assert_eq!(channels.send(CHANNEL).number, idle.number + 1);
    }
}
