//! Messages between their send and their receive.

use rustc_hash::FxHashMap;

use super::event_reader::MessageKey;

/// A place in [`Messages`].
pub(super) type MessageId = u32;

/// One message, of which the one end or both are known.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub key: MessageKey,
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

/// All messages that somebody will still ask for.
#[derive(Debug)]
pub(super) struct Messages {
    lanes: usize,
    all: Vec<Message>,
    /// For each message, `lanes` quiet times of its send and as many of its receive's beginning.
    quiet: Vec<i64>,
    free: Vec<MessageId>,
    /// Those of which only one end was there yet.
    one_ended: FxHashMap<MessageKey, MessageId>,
}

impl Messages {
    pub fn new(lanes: usize) -> Self {
        Self { lanes, all: Vec::new(), quiet: Vec::new(), free: Vec::new(), one_ended: FxHashMap::default() }
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

    /// The message, of which the other end may have been there.
    fn find_or_add(&mut self, key: MessageKey, bytes: u64) -> MessageId {
        if let Some(id) = self.one_ended.remove(&key) {
            return id;
        }
        let id = self.add(key, bytes);
        self.one_ended.insert(key, id);
        id
    }

    fn add(&mut self, key: MessageKey, bytes: u64) -> MessageId {
        let message = Message {
            key,
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
        key: MessageKey,
        bytes: u64,
        (location, now): (u32, i64),
        accumulated: &[i64],
        held: bool,
    ) -> (MessageId, Option<u32>) {
        let id = self.find_or_add(key, bytes);
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

    /// A receive of it began at `begun`. Gives the location that waited for that.
    pub fn receive(&mut self, key: MessageKey, begun: i64, accumulated: &[i64]) -> (MessageId, Option<u32>) {
        let id = self.find_or_add(key, 0);
        let at = (id as usize * 2 + 1) * self.lanes;
        for (quiet, accumulated) in self.quiet[at..at + self.lanes].iter_mut().zip(accumulated) {
            *quiet = begun - accumulated;
        }
        let message = &mut self.all[id as usize];
        message.begun = Some(begun);
        (id, message.sender_waits.take())
    }

    /// The message, if it was sent and not received.
    pub fn sent(&self, key: MessageKey) -> Option<MessageId> {
        self.one_ended.get(&key).copied().filter(|id| self.get(*id).sent.is_some())
    }

    /// A receive that was given up leaves its message to the next.
    pub fn give_back(&mut self, id: MessageId) {
        let message = &mut self.all[id as usize];
        message.begun = None;
        let key = message.key;
        if message.sent.is_some() {
            self.one_ended.insert(key, id);
        } else if self.one_ended.remove(&key).is_some() {
            self.free.push(id);
        }
    }

    /// Nobody will send what a receive waits for.
    pub fn lose(&mut self, id: MessageId) {
        let message = &mut self.all[id as usize];
        message.lost = true;
        self.one_ended.remove(&message.key);
    }

    /// Somebody will not ask for it again.
    pub fn release(&mut self, id: MessageId) {
        let message = &mut self.all[id as usize];
        message.holds = message.holds.saturating_sub(1);
        let has_both_ends = message.sent.is_some() && message.begun.is_some();
        if message.holds == 0 && (has_both_ends || message.lost) {
            self.free.push(id);
        }
    }

    /// Messages that were sent and not received: how many, and the first by the time of their sends.
    pub fn left(&self, most: usize) -> (u64, Vec<&Message>) {
        let mut left: Vec<&Message> = self
            .one_ended
            .values()
            .map(|id| self.get(*id))
            .filter(|message| message.sent.is_some())
            .collect();
        let count = left.len() as u64;
        left.sort_by_key(|message| (message.sent, message.key.channel.tag, message.key));
        left.truncate(most);
        (count, left)
    }
}
