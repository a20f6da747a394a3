//! CPU masks as the kernel writes them: hexadecimal, in groups of 32 CPUs with commas between, the highest CPUs first.

use quell_recording::Cpu;

/// Number of CPUs in a group between commas.
const GROUP: u32 = 32;

/// Maximum number of groups in a mask; Linux itself stops at 8,192 CPUs.
const MOST_GROUPS: usize = 2048;

/// Reads a mask: `3`, `03`, `00000000,00000003`. The result is sorted.
///
/// # Errors
/// A message that names the part that cannot be read.
pub fn parse_mask(text: &str) -> Result<Vec<Cpu>, String> {
    let text = text.trim();
    let groups: Vec<&str> = text.split(',').collect();
    if groups.len() > MOST_GROUPS {
        return Err(format!("a CPU mask of {} groups is longer than any machine's", groups.len()));
    }
    let mut cpus = Vec::new();
    for (base, group) in (0u32..).step_by(GROUP as usize).zip(groups.iter().rev()) {
        // `from_str_radix` would accept a sign.
        let hex = (1..=8).contains(&group.len()) && group.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = hex.then(|| u32::from_str_radix(group, 16).ok()).flatten().ok_or_else(|| {
            format!("`{}` is not a CPU mask (hexadecimal, up to 8 digits between commas)", short(text))
        })?;
        cpus.extend((0..GROUP).filter(|bit| bits >> bit & 1 == 1).map(|bit| Cpu(base + bit)));
    }
    Ok(cpus)
}

/// Formats a mask as the kernel does if `width_bits` CPUs can exist; wider if it has CPUs beyond that.
pub fn format_mask(cpus: &[Cpu], width_bits: usize) -> String {
    let width = cpus.iter().map(|cpu| cpu.0 as usize + 1).max().unwrap_or(1).max(width_bits).max(1);
    let group = GROUP as usize;
    let mut groups = vec![0u32; width.div_ceil(group)];
    for cpu in cpus {
        if let Some(bits) = groups.get_mut(cpu.0 as usize / group) {
            *bits |= 1 << (cpu.0 % GROUP);
        }
    }
    let first_digits = (width - (groups.len() - 1) * group).div_ceil(4);
    let words = groups.iter().rev().enumerate().map(|(at, bits)| {
        let digits = if at == 0 { first_digits } else { 8 };
        format!("{bits:0digits$x}")
    });
    words.collect::<Vec<_>>().join(",")
}

/// The beginning of a text, short enough for a message.
fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;
    use proptest::prelude::*;

    fn cpus(numbers: &[u32]) -> Vec<Cpu> {
        numbers.iter().copied().map(Cpu).collect()
    }

    #[test]
    fn masks_are_read_however_long_they_are_written() {
        for text in ["3", "03", "00000003", "00000000,00000003", " 3\n"] {
            assert_eq!(parse_mask(text), Ok(cpus(&[0, 1])), "{text}");
        }
        assert_eq!(parse_mask("1,80000000,00000000"), Ok(cpus(&[63, 64])));
        assert_eq!(parse_mask("0"), Ok(vec![]));
        assert_eq!(parse_mask("FF"), Ok(cpus(&[0, 1, 2, 3, 4, 5, 6, 7])));
    }

    #[test]
    fn refuses_what_is_no_mask() {
        for bad in ["", ",", "3,", "0x3", "+3", "-1", "g", "123456789", "1 2"] {
            assert!(parse_mask(bad).is_err(), "{bad}");
        }
        assert!(parse_mask(&"0,".repeat(100_000)).is_err());
    }

    #[test]
    fn masks_are_as_wide_as_the_kernels() {
        assert_eq!(format_mask(&cpus(&[0, 1]), 2), "3");
        assert_eq!(format_mask(&cpus(&[0, 1]), 5), "03");
        assert_eq!(format_mask(&cpus(&[1]), 40), "00,00000002");
        assert_eq!(format_mask(&cpus(&[40]), 0), "100,00000000");
        assert_eq!(format_mask(&[], 0), "0");
    }

    proptest! {
        #[test]
        fn masks_survive_the_round_trip(set in proptest::collection::btree_set(0u32..9000, 0..40), width in 0usize..9000) {
            let cpus: Vec<Cpu> = set.into_iter().map(Cpu).collect();
            prop_assert_eq!(parse_mask(&format_mask(&cpus, width)).unwrap(), cpus);
        }

        #[test]
        fn any_text_is_a_mask_or_an_error(text in "[0-9a-fA-F, x+-]{0,60}|.*") {
            if let Ok(cpus) = parse_mask(&text) {
                prop_assert_eq!(parse_mask(&format_mask(&cpus, 0)).unwrap(), cpus);
            }
        }
    }
}
