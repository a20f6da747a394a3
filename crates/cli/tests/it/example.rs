//! `quell example`: its files, what its commands print, and that it fits terminals of any width.

use std::path::Path;

use insta::assert_snapshot;

use crate::support::{quell, run, transcript};

/// Commands that print tables and sentences, in addition to those that `quell example` proposes.
const MORE: [&str; 17] = [
    "quell",
    "quell --help",
    "quell show node.quell",
    "quell show runs --by source",
    "quell track run --by source",
    "quell simulate --pattern allreduce --ranks 64 --noise node.quell --culprits",
    "quell goal list",
    "quell goal check app.goal",
    "quell doctor",
    "quell show node.quell --by class",
    "quell show node.quell --by task",
    "quell compare runs/node00000.quell runs/node00001.quell",
    "quell predict node.quell --op allreduce --ranks 16..64",
    "quell advise runs",
    "quell replay node.quell --dry-run --context timer --scale auto",
    "quell tune audit",
    "quell tune audit thp",
];

/// The commands that it proposes.
fn proposed(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.rfind("  quell ").map(|at| line[at..].trim())).collect()
}

fn made(folder: &Path) -> String {
    let output = run(folder, &["example", "example"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_proposed_command_works() {
    let dir = tempfile::tempdir().unwrap();
    let text = made(dir.path());
    assert_snapshot!(text);
    let commands = proposed(&text);
    assert_eq!(commands.len(), 10, "{text}");
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        let output = run(&dir.path().join("example"), &words);
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_snapshot!(transcript(dir.path(), &["example", "example"]));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let text = made(dir.path());
    let folder = dir.path().join("example");
    let commands = proposed(&text).into_iter().filter(|command| !command.contains("convert")).chain(MORE);
    let mut wide = String::new();
    for command in commands {
        for width in [80, 100, 120] {
            let words: Vec<&str> = command.split_whitespace().skip(1).collect();
            let output = quell(&folder).args(words).env("COLUMNS", width.to_string()).output().unwrap();
            for line in [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)) {
                let wider = line.lines().filter(|line| line.chars().count() > width && !is_one_piece(line));
                wide.extend(wider.map(|line| format!("{command} at {width}: {line}\n")));
            }
        }
    }
    assert!(wide.is_empty(), "{wide}");
}

/// Commands and paths that can be copied stay on one line.
fn is_one_piece(line: &str) -> bool {
    line.contains('`') || line.contains('/') || !line.trim().contains(' ')
}
