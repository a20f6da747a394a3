//! The labels of one rank.

use std::hash::{BuildHasher, RandomState};

const FREE: u32 = u32::MAX;
const SMALLEST: usize = 64;

/// Where a label is defined, and for which operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label {
    begin: u64,
    /// The line that defines it, from 1.
    pub(super) line: u64,
    pub(super) op: u32,
    len: u16,
    /// The column at which it begins, from 0.
    pub(super) column: u16,
}

/// An open-addressing table over one text buffer, cleared for each rank. The hash is seeded anew in each run, so
/// that no file can force collisions; no result depends on the seed.
#[derive(Debug, Default)]
pub(super) struct Labels {
    text: Vec<u8>,
    labels: Vec<Label>,
    /// Indices into `labels`; at least twice as many slots as labels.
    slots: Vec<u32>,
    hasher: RandomState,
}

impl Labels {
    /// Removes all labels, in time proportional to their number.
    pub(super) fn clear(&mut self) {
        if self.slots.len() > SMALLEST.max(8 * self.labels.len()) {
            self.slots = Vec::new();
        } else if !self.labels.is_empty() {
            self.slots.fill(FREE);
        }
        self.labels.clear();
        self.text.clear();
    }

    /// Gives an operation a label, unless another operation has it, which is returned.
    pub(super) fn define(&mut self, name: &[u8], op: u32, line: u64, column: usize) -> Result<(), Label> {
        if 2 * self.labels.len() >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot(name);
        if self.slots[slot] != FREE {
            return Err(self.labels[self.slots[slot] as usize]);
        }
        self.slots[slot] = self.labels.len() as u32;
        let begin = self.text.len() as u64;
        self.labels.push(Label { begin, line, op, len: name.len() as u16, column: column as u16 });
        self.text.extend_from_slice(name);
        Ok(())
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<Label> {
        let number = *self.slots.get(self.slot(name))?;
        self.labels.get(number as usize).copied()
    }

    /// The label of an operation, if it has one.
    pub(super) fn label_of(&self, op: u32) -> Option<(&[u8], Label)> {
        // Labels are defined in the order of their operations.
        let index = self.labels.binary_search_by_key(&op, |label| label.op).ok()?;
        let label = self.labels[index];
        Some((self.name(label), label))
    }

    fn name(&self, label: Label) -> &[u8] {
        let begin = label.begin as usize;
        &self.text[begin..begin + usize::from(label.len)]
    }

    /// The slot that holds a label, or the free one where it belongs.
    fn slot(&self, name: &[u8]) -> usize {
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = self.hasher.hash_one(name) as usize & mask;
        while let Some(label) = self.slots.get(slot).and_then(|&number| self.labels.get(number as usize)) {
            if self.name(*label) == name {
                break;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        let size = SMALLEST.max(2 * self.slots.len());
        self.slots.clear();
        self.slots.resize(size, FREE);
        for number in 0..self.labels.len() {
            let slot = self.slot(self.name(self.labels[number]));
            self.slots[slot] = number as u32;
        }
    }
}
