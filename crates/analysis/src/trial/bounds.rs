//! What a figure shows for each cost of load that is possible.

use super::MOST_PER_LOAD;
use super::paired::Paired;

/// The paired differences of a figure: once, or, where load differs between the sides, for the least and the most that load can cost.
///
/// Both costs are fixed, not fitted. So if the sides of a pair change places, all signs change, and the rank tests stay exact.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// What an effect must show in.
    costs: Vec<Paired>,
    /// The differences as measured, if those above are adjusted: a fitted slope may hide an effect that comes with a little load.
    unadjusted: Option<Paired>,
}

impl Bounds {
    /// Gains that are only known to a `step`, adjusted for load where it explains them.
    pub fn adjusted(gains: Vec<f64>, loads: &[f64], step: f64) -> Self {
        let measured = Paired::new(gains.clone(), &[], step);
        let adjusted = Paired::new(gains, loads, step);
        let unadjusted = adjusted.slope().is_some().then_some(measured);
        Self { costs: vec![adjusted], unadjusted }
    }

    /// Gains as measured, and less what load can have cost.
    pub fn over_loads(gains: &[f64], loads: &[f64], step: f64) -> Self {
        let less = |cost: f64| gains.iter().zip(loads).map(|(gain, load)| gain - cost * load).collect();
        let costs = [0.0, MOST_PER_LOAD].map(|cost| Paired::new(less(cost), &[], step)).to_vec();
        Self { costs, unadjusted: None }
    }

    /// What the gain is taken from: adjusted for load if that explains it, and as measured where load differs.
    pub fn best(&self) -> &Paired {
        &self.costs[0]
    }

    /// The gain per difference in load, if it was adjusted.
    pub fn slope(&self) -> Option<f64> {
        self.best().slope()
    }

    /// From the lowest end of all intervals to the highest.
    pub fn interval(&self, alpha: f64) -> [f64; 2] {
        let ends = self.costs.iter().map(|one| (one.centre(), one.half_width(alpha)));
        ends.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], (centre, half)| {
            [low.min(centre - half), high.max(centre + half)]
        })
    }

    /// Whether all are on one side of 0.
    fn agree(&self) -> bool {
        self.costs.iter().all(|one| (one.centre() > 0.0) == (self.best().centre() > 0.0))
    }

    /// Whether all exclude 0, on the same side.
    pub fn exclude_zero(&self, alpha: f64) -> bool {
        self.agree() && self.costs.iter().all(|one| one.excludes_zero(alpha))
    }

    /// Whether all lie within ± `limit`, as measured too.
    pub fn lie_within(&self, limit: f64, alpha: f64) -> bool {
        self.costs.iter().chain(&self.unadjusted).all(|one| one.lies_within(limit, alpha))
    }

    /// The number of pairs with which all would exclude 0, if centres and spreads stay as they are.
    pub fn pairs_to_exclude_zero(&self, alpha: f64) -> Option<u64> {
        let all = self.costs.iter().map(|one| one.pairs_to_exclude_zero(alpha));
        self.agree().then(|| all.max_by_key(|pairs| pairs.unwrap_or(u64::MAX)))??
    }

    /// The number of pairs with which all would lie within ± `limit`. Where load differs, it keeps differing: then what lies outside stays there.
    pub fn pairs_to_lie_within(&self, limit: f64, alpha: f64) -> Option<u64> {
        if self.costs.len() > 1 && self.costs.iter().any(|one| one.centre().abs() >= limit) {
            return None;
        }
        let all = self.costs.iter().chain(&self.unadjusted);
        let all = all.map(|one| one.pairs_to_lie_within(limit, alpha));
        all.max_by_key(|pairs| pairs.unwrap_or(u64::MAX))?
    }
}
