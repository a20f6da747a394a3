//! Text from files, processes and drivers, made fit to be shown.

/// Text for one line of a terminal, of a page or of a timeline: what would steer the place that shows it becomes visible.
/// That is control characters (escape codes, line ends), line separators, and marks that turn the direction of writing.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn what_steers_becomes_visible_and_the_rest_stays() {
        assert_eq!(
            one_line("a\u{1b}[2Jb\r\nc\u{202e}d\u{9b}e\u{2028}"),
            "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\u{fffd}d\u{fffd}e\u{fffd}"
        );
        assert_eq!(one_line("<script> Grüße 日本"), "<script> Grüße 日本");
    }
}
