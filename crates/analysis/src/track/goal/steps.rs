//! What a rank did, as steps of 16 bytes each: programs repeat their operations, which differ only in the number of the message.

use quell_recording::mpi::Operation as CollectiveKind;
use rustc_hash::FxHashMap;

use crate::track::event_reader::{CollectivePart, MessageKey};

/// A message as seen from one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Message {
    /// Its key; `None` if the archive does not define its other end.
    pub key: Option<MessageKey>,
    /// The other end: an index among the sequences, or [`quell_recording::mpi::UNKNOWN`].
    pub peer: u32,
    pub bytes: u64,
}

/// A rank's part in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Call {
    /// The collective; `None` if it is unknown.
    pub part: Option<CollectivePart>,
    /// The operation; `None` if its end was not recorded here.
    pub kind: Option<CollectiveKind>,
    /// Index of the root among those that take part.
    pub root: Option<u32>,
    pub sent: u64,
    pub received: u64,
    pub blocking: bool,
}

/// What a rank did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    /// Sends a message; [`Operation::Wait`] waits for its end.
    Send(Message),
    /// Begins to receive a message.
    Receive(Message),
    Collective(Call),
    /// Waits until the operation that began at this index of the sequence is done.
    Wait(u32),
    /// An operation whose end is missing.
    Nothing,
}

/// An operation of a rank, and the work before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Work since the last step, without MPI calls and noise.
    pub gap_ns: u64,
    pub operation: Operation,
}

/// A list of [`Step`]s.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    packed: Vec<Packed>,
    /// Each operation that occurs, with number 0.
    distinct: Vec<Operation>,
    numbers: FxHashMap<Operation, u32>,
}

#[derive(Clone, Copy, Debug)]
struct Packed {
    gap_ns: u64,
    /// Index of its operation among the distinct ones.
    operation: u32,
    /// The low half of its number.
    number: u32,
}

impl Steps {
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    /// Adds a step; returns its index.
    pub fn push(&mut self, step: Step) -> u32 {
        let (operation, number) = self.pack(step.operation);
        self.packed.push(Packed { gap_ns: step.gap_ns, operation, number });
        (self.packed.len() - 1) as u32
    }

    /// The operation at an index.
    pub fn operation(&self, at: usize) -> Operation {
        self.unpack(self.packed[at]).operation
    }

    /// Replaces the operation at an index.
    pub fn set(&mut self, at: usize, operation: Operation) {
        let (operation, number) = self.pack(operation);
        let step = &mut self.packed[at];
        (step.operation, step.number) = (operation, number);
    }

    pub fn iter(&self) -> impl Iterator<Item = Step> {
        self.packed.iter().map(|packed| self.unpack(*packed))
    }

    fn pack(&mut self, mut operation: Operation) -> (u32, u32) {
        let low = match &mut operation {
            Operation::Wait(on) => std::mem::take(on),
            other => number_of(other).map_or(0, |number| {
                let low = *number as u32;
                *number -= u64::from(low);
                low
            }),
        };
        let next = self.distinct.len() as u32;
        let index = *self.numbers.entry(operation).or_insert(next);
        if index == next {
            self.distinct.push(operation);
        }
        (index, low)
    }

    fn unpack(&self, packed: Packed) -> Step {
        let mut operation = self.distinct[packed.operation as usize];
        if let Operation::Wait(on) = &mut operation {
            *on = packed.number;
        } else if let Some(number) = number_of(&mut operation) {
            *number += u64::from(packed.number);
        }
        Step { gap_ns: packed.gap_ns, operation }
    }
}

impl FromIterator<Step> for Steps {
    fn from_iter<I: IntoIterator<Item = Step>>(all: I) -> Self {
        let mut steps = Self::default();
        for step in all {
            steps.push(step);
        }
        steps
    }
}

/// The number of the message or collective that an operation is about.
fn number_of(operation: &mut Operation) -> Option<&mut u64> {
    match operation {
        Operation::Send(message) | Operation::Receive(message) => {
            message.key.as_mut().map(|key| &mut key.number)
        }
        Operation::Collective(call) => call.part.as_mut().map(|part| &mut part.number),
        Operation::Wait(_) | Operation::Nothing => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quell_recording::mpi::Operation as CollectiveKind;

    use super::{Call, Message, Operation, Step, Steps};
    use crate::track::event_reader::{Channel, CollectivePart, MessageKey};

    fn operation() -> impl Strategy<Value = Operation> {
        // Numbers above 32 bits too.
        let number = prop_oneof![0..5u64, any::<u64>()];
        let key = (0..2u32, 0..3u32, number.clone()).prop_map(|(comm, tag, number)| MessageKey {
            channel: Channel { comm, from: 0, to: 1, tag },
            number,
        });
        let message = (proptest::option::of(key), 0..2u32, 1..3u64).prop_map(|(key, peer, bytes)| Message {
            key,
            peer,
            bytes,
        });
        let part = (0..2u32, number, 0..2u32).prop_map(|(comm, number, place)| CollectivePart {
            comm,
            number,
            place,
        });
        let call = (proptest::option::of(part), any::<bool>()).prop_map(|(part, blocking)| Call {
            part,
            kind: blocking.then_some(CollectiveKind::Bcast),
            root: Some(0),
            sent: 4,
            received: 8,
            blocking,
        });
        prop_oneof![
            message.clone().prop_map(Operation::Send),
            message.prop_map(Operation::Receive),
            call.prop_map(Operation::Collective),
            any::<u32>().prop_map(Operation::Wait),
            Just(Operation::Nothing),
        ]
    }

    proptest! {
        #[test]
        fn steps_are_what_was_pushed_and_set(
            pushed in proptest::collection::vec((any::<u64>(), operation()), 0..40),
            set in proptest::collection::vec((any::<proptest::sample::Index>(), operation()), 0..10),
        ) {
            let mut expected: Vec<Step> =
                pushed.into_iter().map(|(gap_ns, operation)| Step { gap_ns, operation }).collect();
            let mut steps: Steps = expected.iter().copied().collect();
            let set = if expected.is_empty() { Vec::new() } else { set };
            for (at, operation) in set {
                let at = at.index(expected.len());
                expected[at].operation = operation;
                steps.set(at, operation);
                prop_assert_eq!(steps.operation(at), operation);
            }
            prop_assert_eq!(steps.len(), expected.len());
            prop_assert_eq!(steps.iter().collect::<Vec<_>>(), expected);
        }
    }
}
