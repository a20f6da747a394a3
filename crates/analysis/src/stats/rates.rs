//! Two rates, each a count over a time.

use statrs::function::beta::beta_reg;

/// The probability that two counts differ at least this much although both come at one rate per time, from both sides: the exact conditional
/// test of two Poisson rates (Przyborowski & Wilenski, Biometrika 31, 1940). Counts may be fractions: those of clustered events are divided by
/// their dispersion first.
pub fn equal_rates_p((count_a, time_a): (f64, f64), (count_b, time_b): (f64, f64)) -> f64 {
    let all = count_a + count_b;
    let share = time_b / (time_a + time_b);
    if !(all > 0.0 && share > 0.0 && share < 1.0) {
        return 1.0;
    }
    // Of all events, those of b are binomial with the share of its time.
    let at_least = if count_b > 0.0 { beta_reg(count_b, count_a + 1.0, share) } else { 1.0 };
    let at_most = if count_a > 0.0 { 1.0 - beta_reg(count_b + 1.0, count_a, share) } else { 1.0 };
    (2.0 * at_least.min(at_most)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against sums of binomial probabilities.
    #[test]
    fn it_is_the_binomial_tail() {
        let near = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-9 * expected.max(1.0), "{found} for {expected}");
        };
        near(equal_rates_p((0.0, 1.0), (5.0, 1.0)), 2.0 / 32.0);
        near(equal_rates_p((5.0, 1.0), (0.0, 1.0)), 2.0 / 32.0);
        // 8 of 10 in a quarter of the time: C(10, k) 3^(10 - k) / 4^10 for k of 8, 9 and 10.
        near(equal_rates_p((2.0, 3.0), (8.0, 1.0)), 2.0 * (45.0 * 9.0 + 10.0 * 3.0 + 1.0) / 4f64.powi(10));
        near(equal_rates_p((4.0, 1.0), (4.0, 1.0)), 1.0);
        near(equal_rates_p((0.0, 1.0), (0.0, 1.0)), 1.0);
        near(equal_rates_p((1.0, 0.0), (3.0, 1.0)), 1.0);
    }
}
