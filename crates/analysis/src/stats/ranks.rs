//! Wilcoxon's signed-rank test ("Individual Comparisons by Ranking Methods", Biometrics Bulletin 1, 1945), for paired differences of
//! unknown distribution.

/// More values than that have the normal distribution's probability, which is then right to a thousandth.
const MOST_EXACT: usize = 200;

/// What the signed ranks of differences show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRank {
    /// The probability that differences with a symmetric distribution about 0 are at least as far from balance, on either side.
    pub p: f64,
    /// How far the sum of the positive ranks is from its expected value, in standard deviations; positive if it is larger.
    pub z: f64,
}

/// Wilcoxon's signed-rank test.
///
/// Zeros are dropped, as Wilcoxon does; equal sizes share the mean of their ranks (midranks), and the distribution is that of these
/// ranks: exact with ties. `None` if no difference is left.
pub fn signed_rank(differences: &[f64]) -> Option<SignedRank> {
    let mut left: Vec<f64> =
        differences.iter().copied().filter(|one| *one != 0.0 && one.is_finite()).collect();
    left.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    if left.is_empty() {
        return None;
    }
    let doubled = doubled_midranks(&left);
    let total: usize = doubled.iter().sum();
    let positive: usize =
        doubled.iter().zip(&left).filter(|(_, value)| **value > 0.0).map(|(rank, _)| *rank).sum();
    let smaller = positive.min(total - positive);
    let tail = if left.len() <= MOST_EXACT { exact(&doubled, smaller) } else { normal(&doubled, smaller) };
    let deviation = doubled.iter().map(|rank| (*rank as f64).powi(2)).sum::<f64>().sqrt() / 2.0;
    Some(SignedRank { p: (2.0 * tail).min(1.0), z: (positive as f64 - total as f64 / 2.0) / deviation })
}

/// The centre of a symmetric distribution from which the values are drawn, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centre {
    /// The median of the means of all pairs of values, each with itself too.
    pub centre: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The estimate that belongs to Wilcoxon's test, and the 95 % interval of the centres that the test does not reject (Hodges & Lehmann,
/// "Estimates of Location Based on Rank Tests", Annals of Mathematical Statistics 34, 1963). `None` below six values, of which no
/// arrangement is rare enough. With more than 20 values the limit is that of the normal distribution, which is then off by one at most.
pub fn centre(values: &[f64]) -> Option<Centre> {
    let n = values.len();
    if n < 6 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut means: Vec<f64> =
        values.iter().enumerate().flat_map(|(i, a)| values[i..].iter().map(move |b| (a + b) / 2.0)).collect();
    means.sort_by(f64::total_cmp);
    let rejected = if n <= 20 { rejected_exact(n) } else { rejected_normal(n) };
    let last = means.len() - 1;
    Some(Centre { centre: super::order::median(&means)?, low: means[rejected], high: means[last - rejected] })
}

/// Number of means at each end whose test statistic has a probability of at most 2.5 %, less one.
fn rejected_exact(n: usize) -> usize {
    let ranks: Vec<usize> = (1..=n).collect();
    (1..).find(|limit| exact(&ranks, *limit) > 0.025).map_or(0, |limit| limit - 1)
}

fn rejected_normal(n: usize) -> usize {
    let n = n as f64;
    let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    let limit = n * (n + 1.0) / 4.0 - super::student::normal_quantile(0.975) * deviation;
    (limit.floor() as usize).saturating_sub(1)
}

/// Twice the midrank of each of the values, which are ordered by size: a whole number.
fn doubled_midranks(ordered: &[f64]) -> Vec<usize> {
    let mut first = 0;
    let groups = ordered.chunk_by(|a, b| a.abs() == b.abs());
    let ranks = groups.flat_map(|group| {
        let rank = 2 * first + group.len() + 1;
        first += group.len();
        std::iter::repeat_n(rank, group.len())
    });
    ranks.collect()
}

/// The probability of a sum of at most `limit`, where each rank counts or does not, with equal probability.
fn exact(ranks: &[usize], limit: usize) -> f64 {
    let mut probability = vec![0.0; limit + 1];
    probability[0] = 1.0;
    for rank in ranks {
        for sum in (0..=limit).rev() {
            let with = sum.checked_sub(*rank).map_or(0.0, |rest| probability[rest]);
            probability[sum] = 0.5 * (probability[sum] + with);
        }
    }
    probability.iter().sum()
}

/// The same by the normal distribution, with the correction for continuity.
fn normal(ranks: &[usize], limit: usize) -> f64 {
    let (mut total, mut squares) = (0.0, 0.0);
    for rank in ranks.iter().map(|rank| *rank as f64) {
        total += rank;
        squares += rank * rank;
    }
    let below = (limit as f64 + 1.0 - total / 2.0) / (squares / 4.0).sqrt();
    0.5 * statrs::function::erf::erfc(-below / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    fn signed_rank_p(differences: &[f64]) -> Option<f64> {
        signed_rank(differences).map(|found| found.p)
    }

    /// Of ten values, the ranks sum to 55 and their squares to 385: one sign is 27.5 / √(385 / 4) from balance.
    #[test]
    fn the_side_is_that_of_the_larger_sum() {
        let gains: Vec<f64> = (1..=10).map(f64::from).collect();
        let losses: Vec<f64> = gains.iter().map(|gain| -gain).collect();
        let far = 27.5 / (385.0_f64 / 4.0).sqrt();
        assert!((signed_rank(&gains).unwrap().z - far).abs() < 1e-12);
        assert!((signed_rank(&losses).unwrap().z + far).abs() < 1e-12);
    }

    /// Wilcoxon's own example of 1945, Table II (Fisher's data on Zea mays): the negative ranks sum to 24, p = 0.041 (R: 0.04126).
    #[test]
    fn the_papers_example_has_its_probability() {
        let darwin = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48].map(f64::from);
        assert!((signed_rank_p(&darwin).unwrap() - 0.041_26).abs() < 5e-6);
    }

    #[test]
    fn one_sign_is_the_smallest_probability() {
        for count in 1..=30 {
            let gains: Vec<f64> = (1..=count).map(f64::from).collect();
            assert_eq!(signed_rank_p(&gains), Some(2.0 * 0.5_f64.powi(count).min(0.5)));
            assert_eq!(signed_rank_p(&vec![7.0; count as usize]), Some(2.0 * 0.5_f64.powi(count).min(0.5)));
        }
    }

    #[test]
    fn balance_is_certain_chance_and_nothing_is_none() {
        assert_eq!(signed_rank_p(&[1.0, -1.0, 2.0, -2.0]), Some(1.0));
        assert_eq!(signed_rank_p(&[]), None);
        assert_eq!(signed_rank_p(&[0.0, 0.0, f64::NAN]), None);
    }

    /// The depression scores before and after treatment of Hollander & Wolfe, "Nonparametric Statistical Methods", table 3.1; the
    /// figures are the median, the sixth and the last but five of the 45 means, ordered by another program.
    #[test]
    fn the_centre_and_its_interval_are_those_of_a_textbook() {
        let differences = [0.952, -0.147, 1.022, 0.43, 0.62, 0.59, 0.49, -0.08, 0.01];
        let found = centre(&differences).unwrap();
        let is = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(is(found.centre, 0.46) && is(found.low, 0.01) && is(found.high, 0.786), "{found:?}");
        assert_eq!(centre(&differences[..5]), None);
    }

    /// The critical value of Wilcoxon's table for 20 pairs, 5 % two-sided, is 52.
    #[test]
    fn the_limits_are_those_of_the_table_and_meet_at_20_values() {
        assert_eq!(rejected_exact(20), 52);
        assert!((51..=52).contains(&rejected_normal(20)));
        assert_eq!((rejected_exact(6), rejected_exact(9)), (0, 5));
    }

    #[test]
    fn many_values_have_nearly_the_same_probability_either_way() {
        let ranks: Vec<usize> = (1..=200).map(|rank| 2 * rank).collect();
        let total: usize = ranks.iter().sum();
        for share in [0.38, 0.42, 0.46] {
            let limit = (share * total as f64) as usize / 2 * 2;
            assert!((exact(&ranks, limit) - normal(&ranks, limit)).abs() < 1e-3, "{share}");
        }
    }
}
