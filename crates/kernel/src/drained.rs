//! Emptying the rings in portions.

/// The result of a [`Recorder::drain`](crate::Recorder::drain).
#[derive(Clone, Copy, Debug)]
pub struct Drained {
    /// The share of one ring that it may have filled; can exceed 1 where there are several rings.
    pub fill: f64,
    /// Whether more records may be waiting.
    pub more: bool,
}

/// Maximum amount of records to take in one call, in multiples of the ring's size.
const MOST_FILL: f64 = 1024.0;

/// Takes portions until no record waits; returns how full the fullest ring was. If records arrive faster than they are taken, the rest waits
/// for the next call, or is lost and counted.
///
/// # Errors
/// Those of `portion`.
pub fn drain_portions<E>(mut portion: impl FnMut() -> Result<Drained, E>) -> Result<f64, E> {
    let mut fill = 0.0;
    loop {
        let drained = portion()?;
        fill += drained.fill;
        if !drained.more || fill > MOST_FILL {
            return Ok(fill);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn portions_are_taken_until_none_waits() {
        let mut left = 5;
        let Ok(fill) = drain_portions(|| {
            left -= 1;
            Ok::<_, Infallible>(Drained { fill: 0.5, more: left > 0 })
        });
        assert_eq!((left, fill), (0, 2.5));
    }

    #[test]
    fn records_that_arrive_as_fast_as_they_are_taken_do_not_keep_it() {
        let Ok(fill) = drain_portions(|| Ok::<_, Infallible>(Drained { fill: 100.0, more: true }));
        assert!((MOST_FILL..2.0 * MOST_FILL).contains(&fill));
    }

    #[test]
    fn an_error_ends_it() {
        assert_eq!(drain_portions(|| Err("full")), Err("full"));
    }
}
