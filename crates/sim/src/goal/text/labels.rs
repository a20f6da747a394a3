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
///
/// Most generators number their labels: `l1`, `l2` and so on. Those are found by their number, and not in the table.
#[derive(Debug, Default)]
pub(super) struct Labels {
    text: Vec<u8>,
    labels: Vec<Label>,
    /// Whether some label is another than the prefix and its number, from 1. Only then are labels in slots.
    is_hashed: bool,
    /// Length of the prefix, with which the text begins.
    prefix: usize,
    /// Indices into `labels`; at least twice as many slots as labels.
    slots: Vec<u32>,
    hasher: RandomState,
}

impl Labels {
    /// Removes all labels, in time proportional to their number.
    pub(super) fn clear(&mut self) {
        if self.slots.len() > SMALLEST.max(8 * self.labels.len()) {
            self.slots = Vec::new();
        } else if self.is_hashed {
            self.slots.fill(FREE);
        }
        self.is_hashed = false;
        self.labels.clear();
        self.text.clear();
    }

    /// Gives an operation a label, unless another operation has it, which is returned.
    pub(super) fn define(&mut self, name: &[u8], op: u32, line: u64, column: usize) -> Result<(), Label> {
        if self.labels.is_empty() {
            self.prefix = name.len().saturating_sub(1);
            self.text.extend_from_slice(&name[..self.prefix]);
        }
        if !self.is_hashed && self.number(name) != Some(self.labels.len() + 1) {
            self.is_hashed = true;
            self.rebuild(self.slots.len());
        }
        if self.is_hashed {
            if 2 * self.labels.len() >= self.slots.len() {
                self.rebuild(2 * self.slots.len());
            }
            let slot = self.slot(name);
            if self.slots[slot] != FREE {
                return Err(self.labels[self.slots[slot] as usize]);
            }
            self.slots[slot] = self.labels.len() as u32;
        }
        let begin = self.text.len() as u64;
        self.labels.push(Label { begin, line, op, len: name.len() as u16, column: column as u16 });
        self.text.extend_from_slice(name);
        Ok(())
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<Label> {
        let number = match self.is_hashed {
            true => *self.slots.get(self.slot(name))? as usize,
            false => self.number(name)?.checked_sub(1)?,
        };
        self.labels.get(number).copied()
    }

    /// The number behind the prefix, written as numbers are.
    fn number(&self, name: &[u8]) -> Option<usize> {
        let digits = name.strip_prefix(self.text.get(..self.prefix)?)?;
        let is_plain = (1..=9).contains(&digits.len()) && digits[0] != b'0';
        let add =
            |sum: usize, digit: &u8| digit.is_ascii_digit().then(|| sum * 10 + usize::from(digit - b'0'));
        if is_plain { digits.iter().try_fold(0, add) } else { None }
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

    /// Makes at least `least` slots, and enough for all labels, and puts these in.
    fn rebuild(&mut self, least: usize) {
        let needed = (2 * self.labels.len() + 1).next_power_of_two();
        self.slots.clear();
        self.slots.resize(SMALLEST.max(least).max(needed), FREE);
        for number in 0..self.labels.len() {
            let slot = self.slot(self.name(self.labels[number]));
            self.slots[slot] = number as u32;
        }
    }
}
