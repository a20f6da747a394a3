//! Reads a netgauge selfish file exactly as LogGOPSim reads its noise: start and duration are rounded to whole nanoseconds, and overlaps
//! and the order of lines are kept.

use std::path::Path;

use quell_recording::{one_line, whole_file};

/// The maximum length of a trace, 146 years in ns.
const MOST_NS: f64 = (1u64 << 62) as f64;

/// The detours of a file as (start, duration) in ns; `None` if it is no netgauge selfish file.
pub fn read(path: &Path) -> anyhow::Result<Option<Vec<(u64, u64)>>> {
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = whole_file::read(path, whole_file::MOST_BYTES)?;
    let Ok(text) = str::from_utf8(&bytes) else { return Ok(None) };
    if !is_netgauges(text) {
        return Ok(None);
    }
    parse(text).map(Some).map_err(|reason| anyhow::anyhow!("{}: {reason}", path.display()))
}

/// Whether a file holds detours as netgauge writes them: comments, and then a start and a duration in each line.
fn is_netgauges(text: &str) -> bool {
    let is_comment = |line: &&str| line.starts_with('#');
    let is_of_others =
        |line: &str| line.contains("Benchmark Method:") && !line.trim_end().ends_with("selfish");
    let mut rows = text.lines().filter(|line| !line.trim().is_empty() && !is_comment(line));
    !text.lines().filter(is_comment).any(is_of_others)
        && match rows.next() {
            Some(row) => {
                row.split_whitespace().count() == 2
                    && row.split_whitespace().all(|word| nanos(word).is_some())
            }
            None => text.starts_with('#'),
        }
}

fn parse(text: &str) -> Result<Vec<(u64, u64)>, String> {
    let mut detours = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let mut fields = line.split_whitespace().map(nanos);
        match (fields.next().flatten(), fields.next().flatten()) {
            (Some(start), Some(duration)) => detours.push((start, duration)),
            _ => {
                return Err(format!(
                    "line {}: `{}` is not `start<TAB>duration` in ns",
                    index + 1,
                    shown(line)
                ));
            }
        }
    }
    Ok(detours)
}

/// Rounds to whole nanoseconds, halves away from zero.
fn nanos(field: &str) -> Option<u64> {
    field.parse::<f64>().ok().filter(|ns| (0.0..=MOST_NS).contains(ns)).map(|ns| ns.round() as u64)
}

/// Shortens and escapes a line of a foreign file for an error message.
pub fn shown(line: &str) -> String {
    one_line(&line.chars().take(40).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_is_left_to_the_importers() {
        for text in ["# x\n1\t2\n", "1 2\n", "# Benchmark Method: selfish\n\n1 2\n", "# nothing\n"] {
            assert!(is_netgauges(text), "{text}");
        }
        for text in [
            "# cpu_mhz: 2597\n 5027541 690 66742 25699\n",
            "# Benchmark Method: fwq\n1 2\n",
            "# a model\nname = 'x'\n",
            "",
        ] {
            assert!(!is_netgauges(text), "{text}");
        }
    }

    #[test]
    fn lines_are_read_as_loggopsim_reads_them() {
        let text = "# Selfish\n0.00\t12.50\n10.49\t0.5\n\n5 7\n# end\n";
        assert_eq!(parse(text), Ok(vec![(0, 13), (10, 1), (5, 7)]), "rounded, unsorted");
        for bad in ["1.0\n", "x 1\n", "1 -1\n", "1 NaN\n", "1 1e300\n", " # x y\n"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
