//! Renders the list of file formats: as a table, as a reference page, and for the help.

use super::table::table_with_words;
use quell_recording::formats::catalogue::{About, FORMATS, read_names, written_names};

/// A row per format, then what each holds and what it cannot hold.
pub fn table() -> String {
    let row = |format: &About| {
        vec![
            format.name.to_owned(),
            if format.read { "yes" } else { "-" }.to_owned(),
            format.written.unwrap_or("-").to_owned(),
            ends(format),
        ]
    };
    let mut text = table_with_words(4, &["format", "read", "--to", "names"], FORMATS.iter().map(row));
    for format in FORMATS {
        text += &format!(
            "\n{} ({})\n  holds: {}\n  lacks: {}\n",
            format.name, format.tool, format.holds, format.lacks
        );
    }
    text
}

fn ends(format: &About) -> String {
    let names: Vec<String> = format.extensions.iter().map(|end| format!("NAME.{end}")).collect();
    if names.is_empty() { "-".into() } else { names.join(" ") }
}

/// The reference page, as Markdown.
pub fn page() -> String {
    let mut text = String::from(
        "# Formats\n\n`quell convert` reads and writes the files of other tools. It recognises input by its content. This page is written by \
         `quell generate`.\n\n| format | tool | read | `--to` | names |\n|---|---|---|---|---|\n",
    );
    let code = |word: &str| if word == "-" { word.to_owned() } else { format!("`{word}`") };
    for format in FORMATS {
        let read = if format.read { "yes" } else { "-" };
        let names: Vec<String> = format.extensions.iter().map(|end| format!("`NAME.{end}`")).collect();
        let names = if names.is_empty() { "-".into() } else { names.join(" ") };
        text += &format!(
            "| {} | {} | {read} | {} | {names} |\n",
            cell(format.name),
            cell(format.tool),
            code(format.written.unwrap_or("-"))
        );
    }
    text += "\nA recording itself, `NAME.quell`, holds everything. netgauge's LogGP becomes a network, `NAME.toml`.\n";
    for format in FORMATS {
        text += &format!(
            "\n## {}\n\n- Holds: {}.\n- Cannot hold, or does not report: {}.\n- Reference for the format: {}.\n",
            format.name, format.holds, format.lacks, format.form
        );
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The text that `--help` prints after the options.
pub fn help() -> String {
    let examples = "EXAMPLES\n  quell convert selfish.txt a.quell\n  quell convert trace.dat kernel.quell           what the kernel did, by trace-cmd\n  quell convert oslat.json gaps.quell            a histogram: `quell show gaps.quell`\n  quell convert loggp.out net.toml               a network for `--net net.toml`\n  quell convert a.quell detours.csv\n  quell convert a.quell noise.txt --to loggopsim --cpu 1\n  quell convert a.quell a.pftrace                open it at https://ui.perfetto.dev\n  quell convert a.quell a.otf2                   a folder, for Vampir\n  quell convert fwq.quell fwq.vpsum              a folder, with a file for each rank\n  quell convert fwq.quell 3.vpsum --rank 3       one file\n  quell convert --list                           all formats, and what each cannot carry";
    let wrapped = |text: String| {
        let mut lines = vec![String::new()];
        for word in text.split(' ') {
            match lines.last_mut() {
                Some(line) if line.is_empty() => *line = word.to_owned(),
                Some(line) if line.chars().count() + word.chars().count() < 98 => {
                    *line += &format!(" {word}");
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines.join("\n")
    };
    let read = wrapped(format!(
        "quell recognises the format of IN by its content. It reads {}. If a file does not state how long \
         its tool measured, its span ends with its last row.",
        read_names()
    ));
    let written = wrapped(format!(
        "quell writes {}. Histograms have neither order nor start times: quell can show and convert them, \
         but cannot predict or replay from them.",
        written_names()
    ));
    format!("{examples}\n\n{read}\n\n{written}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_on_the_page_and_in_the_help() {
        let (page, help) = (page(), help());
        for format in FORMATS {
            assert!(page.contains(&format!("## {}\n", format.name)), "{}", format.name);
            if format.read {
                assert!(help.replace('\n', " ").contains(format.name), "{}", format.name);
            }
        }
        assert!(help.lines().all(|line| line.chars().count() <= 100));
    }
}
