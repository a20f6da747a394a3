//! Converts netgauge's LogGP file (`netgauge -x loggp -o FILE`; spcl/netgauge f3ef494, ptrn_loggp.c) to a network for `--net`: one row per
//! message size with times in us, `size n PRTT(1,0,s) PRTT(n,0,s) PRTT(n,d,s) L o_s o_r g G lsqu`.
//!
//! Where netgauge detects a protocol change, it writes a second row of the same size, the first with g and G of the protocol before.
//! By then it has measured [`LATER`] sizes of the new protocol. Its L is half a round trip of the smallest message, including both
//! overheads; that of [`super`] excludes them. It does not measure S: here S is the size of the first protocol change, or if there
//! is none, the largest measured size. It does not separate O from G.

use quell_recording::one_line;
use quell_sim::loggops::{Network, PerByte, SizeRange};

use super::preset::Preset;

/// The beginning of such a file, after `#`.
pub const HEADER: &str = "size n PRTT(1,0,s)";
/// Number of sizes of a new protocol, with that of the doubled row, when netgauge detects it. It looks `x`, five, sizes back: only the fit
/// with the first of them has to be twice as bad, so that is new, though it prints it as the last of the old protocol.
const LATER: usize = 5;
/// Maximum number of ranges, as in [`Preset::from_toml`].
const MOST_RANGES: usize = 1_024;
/// Maximum time of a message: a day, in us.
const MOST_US: f64 = 86_400e6;

struct Row {
    bytes: u64,
    /// Half a round trip.
    half_us: f64,
    /// Overhead of a send and a receive.
    overhead_us: f64,
    /// g and G of the fit up to this row, if there is one.
    gap: Option<(f64, f64)>,
}

/// Reads a file's text; `source` describes the origin of the network. The second part lists warnings for the reader.
///
/// # Errors
/// The row that cannot be read, with its line number.
pub fn read(text: &str, source: &str) -> Result<(Preset, Vec<String>), String> {
    let mut rows: Vec<Row> = Vec::new();
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if !line.is_empty() && !line.starts_with('#') {
            let row = row(line).map_err(|reason| format!("line {}: {reason}", index + 1))?;
            if rows.last().is_some_and(|last| last.bytes > row.bytes) {
                return Err(format!(
                    "line {}: the size {} is smaller than that above it",
                    index + 1,
                    row.bytes
                ));
            }
            rows.push(row);
        }
    }
    let segments = segments(&rows);
    let (Some(first), Some(largest)) = (segments.first(), rows.last()) else {
        return Err("it holds no row with a g and a G: netgauge needs three sizes to fit them".into());
    };
    let limit = if segments.len() > 1 { first.to } else { largest.bytes };
    let net = |segment: &Segment, smallest: &Row| {
        let ns = |us: f64| (us.max(0.0) * 1e3).round() as u64;
        let half = ns(smallest.half_us);
        let gap = ns(segment.gap.0);
        let overhead = ns(smallest.overhead_us).min(gap).min(half / 2);
        Network {
            latency: half - 2 * overhead,
            overhead,
            gap,
            gap_per_byte: PerByte::from_femtoseconds((segment.gap.1.max(0.0) * 1e9).round() as u64),
            overhead_per_byte: PerByte::default(),
            eager_limit: limit,
        }
    };
    let smallest = &rows[0];
    let network = Network {
        gap_per_byte: segments.last().map_or_else(PerByte::default, |last| net(last, smallest).gap_per_byte),
        ..net(first, smallest)
    };
    let range = |segment: &Segment| SizeRange {
        from_bytes: segment.from,
        to_bytes: segment.to,
        network: Network { eager_limit: limit, ..net(segment, smallest) },
    };
    let ranges: Vec<SizeRange> = segments.iter().map(range).collect();
    if ranges.len() > MOST_RANGES {
        return Err(format!(
            "netgauge saw the protocol change {} times: that is no measurement",
            ranges.len()
        ));
    }
    let mut known = vec![format!(
        "netgauge does not measure S: it is {limit}, {}; O is 0, as all time by bytes is in G",
        if segments.len() > 1 {
            "where the protocol first changed"
        } else {
            "the largest size that was measured"
        }
    )];
    if segments.iter().any(|segment| segment.gap.0 < 0.0 || segment.gap.1 < 0.0) {
        known.push("a fitted g or G is below 0, and was taken for 0: the measurement was disturbed".into());
    }
    let source = format!("netgauge loggp, {}", one_line(source));
    Ok((
        Preset { net: network, ranges, levels: Vec::new(), source, hosts: Vec::new(), date: String::new() },
        known,
    ))
}

/// The range of sizes of one protocol.
struct Segment {
    from: u64,
    to: u64,
    gap: (f64, f64),
}

/// Splits rows into protocols. A second row of the same size shows that a protocol ended [`LATER`] sizes before, and has its fit.
fn segments(rows: &[Row]) -> Vec<Segment> {
    let mut all: Vec<Segment> = Vec::new();
    let mut from = 1;
    let mut sizes: Vec<u64> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        if sizes.last() != Some(&row.bytes) {
            sizes.push(row.bytes);
        }
        let next = rows.get(at + 1);
        let ends = next.is_none_or(|next| next.bytes == row.bytes);
        if !ends {
            continue;
        }
        // If the fit at the end of a protocol failed, that of the row before is used.
        let earlier = rows[..=at].iter().rev().take_while(|earlier| earlier.bytes >= from);
        let Some(gap) = earlier.filter_map(|row| row.gap).next() else { continue };
        let last = if next.is_some() { sizes.len().saturating_sub(LATER + 1) } else { sizes.len() - 1 };
        let to = sizes[last].max(from);
        all.push(Segment { from, to, gap });
        from = to + 1;
    }
    all
}

fn row(line: &str) -> Result<Row, String> {
    let shown = || one_line(&line.chars().take(40).collect::<String>());
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [bytes, _, once, _, _, _, sent, received, gap, per_byte, _] = fields[..] else {
        return Err(format!("`{}` has {} numbers, and not 11", shown(), fields.len()));
    };
    let time = |word: &str| {
        let us = word.parse::<f64>().ok().filter(|us| us.abs() <= MOST_US);
        us.ok_or_else(|| format!("`{}` is not a time in us", one_line(word)))
    };
    let bytes = bytes.parse::<u64>().ok().filter(|bytes| *bytes < 1 << 62);
    let once = time(once)?;
    if once < 0.0 {
        return Err("a round trip took less than no time".into());
    }
    // For one or two sizes there is no fit, and the field is not a number.
    let fit = |word: &str| word.parse::<f64>().ok().filter(|value| value.abs() <= MOST_US);
    Ok(Row {
        bytes: bytes.ok_or_else(|| format!("`{}` does not begin with a size", shown()))?,
        half_us: once / 2.0,
        overhead_us: (time(sent)? + time(received)?) / 2.0,
        gap: fit(gap).zip(fit(per_byte)),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = "# size n PRTT(1,0,s) PRTT(n,0,s) PRTT(n,PRTT(1,0,s),s) L o_s o_r g G lsqu(g,G)\n\
        1 10 4.0002 32.329338 48.0024 2 0.4 0.6 -nan -nan -nan\n\
        1025 10 4.205 35.661299 50.46 2 0.4 0.6 3.147343 0.000339 -nan\n\
        2049 10 4.4098 38.286091 52.9176 2 0.4 0.6 3.160477 0.000301 0.032078\n\
        3073 10 4.6146 41.924463 55.3752 2 0.4 0.6 3.148412 0.000319 0.032539\n\
        4097 10 4.8194 41.784905 57.8328 2 0.4 0.6 3.217767 0.000251 0.129261\n\
        5121 10 5.0242 45.80311 60.2904 2 0.4 0.6 3.212396 0.000255 0.112365\n\
        6145 10 5.229 38.203256 62.748 2 0.4 0.6 3.411575 0.000138 0.378475\n\
        7169 10 14.4338 152.966725 173.2056 2 0.4 0.6 1.579013 0.001033 3.44411\n\
        8193 10 14.6386 160.174253 175.6632 2 0.4 0.6 0.624819 0.001432 3.675484\n\
        9217 10 14.8434 159.042925 178.1208 2 0.4 0.6 0.304619 0.001549 3.495245\n\
        10241 10 15.0482 163.811725 180.5784 2 0.4 0.6 0.255334 0.001565 3.296849\n\
        11265 10 15.253 157.352624 183.036 2 0.4 0.6 3.411575 0.000138 0.378475\n\
        11265 10 15.253 157.352624 183.036 2 0.4 0.6 16.734114 -0.000062 0.366538\n\
        12289 10 15.4578 163.243946 185.4936 2 0.4 0.6 15.919508 0.000026 0.341861\n\
        13313 10 15.6626 162.888987 187.9512 2 0.4 0.6 15.796656 0.000039 0.297762\n";

    /// What netgauge's steps make of seven sizes of a protocol, and then others. It detects them at 11265 bytes.
    #[test]
    fn a_change_of_protocol_makes_two_ranges_and_s() {
        let (preset, known) = read(FILE, "a\u{1b}").unwrap();
        let net = preset.net;
        assert_eq!((net.latency, net.overhead, net.gap, net.eager_limit), (1_000, 500, 3_412, 6_145));
        assert!((net.gap_per_byte.as_nanos() - 0.039).abs() < 1e-9, "{net:?}");
        let ranges: Vec<_> =
            preset.ranges.iter().map(|r| (r.from_bytes, r.to_bytes, r.network.gap)).collect();
        assert_eq!(ranges, [(1, 6_145, 3_412), (6_146, 13_313, 15_797)]);
        assert!(known[0].contains("where the protocol first changed") && !preset.source.contains('\u{1b}'));
        assert_eq!(Preset::from_toml(&preset.to_toml().unwrap()).unwrap(), preset);
    }

    #[test]
    fn what_is_no_measurement_is_reported_with_its_line() {
        for (text, why) in [
            ("# only\n", "no row"),
            ("1 10 4\n", "line 1: `1 10 4` has 3 numbers"),
            ("1 10 nan 1 1 1 1 1 1 1 1\n", "line 1: `nan` is not a time"),
            ("1 10 -4 1 1 1 1 1 1 1 1\n", "took less than no time"),
            ("1 10 4 1 1 1 1 1 nan nan 1\n", "no row with a g"),
            ("9 10 4 1 1 1 1 1 1 1 1\n1 10 4 1 1 1 1 1 1 1 1", "line 2: the size 1 is smaller"),
            ("99999999999999999999 10 4 1 1 1 1 1 1 1 1", "does not begin with a size"),
        ] {
            let error = read(text, "f").unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn mutated_files_are_read_or_refused(at in 0..FILE.len(), with in "[0-9 naN.e-]{0,4}") {
            let mut text = FILE.to_owned();
            if text.is_char_boundary(at) {
                text.replace_range(at..(at + with.len()).min(text.len()), &with);
            }
            if let Ok((preset, _)) = read(&text, "f") {
                let again = Preset::from_toml(&preset.to_toml().unwrap());
                prop_assert!(again.is_ok(), "{:?}", again);
            }
        }
    }
}
