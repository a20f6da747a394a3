//! Messages from their send, or from what probes for them, to their receive.

use rustc_hash::FxHashMap;

use super::event_reader::MessageKey;

/// An index into [`Messages`].
pub(super) type MessageId = u32;

/// An end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Send,
    Receive,
}

/// One message, of which one end or both are known.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub key: MessageKey,
    pub bytes: u64,
    /// The location that sent it, and when.
    pub sent: Option<(u32, i64)>,
    /// When the receive for it began.
    pub begun: Option<i64>,
    /// The locations that are blocked until it is sent, to receive and to probe it, and the one that is blocked until it is received.
    pub receiver_waits: Option<u32>,
    pub prober_waits: Option<u32>,
    pub sender_waits: Option<u32>,
    /// Its send is not in the archive.
    pub lost: bool,
    /// Number of calls that still need it.
    holds: u8,
}

/// All messages that a call still needs.
#[derive(Debug)]
pub(super) struct Messages {
    accounts: usize,
    all: Vec<Message>,
    /// For each message, `accounts` noise-free times of its send and as many of its receive's beginning.
    quiet: Vec<i64>,
    /// For each message, the noise of its sender until the send, by account, and that of its receiver until the receive began.
    noise: Vec<i64>,
    free: Vec<MessageId>,
    /// Messages of which at most one end was processed so far.
    one_ended: FxHashMap<MessageKey, MessageId>,
}

impl Messages {
    pub fn new(accounts: usize) -> Self {
        Self {
            accounts,
            all: Vec::new(),
            quiet: Vec::new(),
            noise: Vec::new(),
            free: Vec::new(),
            one_ended: FxHashMap::default(),
        }
    }

    pub fn get(&self, id: MessageId) -> &Message {
        &self.all[id as usize]
    }

    pub fn get_mut(&mut self, id: MessageId) -> &mut Message {
        &mut self.all[id as usize]
    }

    /// The time of its send on the noise-free timelines.
    pub fn quiet_send(&self, id: MessageId) -> &[i64] {
        let at = id as usize * 2 * self.accounts;
        &self.quiet[at..at + self.accounts]
    }

    /// The time of its receive's beginning on the noise-free timelines.
    pub fn quiet_begin(&self, id: MessageId) -> &[i64] {
        let at = (id as usize * 2 + 1) * self.accounts;
        &self.quiet[at..at + self.accounts]
    }

    /// Keeps the noise of the sender until the send, or of the receiver until the receive began.
    pub fn keep_noise(&mut self, id: MessageId, end: End, local: &[i64]) {
        let at = self.place(id, end);
        self.noise[at..at + self.accounts].copy_from_slice(local);
    }

    /// The noise of the sender or receiver until then.
    pub fn noise(&self, id: MessageId, end: End) -> &[i64] {
        let at = self.place(id, end);
        &self.noise[at..at + self.accounts]
    }

    fn place(&self, id: MessageId, end: End) -> usize {
        (id as usize * 2 + end as usize) * self.accounts
    }

    /// Finds the message if its other end was processed, or adds it.
    fn find_or_add(&mut self, key: MessageKey, bytes: u64) -> MessageId {
        let id = self.one_ended.remove(&key).unwrap_or_else(|| self.add(key, bytes));
        let message = self.get(id);
        // A message that was only probed has no end yet.
        if message.sent.is_none() && message.begun.is_none() {
            self.one_ended.insert(key, id);
        }
        id
    }

    fn add(&mut self, key: MessageKey, bytes: u64) -> MessageId {
        let message = Message {
            key,
            bytes,
            sent: None,
            begun: None,
            receiver_waits: None,
            prober_waits: None,
            sender_waits: None,
            lost: false,
            holds: 1,
        };
        if let Some(id) = self.free.pop() {
            self.all[id as usize] = message;
            return id;
        }
        self.all.push(message);
        self.quiet.resize(self.all.len() * 2 * self.accounts, 0);
        self.noise.resize(self.quiet.len(), 0);
        (self.all.len() - 1) as MessageId
    }

    /// Records a send at `now`; `held` if the sender still needs the message. Returns the locations that waited for it.
    pub fn send(
        &mut self,
        key: MessageKey,
        bytes: u64,
        (location, now): (u32, i64),
        accumulated: &[i64],
        held: bool,
    ) -> (MessageId, [Option<u32>; 2]) {
        let id = self.find_or_add(key, bytes);
        let at = id as usize * 2 * self.accounts;
        for (quiet, accumulated) in self.quiet[at..at + self.accounts].iter_mut().zip(accumulated) {
            *quiet = now - accumulated;
        }
        let message = &mut self.all[id as usize];
        message.sent = Some((location, now));
        message.bytes = bytes;
        message.holds += u8::from(held);
        (id, [message.receiver_waits.take(), message.prober_waits.take()])
    }

    /// Records a receive that began at `begun`. Returns the location that waited for it.
    pub fn receive(&mut self, key: MessageKey, begun: i64, accumulated: &[i64]) -> (MessageId, Option<u32>) {
        let id = self.find_or_add(key, 0);
        let at = (id as usize * 2 + 1) * self.accounts;
        for (quiet, accumulated) in self.quiet[at..at + self.accounts].iter_mut().zip(accumulated) {
            *quiet = begun - accumulated;
        }
        let message = &mut self.all[id as usize];
        message.begun = Some(begun);
        (id, message.sender_waits.take())
    }

    /// The message that a call probes, for which it waits as for one that it receives. It stays for its receive.
    pub fn probe(&mut self, key: MessageKey) -> MessageId {
        let known = self.one_ended.get(&key).copied();
        let id = known.unwrap_or_else(|| self.find_or_add(key, 0));
        let message = &mut self.all[id as usize];
        message.holds = message.holds.saturating_add(1);
        id
    }

    /// Leaves the message of a cancelled receive to the next receive.
    pub fn give_back(&mut self, id: MessageId) {
        let message = &mut self.all[id as usize];
        message.begun = None;
        let key = message.key;
        if message.sent.is_some() {
            self.one_ended.insert(key, id);
        } else if message.holds <= 1 && self.one_ended.remove(&key).is_some() {
            self.free.push(id);
        }
    }

    /// Marks a message as lost: its send is missing.
    pub fn lose(&mut self, id: MessageId) {
        let message = &mut self.all[id as usize];
        message.lost = true;
        self.one_ended.remove(&message.key);
    }

    /// Records that one call does not need the message any more.
    pub fn release(&mut self, id: MessageId) {
        let message = &mut self.all[id as usize];
        message.holds = message.holds.saturating_sub(1);
        let ends = u8::from(message.sent.is_some()) + u8::from(message.begun.is_some());
        if message.holds == 0 && (ends == 2 || message.lost) {
            self.free.push(id);
        } else if message.holds == 1 && ends == 0 && !message.lost {
            // A message that was only probed has nothing left to wait for it.
            self.one_ended.remove(&message.key);
            self.free.push(id);
        }
    }

    /// Messages that were sent and not received: their number, and the first ones by the time of their sends.
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

#[cfg(test)]
mod tests;
