//! Which share of the work this process has: as given by the launcher, by the batch system's job array, or by hand.

use std::str::FromStr;

use quell_replay::Launched;
use schemars::JsonSchema;
use serde::Serialize;

use quell_request::Usage;

/// The argument `I/N`: the I-th of N shares, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardText {
    /// Counted from 0.
    index: u64,
    of: u64,
}

/// A larger number of processes is a mistake.
const MOST_SHARES: u64 = 1 << 32;

impl FromStr for ShardText {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|n| (1..=MOST_SHARES).contains(n));
        match text.split_once('/').map(|(i, n)| (number(i), number(n))) {
            Some((Some(i), Some(n))) if i <= n => Ok(Self { index: i - 1, of: n }),
            _ => Err(format!("`{text}` is not a share: shares are counted from 1, as in 1/3, 2/3 and 3/3")),
        }
    }
}

/// The share of this process: the pieces whose number modulo `of` equals `index`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Share {
    /// The index of this share, from 0.
    pub index: u64,
    /// The number of shares.
    pub of: u64,
    /// What determined the share, as text.
    pub from: String,
    /// Whether a launcher started several processes, which are ended together.
    #[serde(skip)]
    pub launched: bool,
}

impl Share {
    /// From `--shard`, the launcher's facts, and the environment of a job array, which `variable` reads. Processes of a launcher within an
    /// array's task, or within a share given by hand, divide that share up among themselves.
    ///
    /// # Errors
    /// If there are other processes, but their number is not known.
    pub fn from_environment(
        typed: Option<ShardText>,
        launched: Option<Launched>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Usage> {
        let outer = match typed {
            Some(shard) => Some(Part { index: shard.index, of: shard.of, from: "--shard".into() }),
            None => array(variable)?,
        };
        let inner = launched.map(step).transpose()?.filter(|step| step.of > 1);
        let launched = inner.is_some();
        let parts: Vec<Part> = outer.into_iter().chain(inner).collect();
        let (index, of) = parts
            .iter()
            .fold((0, 1u64), |(index, of), part| (index * part.of + part.index, of.saturating_mul(part.of)));
        let from = parts.iter().map(|part| part.from.as_str()).collect::<Vec<_>>().join(" and ");
        let from = if from.is_empty() { "no launcher was seen".to_owned() } else { from };
        Ok(Self { index, of, from, launched })
    }

    /// From this process's own environment.
    ///
    /// # Errors
    /// As for [`Self::from_environment`].
    pub fn here(typed: Option<ShardText>) -> Result<Self, Usage> {
        Self::from_environment(typed, Launched::here(), |name| std::env::var(name).ok())
    }

    /// Whether a piece belongs to this process.
    pub fn holds(&self, piece: u64) -> bool {
        piece % self.of == self.index
    }

    /// Whether this process prints the result of all.
    pub fn prints_result(&self) -> bool {
        self.index == 0
    }
}

/// One level of division.
struct Part {
    index: u64,
    of: u64,
    from: String,
}

/// The part of one of a launcher's processes.
fn step(launched: Launched) -> Result<Part, Usage> {
    let Some(size) = launched.size else {
        return Err(Usage(format!(
            "a launcher started this process as number {}, and does not report how many processes there are: give each its share with --shard I/N",
            launched.rank
        )));
    };
    let from = format!("process {} of {size} of a launcher", launched.rank);
    Ok(Part { index: launched.rank.into(), of: size.into(), from })
}

/// The part of a task of a job array. Slurm gives the number of tasks; PBS and LSF do not.
fn array(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Part>, Usage> {
    let number = |name: &str| variable(name).and_then(|text| text.trim().parse::<u64>().ok());
    if let Some(task) = number("SLURM_ARRAY_TASK_ID") {
        return slurm(task, number).map(Some);
    }
    for name in ["PBS_ARRAY_INDEX", "LSB_JOBINDEX"] {
        // LSF counts from 1, and sets 0 outside of arrays.
        let Some(task) = number(name).filter(|task| *task > 0 || name == "PBS_ARRAY_INDEX") else { continue };
        return Err(Usage(format!(
            "this is task {task} of a job array ({name}), which does not report how many tasks there are: give --shard ${name}/N for tasks \
             that are counted from 1 to N"
        )));
    }
    Ok(None)
}

fn slurm(task: u64, number: impl Fn(&str) -> Option<u64>) -> Result<Part, Usage> {
    let [min, max, count] = ["MIN", "MAX", "COUNT"].map(|end| number(&format!("SLURM_ARRAY_TASK_{end}")));
    let step = number("SLURM_ARRAY_TASK_STEP").unwrap_or(1).max(1);
    if let (Some(min), Some(max), Some(count)) = (min, max, count) {
        let even = min <= task && task <= max && (max - min) / step + 1 == count;
        if even && (task - min).is_multiple_of(step) {
            let index = (task - min) / step;
            return Ok(Part {
                index,
                of: count,
                from: format!("task {} of {count} of Slurm's job array", index + 1),
            });
        }
    }
    Err(Usage(format!(
        "this is task {task} of a Slurm job array with unevenly spaced numbers: give each task its share with --shard I/N"
    )))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn share(
        typed: Option<&str>,
        size: Option<(u32, u32)>,
        pairs: &[(&str, &str)],
    ) -> Result<(u64, u64), String> {
        let launched = size.map(|(rank, size)| Launched { rank, size: Some(size), local_rank: None });
        let variable = |name: &str| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned());
        let share = Share::from_environment(typed.map(|text| text.parse().unwrap()), launched, variable);
        share.map(|share| (share.index, share.of)).map_err(|error| error.to_string())
    }

    fn slurm(
        id: &'static str,
        min: &'static str,
        max: &'static str,
        count: &'static str,
    ) -> [(&'static str, &'static str); 5] {
        [
            ("SLURM_ARRAY_TASK_ID", id),
            ("SLURM_ARRAY_TASK_MIN", min),
            ("SLURM_ARRAY_TASK_MAX", max),
            ("SLURM_ARRAY_TASK_COUNT", count),
            ("SLURM_ARRAY_TASK_STEP", if min == "10" { "5" } else { "1" }),
        ]
    }

    #[test]
    fn alone_all_is_ones_own() {
        assert_eq!(share(None, None, &[]), Ok((0, 1)));
        assert_eq!(share(None, Some((0, 1)), &[]), Ok((0, 1)));
        assert_eq!(share(None, None, &[("LSB_JOBINDEX", "0")]), Ok((0, 1)), "no array");
    }

    #[test]
    fn launchers_arrays_and_hands_share_and_multiply() {
        assert_eq!(share(None, Some((2, 4)), &[]), Ok((2, 4)));
        assert_eq!(share(Some("3/3"), None, &[]), Ok((2, 3)));
        assert_eq!(share(None, None, &slurm("3", "1", "4", "4")), Ok((2, 4)));
        assert_eq!(share(None, None, &slurm("15", "10", "20", "3")), Ok((1, 3)));
        assert_eq!(
            share(None, None, &slurm("7", "7", "7", "1")),
            Ok((0, 1)),
            "one task done again does all that is left"
        );
        assert_eq!(share(None, Some((1, 2)), &slurm("3", "1", "4", "4")), Ok((5, 8)));
        assert_eq!(share(Some("2/3"), Some((1, 2)), &[("PBS_ARRAY_INDEX", "2")]), Ok((3, 6)));
    }

    #[test]
    fn together_they_hold_each_piece_once() {
        let all = (1..=3).flat_map(|i| (0..2).map(move |rank| (format!("{i}/3"), rank)));
        let shares: Vec<Share> = all
            .map(|(typed, rank)| {
                let launched = Launched { rank, size: Some(2), local_rank: None };
                Share::from_environment(Some(typed.parse().unwrap()), Some(launched), |_| None).unwrap()
            })
            .collect();
        assert!((0..100).all(|piece| shares.iter().filter(|share| share.holds(piece)).count() == 1));
        assert_eq!(shares.iter().filter(|share| share.prints_result()).count(), 1);
    }

    #[test]
    fn what_cannot_be_known_is_asked_for() {
        for (pairs, printed) in [
            (vec![("PBS_ARRAY_INDEX", "3")], "--shard $PBS_ARRAY_INDEX/N"),
            (vec![("LSB_JOBINDEX", "3")], "--shard $LSB_JOBINDEX/N"),
            (slurm("9", "1", "12", "6").to_vec(), "unevenly spaced"),
            (vec![("SLURM_ARRAY_TASK_ID", "1")], "--shard I/N"),
        ] {
            assert!(share(None, None, &pairs).is_err_and(|error| error.contains(printed)), "{pairs:?}");
        }
        let counted = Launched { rank: 3, size: None, local_rank: None };
        assert!(Share::from_environment(None, Some(counted), |_| None).is_err());
        for bad in ["", "0/3", "4/3", "1", "1/0", "-1/3", "1/99999999999", "a/b"] {
            assert!(bad.parse::<ShardText>().is_err(), "{bad}");
        }
    }
}
