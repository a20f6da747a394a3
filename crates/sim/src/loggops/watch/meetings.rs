//! Which message each receive handles, under progress in the call.

use std::collections::HashMap;

use crate::loggops::event::{Event, What};
use crate::loggops::matching::Entry;

/// A message by its sender and its send.
type Message = (u32, u32);

/// The meetings of messages and receives that are not handled yet.
#[derive(Debug, Default)]
pub(super) struct Meetings {
    /// When the sends of messages that have arrived started, by receiver and message.
    arrived: HashMap<(u32, Message), u64>,
    /// The message of each receive, by rank and receive.
    met: HashMap<(u32, u32), Message>,
}

impl Meetings {
    /// A message arrives and meets that receive, if any.
    pub(super) fn arrive(&mut self, rank: u32, message: &Event, receive: Option<u32>) {
        let key = (message.who, message.op);
        self.arrived.insert((rank, key), message.age);
        if let Some(receive) = receive {
            self.met.insert((rank, receive), key);
        }
    }

    /// A receive is posted and meets that message, if any.
    pub(super) fn post(&mut self, rank: u32, receive: &Event, message: Option<Entry>) {
        if let Some(message) = message {
            self.met.insert((rank, receive.op), (message.envelope.source, message.op));
        }
    }

    /// The handling of a receive as the event of its message: with the number of the send, and the age of the message.
    pub(super) fn handle(&mut self, rank: u32, handling: &Event) -> Event {
        let message = self.met.remove(&(rank, handling.op)).unwrap_or((handling.who, handling.op));
        let age = self.arrived.remove(&(rank, message)).unwrap_or(handling.age);
        Event { what: What::Message, who: message.0, op: message.1, age, ..*handling }
    }
}
