//! Finds the launchers in a command: the command itself, behind programs that run another, and in the script of a shell.

use std::ops::Range;

use crate::mpi::is_launcher;

/// Programs that run the command that their arguments end with.
const WRAPPERS: [&str; 14] = [
    "env", "time", "nice", "ionice", "numactl", "taskset", "timeout", "setpriv", "chrt", "stdbuf", "setsid",
    "nohup", "strace", "exec",
];
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ksh", "zsh"];
/// Words of a shell after which another command begins.
const KEYWORDS: [&str; 12] =
    ["do", "then", "else", "elif", "if", "while", "until", "!", "{", "time", "exec", "command"];

/// A launcher in a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The launcher's name or path.
    pub launcher: String,
    /// The words after it.
    pub words: Vec<String>,
    pub place: Place,
}

/// Where a launcher stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the argument of this index.
    Argument(usize),
    /// In the argument of this index, which is a script: where the launcher ends, and where each word after it is.
    Script { argument: usize, ends: usize, spans: Vec<Span> },
}

/// Where a word of a script is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub bytes: Range<usize>,
    /// The shell replaces a part of it.
    pub expands: bool,
}

/// A change of the words after a launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// New words before the word of this index.
    Insert(usize, Vec<String>),
    /// Another word in place of this one.
    Replace(usize, String),
}

fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The launchers in a command.
pub(super) fn launches(command: &[String]) -> Vec<Found> {
    launches_from(command, 0)
}

fn launches_from(command: &[String], at: usize) -> Vec<Found> {
    let Some(program) = command.get(at) else { return Vec::new() };
    if is_launcher(program) {
        let (launcher, words) = (program.clone(), command[at + 1..].to_vec());
        return vec![Found { launcher, words, place: Place::Argument(at) }];
    }
    let rest = command.iter().enumerate().skip(at + 1);
    if SHELLS.contains(&name(program)) {
        let is_script = |word: &str| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
        let mut options = rest.take_while(|(_, word)| word.starts_with('-') || word.starts_with('+'));
        let script = options.find(|(_, word)| is_script(word)).map(|(option, _)| option + 1);
        return script
            .filter(|argument| *argument < command.len())
            .map_or_else(Vec::new, |argument| in_script(&command[argument], argument));
    }
    let runs_another = |word: &str| {
        is_launcher(word) || WRAPPERS.contains(&name(word)) || SHELLS.contains(&name(word)) || is_quell(word)
    };
    let next = if is_quell(program) {
        rest.skip_while(|(_, word)| *word != "--").nth(1).map(|(next, _)| next)
    } else if WRAPPERS.contains(&name(program)) {
        rest.filter(|(_, word)| runs_another(word)).map(|(next, _)| next).next()
    } else {
        None
    };
    next.map_or_else(Vec::new, |next| launches_from(command, next))
}

/// Whether a program is quell, which runs the command after `--`.
fn is_quell(program: &str) -> bool {
    let own = std::env::current_exe().ok();
    let own = own.as_deref().and_then(std::path::Path::file_name).and_then(std::ffi::OsStr::to_str);
    own == Some(name(program)) || name(program) == "quell"
}

/// The launchers in a script.
fn in_script(script: &str, argument: usize) -> Vec<Found> {
    let mut found = Vec::new();
    for command in simple_commands(script) {
        let is_assignment = |word: &str| {
            word.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.chars().all(|letter| letter == '_' || letter.is_ascii_alphanumeric())
            })
        };
        let mut begins =
            command.iter().position(|(word, _)| !is_assignment(word) && !KEYWORDS.contains(&word.as_str()));
        if let Some(first) = begins
            && WRAPPERS.contains(&name(&command[first].0))
        {
            begins = command.iter().position(|(word, _)| is_launcher(word));
        }
        let Some((launcher, span)) =
            begins.map(|begins| &command[begins]).filter(|(word, _)| is_launcher(word))
        else {
            continue;
        };
        let after = command.iter().skip(begins.unwrap_or(0) + 1);
        let (words, spans) = after.cloned().unzip();
        let place = Place::Script { argument, ends: span.bytes.end, spans };
        found.push(Found { launcher: launcher.clone(), words, place });
    }
    found
}

/// The words of each simple command of a shell script, without quotes.
fn simple_commands(script: &str) -> Vec<Vec<(String, Span)>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<(String, Span)> = None;
    let mut letters = script.char_indices().peekable();
    let mut quote = None;
    while let Some((at, letter)) = letters.next() {
        let next = at + letter.len_utf8();
        let ends_word = quote.is_none() && (letter.is_whitespace() || ";&|()<>".contains(letter));
        if quote.is_none() && letter == '#' && word.is_none() {
            while letters.next_if(|(_, letter)| *letter != '\n').is_some() {}
            continue;
        }
        if ends_word {
            let redirects = "<>".contains(letter);
            let before = word.take();
            // `2>&1` and `&>` direct output elsewhere; a number before is a part of that.
            let after_redirection = letter == '&' && script[..at].ends_with(['<', '>']);
            let redirects_both = letter == '&' && script[next..].starts_with('>');
            if let Some(before) = before {
                commands.last_mut().into_iter().for_each(|command: &mut Vec<_>| command.push(before.clone()));
            }
            let ends_command = letter == '\n' || ";&|()".contains(letter);
            if ends_command && !after_redirection && !redirects_both {
                commands.push(Vec::new());
            } else if redirects {
                let span = Span { bytes: at..next, expands: true };
                commands
                    .last_mut()
                    .into_iter()
                    .for_each(|command| command.push((letter.to_string(), span.clone())));
            }
            continue;
        }
        let (text, span) =
            word.get_or_insert_with(|| (String::new(), Span { bytes: at..at, expands: false }));
        span.bytes.end = next;
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None | Some('"'), '\\') => {
                if let Some((at, escaped)) = letters.next() {
                    span.bytes.end = at + escaped.len_utf8();
                    // The end of a line after a backslash is nothing.
                    if escaped != '\n' {
                        text.push(escaped);
                    } else if text.is_empty() && quote.is_none() {
                        word = None;
                    }
                }
            }
            _ => {
                span.expands |= quote != Some('\'') && "$`".contains(letter);
                text.push(letter);
            }
        }
    }
    if let (Some(word), Some(command)) = (word, commands.last_mut()) {
        command.push(word);
    }
    commands
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-+=:,./@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The command with changes of the words after its launchers. Returns the words of which a shell replaces a part, so that they stay.
pub(super) fn apply(command: &[String], changes: &[(Place, Vec<Edit>)]) -> (Vec<String>, Vec<String>) {
    let mut words = command.to_vec();
    let mut left = Vec::new();
    // From the last to the first, so that the places before stay valid.
    for (place, edits) in changes.iter().rev() {
        let mut edits: Vec<&Edit> = edits.iter().collect();
        edits.sort_by_key(|edit| match edit {
            Edit::Insert(at, _) => (*at, 0),
            Edit::Replace(at, _) => (*at, 1),
        });
        for edit in edits.into_iter().rev() {
            match (place, edit) {
                (Place::Argument(launcher), Edit::Insert(at, new)) => {
                    let at = launcher + 1 + at;
                    words.splice(at..at, new.iter().cloned());
                }
                (Place::Argument(launcher), Edit::Replace(at, new)) => {
                    words[launcher + 1 + at].clone_from(new);
                }
                (Place::Script { argument, ends, spans }, Edit::Insert(at, new)) => {
                    let before = at.checked_sub(1).and_then(|before| spans.get(before));
                    let new: String = new.iter().map(|word| format!(" {}", quoted(word))).collect();
                    words[*argument].insert_str(before.map_or(*ends, |span| span.bytes.end), &new);
                }
                (Place::Script { argument, spans, .. }, Edit::Replace(at, new)) => match &spans[*at] {
                    Span { bytes, expands: true } => left.push(command[*argument][bytes.clone()].to_owned()),
                    Span { bytes, .. } => words[*argument].replace_range(bytes.clone(), &quoted(new)),
                },
            }
        }
    }
    (words, left)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    fn found(line: &str) -> Vec<String> {
        let command: Vec<String> = line.split('^').map(str::to_owned).collect();
        let show = |found: &Found| format!("{} {}", found.launcher, found.words.join(" "));
        launches(&command).iter().map(show).collect()
    }

    #[test]
    fn a_launcher_is_found_behind_what_wraps_it() {
        for before in [
            "",
            "env^A=1^",
            "taskset^-c^0,1^",
            "nice^-n^5^numactl^--all^",
            "quell^record^-o^mpirun^--^",
            "time^",
        ] {
            assert_eq!(found(&format!("{before}mpirun^-n^2^./app")), ["mpirun -n 2 ./app"], "{before}");
        }
        for none in [
            "./app^mpirun^-n^2",
            "./mpirun_like^-x",
            "env^A=1^./app",
            "sh^job.sh",
            "quell^bench^loggp",
            "sh^-c",
        ] {
            assert!(found(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn a_shells_script_is_read_as_the_shell_does() {
        let in_script = |script: &str| found(&format!("bash^-lc^{script}"));
        assert_eq!(
            in_script("cd /tmp && A=1 exec srun -n 2 ./app 'a b' >log 2>&1; ./more mpirun -x"),
            ["srun -n 2 ./app a b > log 2 > 1"]
        );
        assert_eq!(
            in_script(
                "for i in 1 2; do mpirun -n $i ./app \"$i; x\" # not mpirun\ndone\n(mpiexec -n 1 ./b)|cat"
            ),
            ["mpirun -n $i ./app $i; x", "mpiexec -n 1 ./b"]
        );
        assert_eq!(in_script("taskset -c 0 mpirun \\\n  -n 2 ./a"), ["mpirun -n 2 ./a"]);
        assert!(in_script("echo 'mpirun -x A'; # mpirun").is_empty());
    }

    #[test]
    fn changes_stand_where_they_were_meant() {
        let script = "A='x y' mpirun -x 'LD=a b' \"$B\" ./app : ./b; srun --export=NONE ./c";
        let command: Vec<String> = ["sh", "-c", script].map(str::to_owned).to_vec();
        let places: Vec<Place> = launches(&command).into_iter().map(|found| found.place).collect();
        let new = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let first = vec![
            Edit::Insert(0, new(&["-x", "N"])),
            Edit::Replace(1, "LD=it's".into()),
            Edit::Replace(2, "lost".into()),
            Edit::Insert(5, new(&["-x", "M"])),
        ];
        let second = vec![Edit::Replace(0, "--export=N,M".into())];
        let changes: Vec<_> = places.into_iter().zip([first, second]).collect();
        let (words, left) = apply(&command, &changes);
        assert_eq!(
            words[2],
            r#"A='x y' mpirun -x N -x 'LD=it'\''s' "$B" ./app : -x M ./b; srun --export=N,M ./c"#
        );
        assert_eq!(left, ["\"$B\""]);
    }
}
