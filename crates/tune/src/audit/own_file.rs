//! Files that quell writes for the next boot.

/// The text of such a file; its first line names quell.
pub fn signed(id: &str, text: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("# quell: {id}; removed by `quell tune revert`\n{text}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_text_ends_with_a_line() {
        assert_eq!(signed("a", "x"), "# quell: a; removed by `quell tune revert`\nx\n");
    }
}
