//! Patterns of noise sources: the noise that a mitigation claims to remove.

use std::fmt;
use std::str::FromStr;

use regex::Regex;

use crate::source::{Source, SourceKind};

/// A pattern of noise. As text: `nmi`, `tick`, `fault`, `steal`; or a kind and a regular expression: `irq:^nvme`, `ipi:tlb`,
/// `softirq:RCU`, `task:^kworker/`; or, for any source, what it worked on: `timer:CALLBACK`, `work:FUNCTION`.
#[derive(Clone, Debug)]
pub enum SourcePattern {
    /// Sources of a kind whose name matches; all of the kind if there is no regular expression.
    Named(SourceKind, Option<Regex>),
    /// The timer whose callback matches.
    Timer(Regex),
    /// The work whose function matches.
    Work(Regex),
}

impl SourcePattern {
    /// Whether the pattern matches an interval of this source, which worked on `detail` if that is known.
    pub fn matches(&self, source: &Source, detail: Option<&str>) -> bool {
        match self {
            Self::Named(kind, name) => {
                source.kind() == *kind
                    && name.as_ref().is_none_or(|name| name.is_match(source.name().unwrap_or("")))
            }
            Self::Timer(callback) => {
                let runs_timers = matches!(source, Source::Tick)
                    || matches!(source, Source::Softirq(name) if matches!(&**name, "TIMER" | "HRTIMER"));
                runs_timers && detail.is_some_and(|detail| callback.is_match(detail))
            }
            Self::Work(function) => {
                matches!(source, Source::Task(_)) && detail.is_some_and(|detail| function.is_match(detail))
            }
        }
    }
}

impl FromStr for SourcePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let regex = |part: &str| {
            Regex::new(part).map_err(|e| format!("`{text}` is not a pattern of noise sources: {e}"))
        };
        let (kind, name) = text.split_once(':').map_or((text, None), |(kind, name)| (kind, Some(name)));
        match (kind, name) {
            ("timer", Some(name)) => return Ok(Self::Timer(regex(name)?)),
            ("work", Some(name)) => return Ok(Self::Work(regex(name)?)),
            _ => {}
        }
        let known = SourceKind::ALL.into_iter().find(|one| one.name() == kind);
        let known = known.ok_or_else(|| {
            format!("`{text}` is not a pattern of noise sources: `{kind}` is no kind of source")
        })?;
        match name {
            Some(_) if !known.has_names() => {
                Err(format!("`{text}` is not a pattern of noise sources: `{kind}` has no names"))
            }
            Some(name) => Ok(Self::Named(known, Some(regex(name)?))),
            None => Ok(Self::Named(known, None)),
        }
    }
}

impl fmt::Display for SourcePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(kind, None) => f.write_str(kind.name()),
            Self::Named(kind, Some(name)) => write!(f, "{}:{name}", kind.name()),
            Self::Timer(callback) => write!(f, "timer:{callback}"),
            Self::Work(function) => write!(f, "work:{function}"),
        }
    }
}

impl serde::Serialize for SourcePattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for SourcePattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, source: &str, detail: Option<&str>) -> bool {
        pattern.parse::<SourcePattern>().unwrap().matches(&source.parse().unwrap(), detail)
    }

    #[test]
    fn a_pattern_names_a_kind_a_name_or_what_was_worked_at() {
        assert!(matches("tick", "tick", None));
        assert!(matches("irq:^nvme", "irq:nvme0q1", None));
        assert!(!matches("irq:^nvme", "irq:eth0-nvme", None));
        assert!(!matches("irq:", "task:irq", None));
        assert!(matches("work:vmstat", "task:kworker/1:2", Some("vmstat_update")));
        assert!(!matches("work:vmstat", "task:kworker/1:2", None));
        assert!(matches("timer:watchdog", "tick", Some("watchdog_timer_fn")));
        assert!(matches("timer:watchdog", "softirq:TIMER", Some("watchdog_timer_fn")));
        assert!(matches("timer:watchdog", "softirq:HRTIMER", Some("watchdog_timer_fn")));
        assert!(!matches("timer:watchdog", "softirq:SCHED", Some("watchdog_timer_fn")));
        assert!(!matches("timer:watchdog", "task:watchdog", Some("watchdog_timer_fn")));
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        for (text, reason) in [("tick:x", "no names"), ("irk:x", "no kind"), ("irq:(", "unclosed group")] {
            let error = text.parse::<SourcePattern>().unwrap_err();
            assert!(error.contains(text) && error.contains(reason), "{error}");
        }
    }
}
