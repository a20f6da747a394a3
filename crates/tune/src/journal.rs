//! The journal of a transaction: a write-ahead log. The previous values are on disk before anything changes; one JSON object per line.
//!
//! The lines are chained and counted ([`lines`]), so a journal of which something is missing never reads as whole.

pub mod lines;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::lines::Journal;
use super::moment::ticks;
use super::place::Place;
use super::plan::Write;
use super::root::Root;

/// The version of the journal that this quell writes. Version 1 had no chain, version 2 no dependents, version 3 no beginnings of reverts.
pub const VERSION: u32 = 4;

/// Files of a group and their values.
pub type Group = BTreeMap<String, String>;

/// Settings that the kernel may change along with those of the plan.
pub type Dependents = BTreeMap<String, Noted>;

/// The value of a dependent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// As read.
    pub value: String,
    /// Its device, as [`Intent::device`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// What the values of dependents in the journal are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// Those before the first write.
    Before,
    /// Those after the last write.
    After,
    /// Those that a revert is about to restore.
    Target,
    /// Those that a revert has restored.
    Restored,
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "step")]
pub enum Record {
    /// The first line.
    Begin(Begin),
    /// The values of settings that the kernel may change along with those of the plan.
    Dependents {
        /// What they are.
        at: Moment,
        /// By path.
        files: Dependents,
    },
    /// A write that is about to be made.
    Intent(Box<Intent>),
    /// The write was made, and this was read back.
    Done {
        /// The number of the intent.
        n: usize,
        /// The place's value, as read.
        readback: String,
        /// The values of its group.
        #[serde(default, skip_serializing_if = "Group::is_empty")]
        group: Group,
    },
    /// A write left another value than the wanted one; this is the value that quell left.
    Took {
        /// The number of the intent.
        n: usize,
        /// The place's value, as read.
        readback: String,
        /// The values of its group.
        #[serde(default, skip_serializing_if = "Group::is_empty")]
        group: Group,
    },
    /// The kernel refused the write, and the plan continues without it.
    Refused {
        /// The number of the intent.
        n: usize,
        /// The reason.
        why: String,
        /// Whether this is not a failure, because the kernel does not permit moving it at all.
        immovable: bool,
    },
    /// A keeper is running: it holds what must be held, and reverts in time.
    Keeper(KeeperRecord),
    /// All writes are made.
    Commit {
        /// The time.
        at: String,
    },
    /// A revert is about to write a place that is changed in several steps: until it is closed, it may have any value between the two.
    Reverting {
        /// The number of the intent.
        n: usize,
    },
    /// One intent is finished.
    Closed {
        /// The number of the intent.
        n: usize,
        /// Its outcome.
        how: Outcome,
    },
    /// A revert has visited all places, and could not close all of them.
    Left {
        /// The time.
        at: String,
    },
    /// The last line.
    End {
        /// The time.
        at: String,
        /// What ended the transaction.
        by: String,
    },
}

/// The head of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// [`VERSION`].
    pub version: u32,
    /// The time.
    pub at: String,
    /// The kernel's id of the boot: settings in memory are lost with it.
    pub boot_id: String,
    /// The hash of the plan.
    pub plan: String,
    /// The mitigations.
    pub mitigations: Vec<String>,
    /// What the plan is about to write, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub planned: Vec<Planned>,
}

/// A write that a plan is about to make, so that it is known even where its own line is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Planned {
    /// The place.
    pub place: String,
    /// Its value when the plan was made.
    pub old: String,
    /// The value to write.
    pub new: String,
}

/// A write that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Its number, from 0.
    pub n: usize,
    /// The write in the plan.
    pub write: Write,
    /// The current place: the plan's, or its successor if the kernel replaced a thread.
    pub place: Place,
    /// The device to which the place belongs, where its path names it only by a class, such as `/sys/class/net/eth0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// For a file of a network device: the device's number, which stays while it is there, under whatever name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<u32>,
    /// The previous value, as read.
    pub original: String,
    /// The previous values of the files that the kernel changes with it.
    #[serde(default, skip_serializing_if = "Group::is_empty")]
    pub group: Group,
    /// For the default of new interrupts: those that exist already, and do not take it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub irqs: Vec<u32>,
    /// For a thread: the time, in clock ticks after boot, as the kernel counts when threads start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticks: Option<u64>,
}

impl Intent {
    /// The intent of a write, as the machine is before it.
    pub fn new(root: &Root, n: usize, write: Write, place: Place, original: String, group: Group) -> Self {
        let (device, link, irqs) = (place.device(root), place.link(root), place.irqs_without(root));
        let ticks = matches!(place, Place::Thread { .. }).then(|| ticks(root)).flatten();
        Self { n, write, place, device, link, original, group, irqs, ticks }
    }

    /// Its place, if its network device has another name by now. Only in the same boot.
    pub fn renamed(&self, root: &Root) -> Option<Place> {
        let link = self.link.filter(|link| self.place.link(root) != Some(*link))?;
        self.place.on_link(root, link)
    }
}

/// A keeper.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KeeperRecord {
    /// Its pid.
    pub pid: u32,
    /// When it started, in clock ticks after boot.
    pub start: u64,
    /// What it waits for before it reverts, as text; none if it only holds.
    pub until: Option<String>,
}

/// The outcome of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The previous value is restored.
    Restored,
    /// The previous value was in place already.
    Already,
    /// A reboot removed the setting.
    Rebooted,
    /// The place no longer exists.
    Gone,
    /// Someone else changed it, and the user decided to keep that.
    Forgotten,
    /// The kernel no longer accepts the previous value; the place holds the nearest value that it accepts.
    Nearest,
}

/// A transaction as recorded in its journal.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// Its id, the journal's name.
    pub id: String,
    /// The head; none if not even that was written, and hence nothing else.
    pub begin: Option<Begin>,
    /// The writes that were made, or were about to be, in the order of the plan.
    pub entries: Vec<Entry>,
    /// The settings that the kernel may change along with those of the plan, before the first write.
    pub before: Dependents,
    /// The same after the last write; none if a crash came first.
    pub after: Option<Dependents>,
    /// What a revert was about to restore of them.
    pub targets: Option<Dependents>,
    /// Whether that revert was interrupted.
    pub is_reverting: bool,
    /// Whether a revert has restored all of them.
    pub restored: bool,
    /// Its keepers. Of two, the second takes over where the first was killed.
    pub keepers: Vec<KeeperRecord>,
    /// Whether all writes were made.
    pub committed: bool,
    /// Whether a revert could not close all places.
    pub left: bool,
    /// When and by what it was ended, if it is over.
    pub ended: Option<(String, String)>,
    /// Lines that cannot be read or are missing, by number from 1, other than an incomplete last one.
    pub damaged: Vec<usize>,
}

/// One intent and its state.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The intent.
    pub intent: Intent,
    /// The value that was read back.
    pub readback: Option<String>,
    /// The values of its group at that time.
    pub group_after: Group,
    /// Why the kernel refused it, and whether that is not a failure.
    pub refused: Option<(String, bool)>,
    /// Whether a revert began to write it.
    pub reverting: bool,
    /// Its outcome, once it is finished.
    pub closed: Option<Outcome>,
}

impl Entry {
    /// Whether the kernel refused the write, which left the place as it was: another value is another program's.
    pub fn is_untouched(&self) -> bool {
        self.refused.is_some() && self.readback.is_none()
    }
}

impl Transaction {
    /// Reads a journal. The last line may be incomplete, if it was being written; other lines that cannot be read, or are missing, are
    /// listed in [`Self::damaged`].
    pub fn read(id: &str, bytes: &[u8]) -> Self {
        let mut transaction = Self { id: id.to_owned(), ..Self::default() };
        let (lines, mut damaged) = lines::read(bytes);
        for line in lines {
            let record = serde_json::from_slice(line.json);
            if !record.is_ok_and(|record| transaction.take(record)) {
                damaged.push(line.number);
            }
        }
        damaged.sort_unstable();
        damaged.dedup();
        transaction.damaged = damaged;
        transaction
    }

    /// The writes of the plan that have no line here although the journal is damaged: whether they were made is not known.
    pub fn unrecorded(&self) -> Vec<Planned> {
        let planned = self.begin.iter().filter(|_| !self.damaged.is_empty()).flat_map(|begin| &begin.planned);
        let planned = planned.enumerate().filter(|(n, _)| self.entries.iter().all(|one| one.intent.n != *n));
        planned.map(|(_, planned)| planned.clone()).collect()
    }

    /// Adds a record. Returns whether it is consistent with those before.
    fn take(&mut self, record: Record) -> bool {
        match record {
            Record::Begin(begin) => {
                let good = self.begin.is_none() && begin.version <= VERSION;
                self.begin = self.begin.take().or(good.then_some(begin));
                good
            }
            Record::Intent(intent) => {
                // Those of units precede the others. Without the chain of version 2 a gap shows that a line is lost.
                let chained = self.begin.as_ref().is_none_or(|begin| begin.version > 1);
                let good = chained || intent.n == self.entries.len();
                let at = self.entries.partition_point(|entry| entry.intent.n < intent.n);
                if self.entries.get(at).is_some_and(|entry| entry.intent.n == intent.n) {
                    return false;
                }
                let intent = *intent;
                let (readback, group_after, refused, reverting, closed) = Default::default();
                self.entries.insert(at, Entry { intent, readback, group_after, refused, reverting, closed });
                good
            }
            Record::Dependents { at, files } => {
                match at {
                    Moment::Before => self.before = files,
                    Moment::After => self.after = Some(files),
                    Moment::Target => (self.targets, self.is_reverting) = (Some(files), true),
                    Moment::Restored => self.restored = true,
                }
                true
            }
            Record::Left { .. } => {
                (self.left, self.is_reverting) = (true, false);
                true
            }
            Record::Done { n, readback, group } | Record::Took { n, readback, group } => {
                self.entry(n).is_some_and(|entry| {
                    entry.readback = Some(readback);
                    entry.group_after = group;
                    true
                })
            }
            Record::Refused { n, why, immovable } => {
                self.entry(n).is_some_and(|entry| entry.refused.replace((why, immovable)).is_none())
            }
            Record::Reverting { n } => self.entry(n).is_some_and(|entry| {
                entry.reverting = true;
                true
            }),
            Record::Closed { n, how } => {
                self.entry(n).is_some_and(|entry| entry.closed.replace(how).is_none())
            }
            Record::Keeper(keeper) => {
                self.keepers.push(keeper);
                true
            }
            Record::Commit { .. } => {
                self.committed = true;
                true
            }
            Record::End { at, by } => {
                self.ended = Some((at, by));
                true
            }
        }
    }

    fn entry(&mut self, n: usize) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.intent.n == n)
    }

    /// Whether the machine was booted since then, so that settings in memory are lost. `boot` is the id of the current boot.
    pub fn rebooted(&self, boot: &str) -> bool {
        let then = self.begin.as_ref().map_or("", |begin| begin.boot_id.as_str());
        !boot.is_empty() && !then.is_empty() && boot != then
    }

    /// Whether a refusal without a value means that the place was seen unchanged. Before version 4 it may not have been readable.
    pub fn refusals_were_looked_at(&self) -> bool {
        self.begin.as_ref().is_some_and(|begin| begin.version >= 4)
    }

    /// Whether it has an open write that survives a reboot.
    pub fn outlives_boots(&self) -> bool {
        self.entries.iter().any(|entry| entry.closed.is_none() && entry.intent.place.survives_boot())
    }

    /// Whether it stopped half-way, in a crash or a power failure.
    pub fn is_interrupted(&self) -> bool {
        !self.committed && self.ended.is_none()
    }

    /// The mitigations.
    pub fn mitigations(&self) -> &[String] {
        self.begin.as_ref().map_or(&[], |begin| &begin.mitigations)
    }
}
