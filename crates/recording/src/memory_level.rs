//! Levels of the memory system whose loads a probe times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A level of the memory system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryName {
    /// The core's own first cache. Hardly anything but the core itself slows it.
    Core,
    /// The last cache, which cores share.
    Shared,
    /// Beyond the caches.
    Main,
}

impl MemoryName {
    /// What a slice of such loads is called on a timeline.
    #[must_use]
    pub fn slice(self) -> &'static str {
        match self {
            Self::Core => "loads from the core's cache",
            Self::Shared => "loads from the shared cache",
            Self::Main => "loads from main memory",
        }
    }
}

impl std::fmt::Display for MemoryName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Core => "core",
            Self::Shared => "shared cache",
            Self::Main => "main memory",
        })
    }
}

/// How the probe loads from a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLevel {
    /// The level.
    pub name: MemoryName,
    /// Bytes of the lines that it loads.
    pub bytes: u64,
    /// Loads in a quantum, each of which needs the one before.
    pub loads: u32,
}
