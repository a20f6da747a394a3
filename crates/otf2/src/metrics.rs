//! Converts metric events to noise in ns.

use crate::ffi::otf2::{ACCUMULATED_LAST, BASE_BINARY, MODE_RELATIVE, MODE_VALUE, TYPE_DOUBLE, TYPE_INT64};

/// The meaning of a metric event's values.
#[derive(Debug)]
pub(crate) struct Metric {
    /// The noise source of each value, if it belongs to one.
    pub(crate) members: Vec<Option<Member>>,
    /// The location whose noise it is; `None` for the location of the event.
    pub(crate) location: Option<u64>,
}

/// The values of a noise source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Its index among the sources.
    pub(crate) source: u32,
    /// Whether each value is an increment rather than a total.
    increment: bool,
    scale: Scale,
}

/// The factor that converts a value to ns: as a fraction, and as a float.
#[derive(Clone, Copy, Debug)]
struct Scale {
    times: u128,
    by: u128,
    factor: f64,
}

impl Member {
    /// Builds the conversion, or says what is wrong with the definition.
    pub(crate) fn new(source: u32, mode: u64, base: u32, exponent: i64, unit: &str) -> Result<Self, String> {
        let unit_ns: u128 = match unit.trim() {
            "ns" | "" | "#" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" | "sec" => 1_000_000_000,
            other => return Err(format!("its unit is {other:?}, not ns, us, ms or s")),
        };
        let base: u128 = if base == BASE_BINARY { 2 } else { 10 };
        let size =
            u32::try_from(exponent.unsigned_abs()).ok().and_then(|exponent| base.checked_pow(exponent));
        // A 64-bit value times 10^18 is below 2^128.
        let size = size.filter(|&size| size.saturating_mul(unit_ns) <= 10u128.pow(18));
        let size = size.ok_or_else(|| format!("its values are in units of {base}^{exponent} {unit}"))?;
        let (times, by) = if exponent < 0 { (unit_ns, size) } else { (unit_ns * size, 1) };
        let increment = mode & MODE_VALUE == MODE_RELATIVE || mode == ACCUMULATED_LAST;
        Ok(Self { source, increment, scale: Scale { times, by, factor: times as f64 / by as f64 } })
    }
}

/// The noise of a source in a location so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter {
    whole: u64,
    broken: f64,
    /// In ns, as last reported.
    total_ns: u64,
}

impl Counter {
    /// Adds a metric's value, and returns the new total in ns if it changed.
    pub(crate) fn take(&mut self, member: &Member, class: u32, bits: u64) -> Option<u64> {
        let Scale { times, by, factor } = member.scale;
        if class == TYPE_DOUBLE {
            let value = f64::from_bits(bits).max(0.0); // max() also turns NaN into 0
            self.broken = if member.increment { self.broken + value } else { value };
        } else {
            // A negative count is treated as 0.
            let value = if class == TYPE_INT64 { bits.cast_signed().max(0).cast_unsigned() } else { bits };
            self.whole = if member.increment { self.whole.saturating_add(value) } else { value };
        }
        let whole = u64::try_from(u128::from(self.whole) * times / by).unwrap_or(u64::MAX);
        // `as` saturates at the largest value.
        let total_ns = whole.saturating_add((self.broken * factor).round() as u64);
        let changed = total_ns != self.total_ns;
        self.total_ns = total_ns;
        changed.then_some(total_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::otf2::{BASE_DECIMAL, TYPE_UINT64};

    #[test]
    fn values_become_ns() {
        let take = |mode, base, exponent, unit, values: &[(u32, u64)]| {
            let member = Member::new(0, mode, base, exponent, unit).unwrap();
            let mut counter = Counter::default();
            values.iter().map(|&(class, bits)| counter.take(&member, class, bits)).collect::<Vec<_>>()
        };
        let large = (1 << 53) + 1;
        assert_eq!(
            take(0, BASE_DECIMAL, 0, "ns", &[(TYPE_UINT64, large), (TYPE_UINT64, large)]),
            [Some(large), None]
        );
        assert_eq!(take(0, BASE_DECIMAL, -3, "us", &[(TYPE_UINT64, 7)]), [Some(7)]);
        assert_eq!(
            take(0, BASE_BINARY, 10, "us", &[(TYPE_INT64, 2), (TYPE_INT64, u64::MAX)]),
            [Some(2_048_000), Some(0)]
        );
        let parts = [(TYPE_DOUBLE, 0.4f64.to_bits()), (TYPE_DOUBLE, 0.4f64.to_bits())];
        assert_eq!(
            take(2, BASE_DECIMAL, 0, "ns", &parts),
            [None, Some(1)],
            "increments add up before they are rounded"
        );
        assert_eq!(
            take(ACCUMULATED_LAST, BASE_DECIMAL, 0, "s", &[(TYPE_UINT64, 1); 2]),
            [Some(1_000_000_000), Some(2_000_000_000)]
        );
        assert_eq!(take(0, BASE_DECIMAL, 0, "ns", &[(TYPE_DOUBLE, f64::NAN.to_bits())]), [None]);
        assert!(
            Member::new(0, 0, BASE_DECIMAL, 40, "ns").is_err()
                && Member::new(0, 0, BASE_DECIMAL, 0, "W").is_err()
        );
    }
}
