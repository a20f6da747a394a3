//! What is applied on a machine, according to its journals.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Serialize;

use super::journal::{KeeperRecord, Transaction};
use super::keeper_process;
use super::moment::boot_id;
use super::place;
use super::revert::{Reverted, places, stood_on};
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
    let all = transactions(&store)?;
    let open = all.iter().map(|transaction| {
        let above = || above(root, &store, &all, transaction);
        build(transaction, &boot, store.path_of(&transaction.id).display().to_string(), above)
    });
    let open = open.collect();
    let closed = store.last_closed()?.map(|(id, bytes)| {
        let transaction = Transaction::read(&id, &bytes);
        let journal = store.path_of(&format!("closed/{id}")).display().to_string();
        build(&transaction, &boot, journal, Vec::new)
    });
    Ok((open, closed))
}

/// The open transactions, oldest first.
fn transactions(store: &Store) -> Result<Vec<Transaction>, StoreError> {
    let mut all = Vec::new();
    for id in store.ids()? {
        // Another quell may close it in the meantime.
        let Some(bytes) = store.read_if_there(&id)? else { continue };
        all.push(Transaction::read(&id, &bytes));
    }
    Ok(all)
}

/// Places by their identity, each with the transaction that wrote it and what ends that.
pub type TimedPlaces = BTreeMap<String, (String, String)>;

/// The places whose values an open transaction has set for a time, and that a living keeper reverts.
///
/// # Errors
/// The store's: only root may read journals.
pub fn timed_places(root: &Root) -> Result<TimedPlaces, StoreError> {
    let mut found = TimedPlaces::new();
    let Some(store) = Store::open_if_there(root)? else { return Ok(found) };
    let boot = boot_id(root);
    // Oldest first: a place has the value of the last one.
    for transaction in transactions(&store)?.iter().filter(|one| !one.rebooted(&boot)) {
        let living = transaction.keepers.iter().filter(|keeper| keeper_process::lives(keeper));
        let until = living.filter_map(|keeper| keeper.until.as_ref()).next();
        for place in places(transaction).into_keys() {
            match until {
                Some(until) => found.insert(place, (transaction.id.clone(), until.clone())),
                None => found.remove(&place),
            };
        }
    }
    Ok(found)
}

/// The later transactions that need what this one wrote, so that its keepers wait for them. Those with the same keepers are reverted with it.
fn above(root: &Root, store: &Store, all: &[Transaction], transaction: &Transaction) -> Vec<String> {
    let is_mine = |keeper: &KeeperRecord| transaction.keepers.contains(keeper);
    let others = all.iter().filter(|other| !other.keepers.iter().any(is_mine));
    let others: Vec<String> = others.map(|other| other.id.clone()).collect();
    // If another quell closes one in the meantime, the next status shows what is left.
    let found = stood_on(root, store, (&others, &Reverted::default()), transaction).unwrap_or_default();
    let ids: BTreeSet<String> = found.into_values().map(|(id, _)| id).collect();
    ids.into_iter().collect()
}

/// Whether what a keeper waits for has come: its time is over, or its process has ended.
fn is_over(until: &str, now: SystemTime) -> bool {
    until.split(" or ").any(|part| match part.strip_prefix("the end of process ") {
        Some(pid) => pid.parse::<u32>().is_ok_and(|pid| place::started(pid).is_none()),
        None => humantime::parse_rfc3339(part).is_ok_and(|end| end <= now),
    })
}

/// `above`: the later transactions for which its keepers wait.
fn build(transaction: &Transaction, boot: &str, journal: String, above: impl Fn() -> Vec<String>) -> Status {
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
    let lives = |keeper: &&KeeperRecord| keeper_process::lives(keeper);
    let living = transaction.keepers.iter().filter(|_| !transaction.rebooted(boot)).find(lives);
    let alive = living.or(transaction.keepers.first()).map(|keeper| (keeper, living.is_some()));
    let words = |(keeper, lives): (&KeeperRecord, bool)| {
        let is_due = |until: &&String| lives && is_over(until, SystemTime::now());
        let waits_for = keeper.until.as_ref().filter(is_due).map_or_else(Vec::new, |_| above());
        let until = match &keeper.until {
            None => "holds settings".to_owned(),
            Some(until) if waits_for.is_empty() => format!("reverts at {until}"),
            Some(_) => {
                let later = waits_for.join(" and ");
                format!("reverts once {later}, which came later, is reverted: its time is over")
            }
        };
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_or_the_end_of_a_process_is_over() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let me = format!("the end of process {}", std::process::id());
        let [before, after] = [39, 41].map(|second| format!("2001-09-09T01:46:{second}Z or {me}"));
        for (until, over) in [
            ("2001-09-09T01:46:40Z", true),
            ("2001-09-09T01:46:41Z", false),
            ("the end of process 4294967295", true),
            (me.as_str(), false),
            (before.as_str(), true),
            (after.as_str(), false),
            ("reverted", false),
        ] {
            assert_eq!(is_over(until, now), over, "{until}");
        }
    }
}
