//! Distances between distributions of durations.

/// The share of a uniform density that both sides are mixed with before their divergence is computed. It represents
/// what a finite recording cannot exclude, and keeps the divergence finite: below ln(points / floor), some 20 nats.
pub const FLOOR: f64 = 1e-6;

/// The Kullback-Leibler divergence D(p‖q) in nats of two densities on one evenly spaced grid of step `step`, each
/// first scaled to an integral of 1 and mixed with a uniform density by [`FLOOR`]. 0 for equal densities, never
/// negative, not symmetric; 0 where a density is empty.
///
/// De et al., "A Trace-driven Emulation Framework to Predict Scalability of Large Clusters in Presence of OS
/// Jitter", 2008, §IV-D, score an emulated trace against the measured one with it (unscaled, so that their scores
/// compare among themselves only). Kullback & Leibler, Ann. Math. Statist. 22, 1951.
pub fn kullback_leibler(p: &[f64], q: &[f64], step: f64) -> f64 {
    let count = p.len().min(q.len());
    let (sum_p, sum_q) = (p.iter().sum::<f64>() * step, q.iter().sum::<f64>() * step);
    if count == 0 || sum_p <= 0.0 || sum_q <= 0.0 {
        return 0.0;
    }
    let uniform = FLOOR / (count as f64 * step);
    let mixed = |value: f64, sum: f64| (1.0 - FLOOR) * value / sum + uniform;
    let terms = p.iter().zip(q).map(|(&p, &q)| {
        let (p, q) = (mixed(p, sum_p), mixed(q, sum_q));
        p * (p / q).ln()
    });
    (terms.sum::<f64>() * step).max(0.0)
}

/// The Wasserstein-1 (earth mover's) distance in nanoseconds of two samples in ascending order: the mean time by
/// which a duration must change to turn one distribution into the other, the integral of |F − G|
/// (Vallender, Theory Probab. Appl. 18, 1974). Exact. `None` if one sample is empty, 0 if both are.
pub fn wasserstein(a: &[u64], b: &[u64]) -> Option<f64> {
    if a.is_empty() && b.is_empty() {
        return Some(0.0);
    }
    let mut at = *a.first()?.min(b.first()?);
    let (mut i, mut j) = (0, 0);
    let mut distance = 0.0;
    while i < a.len() || j < b.len() {
        let next = match (a.get(i), b.get(j)) {
            (Some(&x), Some(&y)) => x.min(y),
            (Some(&x), None) | (None, Some(&x)) => x,
            (None, None) => break,
        };
        let apart = (i as f64 / a.len() as f64 - j as f64 / b.len() as f64).abs();
        distance += apart * next.saturating_sub(at) as f64;
        at = next;
        i += usize::from(a.get(i) == Some(&next));
        j += usize::from(b.get(j) == Some(&next));
    }
    Some(distance)
}

/// The Kolmogorov-Smirnov distance of two samples in ascending order: the largest |F − G|, from 0 to 1. `None` if one sample is empty, 0 if
/// both are.
pub fn kolmogorov_smirnov(a: &[u64], b: &[u64]) -> Option<f64> {
    if a.is_empty() && b.is_empty() {
        return Some(0.0);
    }
    a.first().zip(b.first())?;
    let (mut i, mut j) = (0, 0);
    let mut distance = 0.0f64;
    while let (Some(&x), Some(&y)) = (a.get(i), b.get(j)) {
        let at = x.min(y);
        i += a[i..].partition_point(|&x| x <= at);
        j += b[j..].partition_point(|&y| y <= at);
        distance = distance.max((i as f64 / a.len() as f64 - j as f64 / b.len() as f64).abs());
    }
    Some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_distances() {
        assert_eq!(wasserstein(&[1, 2, 3], &[1, 2, 3]), Some(0.0));
        assert_eq!(wasserstein(&[10], &[17]), Some(7.0));
        assert_eq!(wasserstein(&[0, 0], &[0, 10]), Some(5.0));
        assert_eq!(wasserstein(&[5, 15, 25], &[105, 115, 125]), Some(100.0));
        assert_eq!(wasserstein(&[], &[1]), None);
        assert_eq!(wasserstein(&[0], &[u64::MAX]), Some(u64::MAX as f64));
    }

    #[test]
    fn the_largest_step_apart() {
        assert_eq!(kolmogorov_smirnov(&[1, 2, 3], &[1, 2, 3]), Some(0.0));
        assert_eq!(kolmogorov_smirnov(&[1, 2], &[3, 4]), Some(1.0));
        assert_eq!(kolmogorov_smirnov(&[1, 1, 5, 5], &[1, 5, 5, 5]), Some(0.25));
        assert_eq!(kolmogorov_smirnov(&[], &[1]), None);
    }

    /// D(N(0, 1) ‖ N(m, s²)) = ln s + (1 + m²) / (2 s²) − 1/2.
    #[test]
    fn divergence_of_normal_densities() {
        const STEP: f64 = 0.01;
        let density = |mean: f64, deviation: f64| -> Vec<f64> {
            let grid = (-1000..=1000).map(|i| f64::from(i) * STEP);
            grid.map(|x| (-((x - mean) / deviation).powi(2) / 2.0).exp() / deviation).collect()
        };
        for (mean, deviation) in [(0.5, 1.0), (1.0, 1.0), (0.0, 2.0), (1.0, 3.0), (0.5, 0.8)] {
            let expected = f64::ln(deviation) + (1.0 + mean * mean) / (2.0 * deviation * deviation) - 0.5;
            let found = kullback_leibler(&density(0.0, 1.0), &density(mean, deviation), STEP);
            assert!((found / expected - 1.0).abs() < 0.005, "{found} for {expected}");
        }
    }

    fn sorted() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(0u64..1_000_000, 1..60).prop_map(|mut v| {
            v.sort_unstable();
            v
        })
    }

    proptest! {
        #[test]
        fn wasserstein_is_symmetric_and_shifts(a in sorted(), b in sorted(), shift in 0u64..1_000_000) {
            let there = wasserstein(&a, &b).unwrap();
            prop_assert!((there - wasserstein(&b, &a).unwrap()).abs() < 1e-6);
            let moved: Vec<u64> = a.iter().map(|x| x + shift).collect();
            prop_assert!((wasserstein(&a, &moved).unwrap() - shift as f64).abs() < 1e-6 * shift as f64 + 1e-9);
        }

        #[test]
        fn divergence_does_not_depend_on_the_scale_and_has_a_bound(
            p in prop::collection::vec(0.0f64..10.0, 1..50), q in prop::collection::vec(0.0f64..10.0, 50),
        ) {
            let q = &q[..p.len()];
            let apart = kullback_leibler(&p, q, 0.1);
            let doubled: Vec<f64> = p.iter().map(|p| 2.0 * p).collect();
            prop_assert!((kullback_leibler(&doubled, q, 0.1) - apart).abs() < 1e-9);
            prop_assert!(apart <= (p.len() as f64 / FLOOR).ln());
            prop_assert_eq!(kullback_leibler(&p, &p, 0.1), 0.0);
        }
    }
}
