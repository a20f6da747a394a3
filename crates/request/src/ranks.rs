//! Parses numbers of ranks: `16,256`, `16..2048`, `1Mi`.

use std::str::FromStr;

use crate::size;

/// An ascending list of at least one number of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankList(pub Vec<u64>);

/// Maximum number of ranks of a prediction.
const MOST_RANKS: u64 = quell_sim::MAX_RANKS;

impl RankList {
    /// The numbers from the first to the last, each twice the one before.
    pub fn doubling(first: u64, last: u64) -> Self {
        let doubled = std::iter::successors(Some(first), |n| n.checked_mul(2)).take_while(|n| *n < last);
        Self(doubled.chain([last]).collect())
    }
}

impl FromStr for RankList {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut ranks = Vec::new();
        for part in text.split(',') {
            match part.split_once("..") {
                Some((first, last)) => {
                    let (first, last) = (rank(first)?, rank(last)?);
                    if first > last {
                        return Err(format!("the range `{part}` runs backwards"));
                    }
                    ranks.extend(Self::doubling(first, last).0);
                }
                None => ranks.push(rank(part)?),
            }
        }
        ranks.sort_unstable();
        ranks.dedup();
        Ok(Self(ranks))
    }
}

fn rank(text: &str) -> Result<u64, String> {
    match size::whole(text) {
        Some(0) => Err("0 ranks do no work: give at least 1".into()),
        Some(n) if n > MOST_RANKS => {
            Err(format!("{text} ranks are more than the {MOST_RANKS} that a prediction takes"))
        }
        Some(n) => Ok(n),
        None => Err(format!("`{text}` is not a number of ranks (write `16,256`, `16..2048`, `1Mi`)")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn ranks_are_lists_and_doubling_ranges() {
        assert_eq!("16..100".parse::<RankList>().unwrap().0, [16, 32, 64, 100]);
        assert_eq!("2048,16,1Ki".parse::<RankList>().unwrap().0, [16, 1024, 2048]);
        for bad in ["", "0", "16..", "8..2", "x", "-1", "2Gi", "99999999999", "9999999999999999999Mi"] {
            assert!(bad.parse::<RankList>().is_err(), "{bad}");
        }
    }
}
