//! What is applied on a machine, according to its journals.

use schemars::JsonSchema;
use serde::Serialize;

use super::journal::Transaction;
use super::keeper_process;
use super::moment::boot_id;
use super::root::Root;
use super::store::{Store, StoreError};

/// The state of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// All writes were made.
    Applied,
    /// It was interrupted while it was applied.
    Interrupted,
    /// Some places are reverted; values that someone else wrote are left.
    PartlyReverted,
    /// A reboot removed what it wrote into memory.
    Rebooted,
    /// Nothing of it is left.
    Closed,
}

impl Stage {
    /// Its description.
    pub fn words(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Interrupted => "interrupted",
            Self::PartlyReverted => "partly reverted",
            Self::Rebooted => "gone with a boot",
            Self::Closed => "closed",
        }
    }
}

/// One transaction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Status {
    /// Its id.
    pub id: String,
    /// Its journal.
    pub journal: String,
    /// Its state.
    pub stage: Stage,
    /// When it began, in UTC.
    pub began: Option<String>,
    /// The plan's hash.
    pub plan: Option<String>,
    /// The mitigations.
    pub mitigations: Vec<String>,
    /// Number of places that it wrote, or was about to write.
    pub places: usize,
    /// Number of those that are not reverted.
    pub open: usize,
    /// The keeper, as text.
    pub keeper: Option<String>,
    /// Whether a keeper that should be running is gone: the transaction will not be reverted in time.
    pub keeper_is_gone: bool,
    /// Lines of the journal that are unreadable or missing.
    pub damaged_lines: Vec<usize>,
    /// What ended it, and when.
    pub ended: Option<String>,
}

impl Status {
    /// Whether the user must act.
    pub fn calls(&self) -> bool {
        self.stage != Stage::Applied || self.keeper_is_gone || !self.damaged_lines.is_empty()
    }
}

/// All open transactions, oldest first, and the one that was closed last.
///
/// # Errors
/// The store's: only root may read journals.
pub fn status(root: &Root) -> Result<(Vec<Status>, Option<Status>), StoreError> {
    let Some(store) = Store::open_if_there(root)? else { return Ok((Vec::new(), None)) };
    let boot = boot_id(root);
    let mut open = Vec::new();
    for id in store.ids()? {
        // Another quell may close it in the meantime.
        let Some(bytes) = store.read_if_there(&id)? else { continue };
        let transaction = Transaction::read(&id, &bytes);
        open.push(build(&transaction, &boot, store.path_of(&id).display().to_string()));
    }
    let closed = store.last_closed()?.map(|(id, bytes)| {
        let transaction = Transaction::read(&id, &bytes);
        build(&transaction, &boot, store.path_of(&format!("closed/{id}")).display().to_string())
    });
    Ok((open, closed))
}

fn build(transaction: &Transaction, boot: &str, journal: String) -> Status {
    let left = transaction.entries.iter().filter(|entry| entry.closed.is_none()).count();
    let stage = if transaction.ended.is_some() {
        Stage::Closed
    } else if transaction.rebooted(boot) && !transaction.outlives_boots() {
        Stage::Rebooted
    } else if transaction.is_interrupted() {
        Stage::Interrupted
    } else if transaction.left || transaction.entries.iter().any(|entry| entry.closed.is_some()) {
        Stage::PartlyReverted
    } else {
        Stage::Applied
    };
    let lives = |keeper: &&super::journal::KeeperRecord| keeper_process::lives(keeper);
    let living = transaction.keepers.iter().filter(|_| !transaction.rebooted(boot)).find(lives);
    let alive = living.or(transaction.keepers.first()).map(|keeper| (keeper, living.is_some()));
    let words = |(keeper, lives): (&super::journal::KeeperRecord, bool)| {
        let until =
            keeper.until.as_ref().map_or("holds settings".to_owned(), |until| format!("reverts at {until}"));
        if lives {
            format!("process {} {until}", keeper.pid)
        } else {
            format!("process {} is gone ({until})", keeper.pid)
        }
    };
    Status {
        id: transaction.id.clone(),
        journal,
        stage,
        began: transaction.begin.as_ref().map(|begin| begin.at.clone()),
        plan: transaction.begin.as_ref().map(|begin| begin.plan.clone()),
        mitigations: transaction.mitigations().to_vec(),
        places: transaction.entries.len(),
        open: if stage == Stage::Closed { 0 } else { left },
        keeper: alive.map(words),
        keeper_is_gone: alive.is_some_and(|(_, lives)| !lives) && stage == Stage::Applied,
        damaged_lines: transaction.damaged.clone(),
        ended: transaction.ended.as_ref().map(|(at, by)| format!("{at}, {by}")),
    }
}
