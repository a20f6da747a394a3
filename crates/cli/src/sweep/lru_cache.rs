//! An LRU cache for what is expensive to make: opened noise, parsed schedules.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Failure;

/// The most recently used values by key. Each is made once, even if several threads ask for it.
#[derive(Debug)]
pub struct Recent<K, V> {
    most: usize,
    /// The most recently used entry is last.
    entries: Mutex<Vec<(K, Slot<V>)>>,
}

/// A value that may still be in the making, or the reason why it cannot be made.
type Slot<V> = Arc<OnceLock<Result<Arc<V>, Failure>>>;

impl<K: PartialEq + Clone, V> Recent<K, V> {
    /// Keeps at most `most` values, in addition to those still in use.
    pub fn new(most: usize) -> Self {
        Self { most, entries: Mutex::new(Vec::new()) }
    }

    /// The value of a key, made if it is not cached. Errors are cached too.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn get(&self, key: &K, make: impl FnOnce() -> anyhow::Result<V>) -> Result<Arc<V>, Failure> {
        let slot = self.slot(key);
        slot.get_or_init(|| make().map(Arc::new).map_err(Failure::from)).clone()
    }

    fn slot(&self, key: &K) -> Slot<V> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let known = entries.iter().position(|(known, _)| known == key);
        let entry = known.map_or_else(|| (key.clone(), Slot::default()), |index| entries.remove(index));
        let slot = Arc::clone(&entry.1);
        entries.push(entry);
        if entries.len() > self.most {
            entries.remove(0);
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_made_once_and_the_oldest_goes() {
        let recent = Recent::new(2);
        let made = std::cell::Cell::new(0);
        let get = |key: u32| {
            recent.get(&key, || {
                made.set(made.get() + 1);
                if key == 9 { anyhow::bail!("no") } else { Ok(key) }
            })
        };
        assert!(get(1).is_ok_and(|value| *value == 1) && get(2).is_ok() && get(1).is_ok());
        assert_eq!(made.get(), 2);
        assert_eq!(get(9).err().map(|failure| failure.reason).as_deref(), Some("no"));
        assert!(get(9).is_err() && get(1).is_ok());
        assert_eq!(made.get(), 3, "an error is kept, and 1 was the latest but one");
        assert!(get(2).is_ok());
        assert_eq!(made.get(), 4);
    }
}
