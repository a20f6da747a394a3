//! The command line in other forms, all generated from clap's definition: a page per verb, man pages, shell completions.

use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Args;

/// The command without the hidden verbs that only launchers and the build use.
fn visible() -> Command {
    let whole = Args::command();
    let verbs = whole.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    let bare = Command::new("quell").version(env!("CARGO_PKG_VERSION"));
    let about = whole.get_about().cloned().unwrap_or_default();
    let after = whole.get_after_help().cloned().unwrap_or_default();
    let options = whole.get_arguments().filter(|option| !option.is_positional()).cloned();
    let mut command = bare.about(about).after_help(after).args(options).subcommands(verbs);
    command.build();
    command
}

/// Writes a page for each verb, `quell-VERB.md`, that includes the help of its own verbs.
///
/// # Errors
/// Errors of writing to the folder.
pub fn pages(folder: &Path) -> std::io::Result<()> {
    fs_err::create_dir_all(folder)?;
    let command = visible();
    let mut list = "# Commands\n\n`./x docs` generates these pages from the program's help.\n\n| verb | what it does |\n|---|---|\n".to_owned();
    for verb in verbs_of(&command) {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        let name = verb.get_name();
        list += &format!("| [`quell {name}`]({name}.md) | {about} |\n");
        let mut page = format!("# quell {name}\n\n{}", block(verb));
        for inner in verbs_of(verb) {
            page += &format!("\n## quell {name} {}\n\n{}", inner.get_name(), block(inner));
        }
        fs_err::write(folder.join(format!("{name}.md")), page)?;
    }
    list += "\nEvery verb accepts `--quiet` (only results and errors), and respects `NO_COLOR` in the environment.\n";
    fs_err::write(folder.join("index.md"), list)
}

fn verbs_of(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| verb.get_name() != "help" && !verb.is_hide_set())
}

fn block(command: &Command) -> String {
    // A fixed width makes the page the same on every terminal.
    let help = command.clone().term_width(100).color(clap::ColorChoice::Never).render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    format!("```text\n{}\n```\n", lines.join("\n").trim_end())
}

/// Writes `quell.1`, and a man page for each verb.
///
/// # Errors
/// Errors of writing to the folder.
pub fn man(folder: &Path) -> std::io::Result<()> {
    fs_err::create_dir_all(folder)?;
    man_of(&visible(), "quell", folder)
}

fn man_of(command: &Command, name: &str, folder: &Path) -> std::io::Result<()> {
    let mut page = Vec::new();
    let man = Man::new(command.clone().after_help("").after_long_help(""));
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let verbs: Vec<&Command> = verbs_of(command).collect();
    if !verbs.is_empty() {
        page.extend_from_slice(b".SH VERBS\n");
    }
    for verb in verbs {
        let full = format!("{name}-{}", verb.get_name());
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        page.extend_from_slice(format!(".TP\n{}(1)\n{}\n", roff(&full), roff(&about)).as_bytes());
        man_of(verb, &full, folder)?;
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    page.extend_from_slice(sections(&after).as_bytes());
    fs_err::write(folder.join(format!("{name}.1")), page)
}

/// Formats what follows the options in a help text: lines in capitals become headings, all others keep their line breaks.
fn sections(text: &str) -> String {
    let mut page = String::new();
    let mut open = false;
    for line in text.lines() {
        let heading = line.chars().all(|c| c.is_ascii_uppercase() || c == ' ') && !line.trim().is_empty();
        if heading {
            page += &format!("{}.SH {line}\n.nf\n", if open { ".fi\n" } else { "" });
            open = true;
        } else if open || !line.is_empty() {
            page += &format!("{}{}\n", if open { "" } else { ".SH NOTES\n.nf\n" }, roff(line));
            open = true;
        }
    }
    page + if open { ".fi\n" } else { "" }
}

/// Escapes text for roff.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

/// Writes completions to the paths that packages use: `bash-completion/completions/quell`, `zsh/vendor-completions/_quell`,
/// `fish/vendor_completions.d/quell.fish`.
///
/// # Errors
/// Errors of writing to the folder.
pub fn completions(folder: &Path) -> std::io::Result<()> {
    for (shell, place) in [
        (Shell::Bash, "bash-completion/completions/quell"),
        (Shell::Zsh, "zsh/vendor-completions/_quell"),
        (Shell::Fish, "fish/vendor_completions.d/quell.fish"),
    ] {
        let file = folder.join(place);
        if let Some(folder) = file.parent() {
            fs_err::create_dir_all(folder)?;
        }
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut visible(), "quell", &mut script);
        fs_err::write(file, script)?;
    }
    Ok(())
}
