//! Bands of durations, for recordings without known sources.

/// log10 of the centre of the first band, 100 ns, and distance of the centres: half a power of ten.
const FIRST: f64 = 2.0;
const STEP: f64 = 0.5;
/// The name of each band: its centre.
const NAMES: [&str; BANDS] = [
    "100ns", "316ns", "1us", "3.16us", "10us", "31.6us", "100us", "316us", "1ms", "3.16ms", "10ms", "31.6ms",
    "100ms", "316ms", "1s", "3.16s", "10s",
];
const BANDS: usize = 17;

/// The names of all bands, in the form of source names.
pub(super) fn names() -> impl Iterator<Item = String> {
    NAMES.iter().map(|centre| format!("{PREFIX}{centre}"))
}

/// The index of a band by its name; `None` for a source.
pub(super) fn place(name: &str) -> Option<usize> {
    let centre = name.strip_prefix(PREFIX)?;
    NAMES.iter().position(|one| *one == centre)
}

/// Prefix of the names of bands. No source begins like this.
const PREFIX: &str = "detours around ";

/// The one or two bands of a duration, and its share in each.
///
/// A detour between two centres counts in both, by its distance to each on a logarithmic scale. With sharp edges, a node whose ticks
/// take a little longer than its neighbours' would have them all in another band.
pub(super) fn weights(ns: u64) -> [(usize, f64); 2] {
    let place = (((ns.max(1) as f64).log10() - FIRST) / STEP).clamp(0.0, (BANDS - 1) as f64);
    let below = (place as usize).min(BANDS - 2);
    let upper = place - below as f64;
    [(below, 1.0 - upper), (below + 1, upper)]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn a_duration_is_shared_by_its_neighbours() {
        assert_eq!(weights(100), [(0, 1.0), (1, 0.0)]);
        assert_eq!(weights(1_000), [(2, 1.0), (3, 0.0)]);
        assert_eq!(weights(1), weights(100));
        assert_eq!(weights(u64::MAX), [(15, 0.0), (16, 1.0)]);
        for ns in [100, 177, 3_162, 1_000_000, 7_777_777] {
            assert!((weights(ns).iter().map(|part| part.1).sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn names_say_the_centre() {
        for (at, name) in names().enumerate() {
            assert_eq!(place(&name), Some(at));
            let centre: quell_recording::Nanos = NAMES[at].parse().unwrap();
            assert_eq!(
                weights(centre.as_nanos())
                    .map(|(band, weight)| band as f64 * weight)
                    .iter()
                    .sum::<f64>()
                    .round(),
                at as f64
            );
        }
        assert_eq!(place("task:detours around 1us"), None);
    }
}
