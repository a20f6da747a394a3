//! Parses numbers of bytes, ranks and times: `8`, `64Ki`, `1Mi`, `8x8x16`.

use std::str::FromStr;

/// A number of bytes, or of anything else, with an optional suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        whole(text)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is not a number (write `8`, `64Ki`, `1Mi`, `2Gi`)"))
    }
}

/// A number of ranks, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks(pub u32);

impl FromStr for Ranks {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match whole(text).map(u32::try_from) {
            Some(Ok(0)) => Err("0 ranks do no work: give at least 1".into()),
            // `u32::MAX` stands for a receive from any rank.
            Some(Ok(n)) if n < u32::MAX => Ok(Self(n)),
            Some(_) => Err(format!("{text} ranks are more than the {} that can be numbered", u32::MAX - 1)),
            None => Err(format!("`{text}` is not a number of ranks (write `16`, `64Ki`, `1Mi`)")),
        }
    }
}

/// Ranks in each direction of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimsText(pub Vec<u32>);

impl FromStr for DimsText {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let dims = text.split('x').map(|part| part.parse::<Ranks>().map(|ranks| ranks.0));
        dims.collect::<Result<_, _>>()
            .map(Self)
            .map_err(|_| format!("`{text}` are not the sides of a grid (write `16x16` or `8x8x16`)"))
    }
}

/// Parses a whole number with an optional suffix `Ki`, `Mi` or `Gi`. `64k` and `64K` are `64Ki` too, as in other tools' options.
pub fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    let units = [
        ("Ki", 10),
        ("Mi", 20),
        ("Gi", 30),
        ("k", 10),
        ("K", 10),
        ("m", 20),
        ("M", 20),
        ("g", 30),
        ("G", 30),
    ];
    let unit = units.iter().find_map(|(unit, shift)| text.strip_suffix(unit).map(|digits| (digits, *shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    // `u64::from_str` would accept a leading `+`.
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse::<u64>().ok().filter(|_| plain).and_then(|n| n.checked_mul(1 << shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_binary_units() {
        for (text, n) in [
            ("8", 8),
            ("64Ki", 65_536),
            ("1Mi", 1 << 20),
            ("2Gi", 2 << 30),
            ("0", 0),
            ("64k", 65_536),
            ("1M", 1 << 20),
        ] {
            assert_eq!(text.parse(), Ok(Size(n)), "{text}");
        }
        for bad in ["", "-1", "+1", "8kb", "Ki", "99999999999Gi", "1.5", "NaN"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
        assert_eq!("64Ki".parse(), Ok(Ranks(65_536)));
        assert!("0".parse::<Ranks>().is_err() && "4Gi".parse::<Ranks>().is_err());
        assert!("4294967295".parse::<Ranks>().is_err());
    }

    #[test]
    fn grids_have_sides() {
        assert_eq!("8x8x16".parse(), Ok(DimsText(vec![8, 8, 16])));
        for bad in ["", "x", "8x", "0x4", "8*8"] {
            assert!(bad.parse::<DimsText>().is_err(), "{bad}");
        }
    }
}
