//! Wraps sentences at words. Tables and plots stay as they are.

/// Text whose sentences have at most `width` columns. A command in backticks stays on one line, so that it can be copied.
pub fn wrapped(text: &str, width: usize) -> String {
    text.split_inclusive('\n').map(|line| wrapped_line(line, width)).collect()
}

fn wrapped_line(line: &str, width: usize) -> String {
    if line.trim_end().chars().count() <= width || !is_prose(line.trim()) {
        return line.to_owned();
    }
    let indent = &line[..line.len() - line.trim_start().len()];
    let (mut text, mut column) = (indent.to_owned(), indent.len());
    for word in words(line.trim()) {
        let length = word.chars().count();
        if column > indent.len() && column + 1 + length > width {
            text = text + "\n" + indent;
            column = indent.len();
        } else if column > indent.len() {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text + if line.ends_with('\n') { "\n" } else { "" }
}

/// Whether a line is a sentence: columns of a table are further apart than words, and plots have characters of their own.
fn is_prose(line: &str) -> bool {
    !line.contains("  ") && !line.chars().any(|character| ('\u{2500}'..='\u{28ff}').contains(&character))
}

/// The words of a line. What is in backticks is one word, with what touches it.
fn words(line: &str) -> Vec<&str> {
    let (mut words, mut begin, mut is_code) = (Vec::new(), 0, false);
    for (at, character) in line.char_indices() {
        match character {
            '`' => is_code = !is_code,
            ' ' if !is_code => {
                words.push(&line[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    // Of an odd number of backticks the last one begins nothing.
    match is_code {
        true => words.extend(line[begin..].split(' ')),
        false => words.push(&line[begin..]),
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sentences_break_at_words() {
        let text = "  a sentence that says to run `quell record -o a.quell`, then more\nshort\n";
        let expected = "  a sentence that\n  says to run\n  `quell record -o a.quell`,\n  then more\nshort\n";
        assert_eq!(wrapped(text, 18), expected);
        assert_eq!(wrapped("one `two three", 4), "one\n`two\nthree");
    }

    #[test]
    fn tables_and_plots_stay() {
        for line in [" CPU   noise %   resolution\n", "10us │⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉\n", "────────────────\n"]
        {
            assert_eq!(wrapped(line, 5), line);
        }
    }

    proptest! {
        #[test]
        fn only_spaces_change(text in "[a-z` \n]{0,200}", width in 1_usize..40) {
            let plain = |text: &str| text.replace([' ', '\n'], "");
            let made = wrapped(&text, width);
            prop_assert_eq!(plain(&made), plain(&text));
            for line in made.lines().filter(|line| !line.contains(['`', ' ']) && !line.is_empty()) {
                prop_assert!(line.len() <= width || text.contains(line));
            }
        }
    }
}
