//! The journal of a transaction: what was there is on disk before anything is changed (write-ahead), one JSON object a line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};

use super::fault;
use super::place::Place;
use super::plan::Write;

/// The form of the journal that this quell writes.
pub const VERSION: u32 = 1;

/// Files of a group and what they hold.
pub type Group = BTreeMap<String, String>;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "step")]
pub enum Record {
    /// The first.
    Begin(Begin),
    /// This is about to be written.
    Intent(Intent),
    /// It was, and this is read back.
    Done {
        /// Which intent.
        n: usize,
        /// What the place holds now, as read.
        readback: String,
        /// What its group holds now.
        #[serde(default, skip_serializing_if = "Group::is_empty")]
        group: Group,
    },
    /// Something else than was wanted came of a write; this is what stands there, and it is quell's.
    Took {
        /// Which intent.
        n: usize,
        /// What the place holds now, as read.
        readback: String,
        /// What its group holds now.
        #[serde(default, skip_serializing_if = "Group::is_empty")]
        group: Group,
    },
    /// The kernel refused, and the plan goes on without.
    Refused {
        /// Which intent.
        n: usize,
        /// Why.
        why: String,
        /// Whether it is no failure: nobody can move it.
        immovable: bool,
    },
    /// A keeper is at work: it holds what must be held, and reverts when it is time.
    Keeper(KeeperRecord),
    /// All is written.
    Commit {
        /// When.
        at: String,
    },
    /// One intent needs nothing more.
    Closed {
        /// Which.
        n: usize,
        /// What came of it.
        how: Outcome,
    },
    /// A revert went through all, and could not close all.
    Left {
        /// When.
        at: String,
    },
    /// The last.
    End {
        /// When.
        at: String,
        /// Who ended it.
        by: String,
    },
}

/// The head of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// [`VERSION`].
    pub version: u32,
    /// When.
    pub at: String,
    /// The kernel's id of the boot: what is only in memory is gone with it.
    pub boot_id: String,
    /// The hash of the plan.
    pub plan: String,
    /// The mitigations.
    pub mitigations: Vec<String>,
}

/// What is about to be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Its number, from 0.
    pub n: usize,
    /// What the plan says.
    pub write: Write,
    /// The place that is meant: the plan's, or its successor where the kernel replaced a thread.
    pub place: Place,
    /// What it holds, as read.
    pub original: String,
    /// What the files hold that change with it.
    #[serde(default, skip_serializing_if = "Group::is_empty")]
    pub group: Group,
}

/// Who holds and who waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeeperRecord {
    /// Its pid.
    pub pid: u32,
    /// When it started, in clock ticks after boot.
    pub start: u64,
    /// What it waits for before it reverts, in words; none if it only holds.
    pub until: Option<String>,
}

/// What came of an intent at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The original is back.
    Restored,
    /// The original was there already.
    Already,
    /// A boot took it back.
    Rebooted,
    /// The thing is gone.
    Gone,
    /// Somebody else changed it, and that was kept at the user's word.
    Forgotten,
    /// The kernel no longer takes the original; it holds the nearest value that it takes.
    Nearest,
}

/// A journal being written.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

impl Journal {
    /// On a new file.
    pub fn on(file: File) -> Self {
        Self { file }
    }

    /// On a file that may end within a line: the line is ended, so that what follows stands alone.
    ///
    /// # Errors
    /// The kernel's.
    pub fn go_on(mut file: File, bytes: &[u8]) -> io::Result<Self> {
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            file.write_all(b"\n")?;
        }
        Ok(Self { file })
    }

    /// Appends a line; it is on disk when this returns.
    ///
    /// # Errors
    /// The kernel's, such as a full disk.
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
            // Half a line would make the next one unreadable. The first error is what the reader must know.
            let _ = self.file.set_len(length);
        }
        fault::point();
        written
    }
}

/// A transaction as its journal tells it.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// Its id, the journal's name.
    pub id: String,
    /// The head; none where not even that was written, and so nothing else.
    pub begin: Option<Begin>,
    /// What was or was about to be written, in order.
    pub entries: Vec<Entry>,
    /// Who holds and waits.
    pub keeper: Option<KeeperRecord>,
    /// Whether all was written.
    pub committed: bool,
    /// Whether a revert could not close all.
    pub left: bool,
    /// Who ended it, if it is over.
    pub ended: Option<(String, String)>,
    /// Lines that nobody can read, other than the last; by number, from 1.
    pub damaged: Vec<usize>,
}

/// One intent and what came of it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The intent.
    pub intent: Intent,
    /// What was read back.
    pub readback: Option<String>,
    /// What its group held then.
    pub group_after: Group,
    /// Why the kernel refused it, and whether that is no failure.
    pub refused: Option<(String, bool)>,
    /// What came of it at the end.
    pub closed: Option<Outcome>,
}

impl Transaction {
    /// Reads a journal. The last line may be torn; others that cannot be read are told in [`Self::damaged`].
    pub fn read(id: &str, bytes: &[u8]) -> Self {
        let mut transaction = Self { id: id.to_owned(), ..Self::default() };
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for (i, line) in lines.iter().enumerate() {
            let torn = !line.ends_with(b"\n");
            let taken = serde_json::from_slice(line).is_ok_and(|record| transaction.take(record));
            // What was torn was not followed by a write: the line is on disk before.
            let torn_and_ended = i + 1 < lines.len() && is_torn(line);
            if !taken && !torn && !torn_and_ended {
                transaction.damaged.push(i + 1);
            }
        }
        transaction
    }

    /// Whether the record fits what was read so far.
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

    /// Whether the machine was booted since: what was only in memory is gone. `boot` is the id of this boot.
    pub fn rebooted(&self, boot: &str) -> bool {
        let then = self.begin.as_ref().map_or("", |begin| begin.boot_id.as_str());
        !boot.is_empty() && !then.is_empty() && boot != then
    }

    /// Whether it set something that a boot does not take back.
    pub fn outlives_boots(&self) -> bool {
        self.entries.iter().any(|entry| entry.closed.is_none() && entry.intent.place.survives_boot())
    }

    /// Whether it stopped half-way: a crash, or a power cut.
    pub fn is_interrupted(&self) -> bool {
        !self.committed && self.ended.is_none()
    }

    /// The mitigations.
    pub fn mitigations(&self) -> &[String] {
        self.begin.as_ref().map_or(&[], |begin| &begin.mitigations)
    }
}

/// Whether a line is the beginning of a record that was cut, and then ended by whoever came next.
fn is_torn(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    // A power cut may leave a length without what was written.
    let line =
        line.iter().rposition(|byte| *byte != 0).and_then(|last| line.get(..=last)).unwrap_or_default();
    serde_json::from_slice::<serde_json::Value>(line).is_err_and(|error| error.is_eof())
}
