//! Messages between their send and their receive: who sent the one that was received, by MPI's rule that messages of one sender,
//! receiver, communicator and tag are received in the order in which they were sent.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// Which messages come in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Channel {
    pub comm: u32,
    /// Ranks in the world.
    pub from: u32,
    pub to: u32,
    pub tag: u32,
}

/// So many channels at least are kept.
const SWEEP: usize = 1 << 16;

/// A place in [`Messages`].
pub(super) type MessageId = u32;

/// One message, of which the one end or both are known.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub channel: Channel,
    pub bytes: u64,
    /// The location that sent it, and when.
    pub sent: Option<(u32, i64)>,
    /// When the receive for it began.
    pub begun: Option<i64>,
    /// The location that cannot go on before it is sent, and that which cannot before it is received.
    pub receiver_waits: Option<u32>,
    pub sender_waits: Option<u32>,
    /// Its send is not in the archive.
    pub lost: bool,
    /// How many will still ask for it.
    holds: u8,
}

/// The ends that have not met.
#[derive(Debug, Default)]
struct Ends {
    sends: VecDeque<MessageId>,
    receives: VecDeque<MessageId>,
}

/// All messages that somebody will still ask for.
#[derive(Debug)]
pub(super) struct Messages {
    lanes: usize,
    all: Vec<Message>,
    /// For each message, `lanes` quiet times of its send and as many of its receive's beginning.
    quiet: Vec<i64>,
    free: Vec<MessageId>,
    ends: FxHashMap<Channel, Ends>,
    /// When there are so many channels, those that are idle are forgotten.
    sweep_at: usize,
}

impl Messages {
    pub fn new(lanes: usize) -> Self {
        Self {
            lanes,
            all: Vec::new(),
            quiet: Vec::new(),
            free: Vec::new(),
            ends: FxHashMap::default(),
            sweep_at: SWEEP,
        }
    }

    pub fn get(&self, id: MessageId) -> &Message {
        &self.all[id as usize]
    }

    pub fn get_mut(&mut self, id: MessageId) -> &mut Message {
        &mut self.all[id as usize]
    }

    /// When it was sent on the quiet time lines.
    pub fn quiet_send(&self, id: MessageId) -> &[i64] {
        let at = id as usize * 2 * self.lanes;
        &self.quiet[at..at + self.lanes]
    }

    /// When its receive began on the quiet time lines.
    pub fn quiet_begin(&self, id: MessageId) -> &[i64] {
        let at = (id as usize * 2 + 1) * self.lanes;
        &self.quiet[at..at + self.lanes]
    }

    fn make(&mut self, channel: Channel, bytes: u64) -> MessageId {
        let message = Message {
            channel,
            bytes,
            sent: None,
            begun: None,
            receiver_waits: None,
            sender_waits: None,
            lost: false,
            holds: 1,
        };
        if let Some(id) = self.free.pop() {
            self.all[id as usize] = message;
            return id;
        }
        self.all.push(message);
        self.quiet.resize(self.all.len() * 2 * self.lanes, 0);
        (self.all.len() - 1) as MessageId
    }

    /// A location sends at `now`; `held` if the sender will ask for the message. Gives the location that waited for it.
    pub fn send(
        &mut self,
        channel: Channel,
        bytes: u64,
        (location, now): (u32, i64),
        accumulated: &[i64],
        held: bool,
    ) -> (MessageId, Option<u32>) {
        self.sweep();
        let met = self.ends.get_mut(&channel).and_then(|ends| ends.receives.pop_front());
        let id = met.unwrap_or_else(|| {
            let id = self.make(channel, bytes);
            self.ends.entry(channel).or_default().sends.push_back(id);
            id
        });
        let at = id as usize * 2 * self.lanes;
        for (quiet, accumulated) in self.quiet[at..at + self.lanes].iter_mut().zip(accumulated) {
            *quiet = now - accumulated;
        }
        let message = &mut self.all[id as usize];
        message.sent = Some((location, now));
        message.bytes = bytes;
        message.holds += u8::from(held);
        (id, message.receiver_waits.take())
    }

    /// A receive that began at `begun` takes the channel's next message. Gives the location that waited for that.
    pub fn receive(&mut self, channel: Channel, begun: i64, accumulated: &[i64]) -> (MessageId, Option<u32>) {
        let met = self.ends.get_mut(&channel).and_then(|ends| ends.sends.pop_front());
        let id = met.unwrap_or_else(|| {
            let id = self.make(channel, 0);
            self.ends.entry(channel).or_default().receives.push_back(id);
            id
        });
        let at = (id as usize * 2 + 1) * self.lanes;
        for (quiet, accumulated) in self.quiet[at..at + self.lanes].iter_mut().zip(accumulated) {
            *quiet = begun - accumulated;
        }
        let message = &mut self.all[id as usize];
        message.begun = Some(begun);
        (id, message.sender_waits.take())
    }

    /// The next message that a receive would take, if it was sent.
    pub fn next(&self, channel: Channel) -> Option<MessageId> {
        self.ends.get(&channel)?.sends.front().copied()
    }

    /// A receive that was given up leaves its message to the next.
    pub fn give_back(&mut self, id: MessageId) {
        let Some(ends) = self.ends.get_mut(&self.all[id as usize].channel) else { return };
        let message = &mut self.all[id as usize];
        message.begun = None;
        if message.sent.is_some() {
            ends.sends.push_front(id);
        } else {
            ends.receives.retain(|other| *other != id);
            self.free.push(id);
        }
    }

    /// Nobody will send what a receive waits for.
    pub fn lose(&mut self, id: MessageId) {
        let message = &mut self.all[id as usize];
        message.lost = true;
        if let Some(ends) = self.ends.get_mut(&message.channel) {
            ends.receives.retain(|other| *other != id);
        }
    }

    /// Forgets channels on which nothing is under way, once there are many: a program may take a new tag for each message.
    fn sweep(&mut self) {
        if self.ends.len() >= self.sweep_at {
            self.ends.retain(|_, ends| !ends.sends.is_empty() || !ends.receives.is_empty());
            self.sweep_at = (2 * self.ends.len()).max(SWEEP);
        }
    }

    /// Somebody will not ask for it again.
    pub fn release(&mut self, id: MessageId) {
        let message = &mut self.all[id as usize];
        message.holds = message.holds.saturating_sub(1);
        let met = message.sent.is_some() && message.begun.is_some();
        if message.holds == 0 && (met || message.lost) {
            self.free.push(id);
        }
    }

    /// Messages that were sent and not received: how many, and the first by the time of their sends.
    pub fn left(&self, most: usize) -> (u64, Vec<&Message>) {
        let mut left: Vec<&Message> =
            self.ends.values().flat_map(|ends| &ends.sends).map(|id| self.get(*id)).collect();
        let count = left.len() as u64;
        left.sort_by_key(|message| (message.sent, message.channel.tag));
        left.truncate(most);
        (count, left)
    }
}
