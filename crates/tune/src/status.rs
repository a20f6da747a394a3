//! What is applied on a machine, from its journals alone.

use schemars::JsonSchema;
use serde::Serialize;

use super::journal::Transaction;
use super::keeper_process;
use super::moment::boot_id;
use super::root::Root;
use super::store::{Store, StoreError};

/// How a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// All was written.
    Applied,
    /// It stopped half-way, in apply.
    Interrupted,
    /// Some was given back; what others changed is left.
    PartlyReverted,
    /// What it wrote into memory went with a boot.
    Rebooted,
    /// Nothing is left of it.
    Closed,
}

impl Stage {
    /// Its words.
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
    /// How it stands.
    pub stage: Stage,
    /// When it began, UTC.
    pub began: Option<String>,
    /// The plan's hash.
    pub plan: Option<String>,
    /// The mitigations.
    pub mitigations: Vec<String>,
    /// Places that it wrote or was about to.
    pub places: usize,
    /// Those that are not given back.
    pub open: usize,
    /// Who holds or waits, in words.
    pub keeper: Option<String>,
    /// Whether a keeper that should live is gone: nobody reverts in time.
    pub keeper_is_gone: bool,
    /// Lines of the journal that cannot be read.
    pub damaged_lines: Vec<usize>,
    /// Who ended it, and when.
    pub ended: Option<String>,
}

impl Status {
    /// Whether somebody must do something.
    pub fn calls(&self) -> bool {
        self.stage != Stage::Applied || self.keeper_is_gone || !self.damaged_lines.is_empty()
    }
}

/// All open transactions, oldest first, and the last that was closed.
///
/// # Errors
/// The store's: only root may read journals.
pub fn status(root: &Root) -> Result<(Vec<Status>, Option<Status>), StoreError> {
    let Some(store) = Store::open_if_there(root)? else { return Ok((Vec::new(), None)) };
    let boot = boot_id(root);
    let mut open = Vec::new();
    for id in store.ids()? {
        // Another quell may close it meanwhile.
        let Some(bytes) = store.read_if_there(&id)? else { continue };
        let transaction = Transaction::read(&id, &bytes);
        open.push(of(&transaction, &boot, store.path_of(&id).display().to_string()));
    }
    let closed = store.last_closed()?.map(|(id, bytes)| {
        let transaction = Transaction::read(&id, &bytes);
        of(&transaction, &boot, store.path_of(&format!("closed/{id}")).display().to_string())
    });
    Ok((open, closed))
}

fn of(transaction: &Transaction, boot: &str, journal: String) -> Status {
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
    let alive = transaction
        .keeper
        .as_ref()
        .map(|keeper| (keeper, !transaction.rebooted(boot) && keeper_process::lives(keeper)));
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
