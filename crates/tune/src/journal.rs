//! The journal of a transaction: a write-ahead log. The previous values are on disk before anything changes; one JSON object per line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};

use super::fault;
use super::place::Place;
use super::plan::Write;

/// The version of the journal that this quell writes.
pub const VERSION: u32 = 1;

/// Files of a group and their values.
pub type Group = BTreeMap<String, String>;

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "step")]
pub enum Record {
    /// The first line.
    Begin(Begin),
    /// A write that is about to be made.
    Intent(Intent),
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
    /// The previous value, as read.
    pub original: String,
    /// The previous values of the files that the kernel changes with it.
    #[serde(default, skip_serializing_if = "Group::is_empty")]
    pub group: Group,
}

/// A keeper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

impl Journal {
    /// Starts in a new file.
    pub fn on(file: File) -> Self {
        Self { file }
    }

    /// Continues a file that may end within a line: ends that line, so that the next record is on a line of its own.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn go_on(mut file: File, bytes: &[u8]) -> io::Result<Self> {
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            file.write_all(b"\n")?;
        }
        Ok(Self { file })
    }

    /// Appends a line; it is on disk when this returns.
    ///
    /// # Errors
    /// The kernel's error, such as a full disk.
    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let length = self.file.metadata()?.len();
        fault::point();
        let written = self.file.write_all(&line).and_then(|()| {
            fault::point();
            self.file.sync_data()
        });
        if written.is_err() {
            // Half a line would make the next one unreadable. The caller needs the first error, so one of this call is ignored.
            let _ = self.file.set_len(length);
        }
        fault::point();
        written
    }
}

/// A transaction as recorded in its journal.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// Its id, the journal's name.
    pub id: String,
    /// The head; none if not even that was written, and hence nothing else.
    pub begin: Option<Begin>,
    /// The writes that were made, or were about to be, in order.
    pub entries: Vec<Entry>,
    /// The keeper, if there is one.
    pub keeper: Option<KeeperRecord>,
    /// Whether all writes were made.
    pub committed: bool,
    /// Whether a revert could not close all places.
    pub left: bool,
    /// When and by what it was ended, if it is over.
    pub ended: Option<(String, String)>,
    /// Unreadable lines, other than the last, by number from 1.
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
    /// Its outcome, once it is finished.
    pub closed: Option<Outcome>,
}

impl Transaction {
    /// Reads a journal. The last line may be incomplete; other unreadable lines are listed in [`Self::damaged`].
    pub fn read(id: &str, bytes: &[u8]) -> Self {
        let mut transaction = Self { id: id.to_owned(), ..Self::default() };
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for (i, line) in lines.iter().enumerate() {
            let torn = !line.ends_with(b"\n");
            let taken = serde_json::from_slice(line).is_ok_and(|record| transaction.take(record));
            // A record is on disk before its write is made, so no write followed an incomplete one.
            let torn_and_ended = i + 1 < lines.len() && is_torn(line);
            if !taken && !torn && !torn_and_ended {
                transaction.damaged.push(i + 1);
            }
        }
        transaction
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
                let good = intent.n == self.entries.len();
                if good || intent.n > self.entries.len() {
                    self.entries.push(Entry {
                        intent,
                        readback: None,
                        group_after: Group::new(),
                        refused: None,
                        closed: None,
                    });
                }
                good
            }
            Record::Left { .. } => {
                self.left = true;
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
            Record::Closed { n, how } => {
                self.entry(n).is_some_and(|entry| entry.closed.replace(how).is_none())
            }
            Record::Keeper(keeper) => {
                self.keeper = Some(keeper);
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

/// Whether a line is an incomplete record whose line was ended when the journal was continued.
fn is_torn(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    // After a power failure a file can have its length without its contents.
    let line =
        line.iter().rposition(|byte| *byte != 0).and_then(|last| line.get(..=last)).unwrap_or_default();
    serde_json::from_slice::<serde_json::Value>(line).is_err_and(|error| error.is_eof())
}
