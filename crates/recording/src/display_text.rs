//! Makes text from files, processes and drivers safe to display.

/// Text for one line of a terminal, of a page or of a timeline: replaces characters that would control the place that shows it.
/// These are control characters (escape codes, line ends), line separators, and marks that change the direction of writing.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

/// As [`one_line`], for text of several lines: line ends and tabs stay.
pub fn lines(text: &str) -> String {
    text.chars().map(|c| if steers(c) && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }).collect()
}

/// JSON with the same value in which characters that would control a terminal are escaped. (JSON's own rules leave DEL, C1 and the marks that
/// change the direction of writing as they are.)
pub fn json_for_terminals(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        if steers(c) && c != '\n' {
            // None of them is above U+FFFF, where one escape would not do.
            safe += &format!("\\u{:04x}", c as u32);
        } else {
            safe.push(c);
        }
    }
    safe
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
    use super::{json_for_terminals, lines, one_line};

    #[test]
    fn what_steers_becomes_visible_and_the_rest_stays() {
        assert_eq!(
            one_line("a\u{1b}[2Jb\r\nc\u{202e}d\u{9b}e\u{2028}"),
            "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\u{fffd}d\u{fffd}e\u{fffd}"
        );
        assert_eq!(one_line("<script> Grüße 日本"), "<script> Grüße 日本");
    }

    /// Every character that may control a terminal.
    fn steering() -> String {
        ('\0'..='\u{9f}')
            .filter(|c| c.is_control())
            .chain("\u{200e}\u{202e}\u{2066}\u{2069}".chars())
            .collect()
    }

    #[test]
    fn lines_keep_their_ends_and_tabs_only() {
        let shown = lines(&format!("a{}b", steering()));
        let kept: String = shown.chars().filter(|c| *c != '\u{fffd}').collect();
        assert_eq!(kept, "a\t\nb");
    }

    #[test]
    fn json_keeps_its_value_and_has_no_character_that_steers() {
        let value = serde_json::json!({ steering(): [steering(), "Grüße 日本"] });
        let shown = json_for_terminals(&serde_json::to_string_pretty(&value).unwrap());
        assert!(shown.chars().all(|c| c == '\n' || !super::steers(c)), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
