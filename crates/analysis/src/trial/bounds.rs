//! What a figure shows for each cost of load that is possible.

use super::MOST_PER_LOAD;
use super::paired::Paired;

/// The paired differences of a figure: once, or, where load differs between the sides, for the least and the most that load can cost.
///
/// Both costs are fixed, not fitted. So if the sides of a pair change places, all signs change, and the rank tests stay exact.
#[derive(Clone, Debug)]
pub(super) struct Bounds(Vec<Paired>);

impl Bounds {
    /// Gains that are only known to a `step`, adjusted for load where it explains them.
    pub fn adjusted(gains: Vec<f64>, loads: &[f64], step: f64) -> Self {
        Self(vec![Paired::new(gains, loads, step)])
    }

    /// Gains as measured, and less what load can have cost.
    pub fn over_loads(gains: &[f64], loads: &[f64], step: f64) -> Self {
        let less = |cost: f64| gains.iter().zip(loads).map(|(gain, load)| gain - cost * load).collect();
        Self([0.0, MOST_PER_LOAD].map(|cost| Paired::new(less(cost), &[], step)).to_vec())
    }

    /// The first, if load costs nothing.
    pub fn as_measured(&self) -> &Paired {
        &self.0[0]
    }

    /// The gain per difference in load, if it was adjusted.
    pub fn slope(&self) -> Option<f64> {
        self.as_measured().slope()
    }

    /// From the lowest end of all intervals to the highest.
    pub fn interval(&self, alpha: f64) -> [f64; 2] {
        let ends = self.0.iter().map(|one| (one.centre(), one.half_width(alpha)));
        ends.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], (centre, half)| {
            [low.min(centre - half), high.max(centre + half)]
        })
    }

    /// Whether all are on one side of 0.
    fn agree(&self) -> bool {
        self.0.iter().all(|one| (one.centre() > 0.0) == (self.as_measured().centre() > 0.0))
    }

    /// Whether all exclude 0, on the same side.
    pub fn exclude_zero(&self, alpha: f64) -> bool {
        self.agree() && self.0.iter().all(|one| one.excludes_zero(alpha))
    }

    /// Whether all lie within ± `limit`.
    pub fn lie_within(&self, limit: f64, alpha: f64) -> bool {
        self.0.iter().all(|one| one.lies_within(limit, alpha))
    }

    /// The number of pairs with which all would exclude 0, if centres and spreads stay as they are.
    pub fn pairs_to_exclude_zero(&self, alpha: f64) -> Option<u64> {
        let all = self.0.iter().map(|one| one.pairs_to_exclude_zero(alpha));
        self.agree().then(|| all.max_by_key(|pairs| pairs.unwrap_or(u64::MAX)))??
    }

    /// The number of pairs with which all would lie within ± `limit`. Where load differs, it keeps differing: then what lies outside stays there.
    pub fn pairs_to_lie_within(&self, limit: f64, alpha: f64) -> Option<u64> {
        if self.0.len() > 1 && self.0.iter().any(|one| one.centre().abs() >= limit) {
            return None;
        }
        let all = self.0.iter().map(|one| one.pairs_to_lie_within(limit, alpha));
        all.max_by_key(|pairs| pairs.unwrap_or(u64::MAX))?
    }
}
