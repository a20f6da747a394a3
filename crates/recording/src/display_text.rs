//! Makes text from files, processes and drivers safe to display.

/// Text for one line of a terminal, of a page or of a timeline: replaces characters that would control the place that shows it.
/// These are control characters (escape codes, line ends), line separators, and marks that change the direction of writing.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

/// Shortens a text to at most `most` characters; if some are omitted, the last is an ellipsis.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
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
