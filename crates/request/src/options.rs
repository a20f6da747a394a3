//! Parses options from a list of arguments, for callers that have no command line of their own, such as Python.

use clap::{Args, Command};

use crate::Usage;

/// Parses arguments as if they followed the verb on the command line.
///
/// # Errors
/// [`Usage`] with the parser's message.
pub fn parse<A: Args>(verb: &'static str, words: impl IntoIterator<Item = String>) -> Result<A, Usage> {
    let command = A::augment_args(Command::new(verb).no_binary_name(true).disable_help_flag(true));
    let matches = command.try_get_matches_from(words);
    matches.and_then(|matches| A::from_arg_matches(&matches)).map_err(|error| Usage(reason(&error)))
}

/// The parser's message without its usage lines, which do not help a caller without a command line.
fn reason(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let end = ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|mark| text.find(mark)).min();
    text[..end.unwrap_or(text.len())].trim_end().to_owned()
}

/// An option of a verb.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Choice {
    /// The long name without `--`; for a positional argument, its identifier.
    pub name: String,
    /// Whether it is positional.
    pub positional: bool,
    /// Whether it takes no value.
    pub flag: bool,
    /// Whether it may be repeated.
    pub repeated: bool,
    /// The placeholder of its value in the help, such as `TIME`.
    pub value: Option<String>,
    /// Its default value.
    pub default: Option<String>,
    /// All possible values, if it takes one of a fixed set.
    pub choices: Vec<String>,
    /// Its help text.
    pub help: String,
}

/// The options of a verb that the command and Python share, in the order of its help.
pub fn list<A: Args>() -> Vec<Choice> {
    let mut command = A::augment_args(Command::new("verb").disable_help_flag(true));
    command.build();
    command.get_arguments().map(option).collect()
}

fn option(argument: &clap::Arg) -> Choice {
    let flag = !argument.get_action().takes_values();
    let many = argument.get_num_args().is_some_and(|count| count.max_values() > 1);
    let value = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let default = argument.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
    let choices = argument.get_possible_values();
    Choice {
        name: argument.get_long().unwrap_or(argument.get_id().as_str()).to_owned(),
        positional: argument.is_positional(),
        flag,
        repeated: many || matches!(argument.get_action(), clap::ArgAction::Append),
        value: value.filter(|_| !flag),
        default: default.filter(|_| !flag),
        choices: choices.iter().filter(|_| !flag).map(|value| value.get_name().to_owned()).collect(),
        help: argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RankList;
    use crate::predict::PredictArgs;

    fn words(text: &str) -> Result<PredictArgs, Usage> {
        parse("predict", text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn words_are_options_or_say_why_not() {
        assert_eq!(
            words("a.quell --ranks 2..8 --without tick").unwrap().job.ranks,
            Some(RankList(vec![2, 4, 8]))
        );
        let reason = words("a.quell --ranks none").unwrap_err().0;
        assert!(reason.starts_with("invalid value 'none' for '--ranks <LIST>'"), "{reason}");
        assert!(!reason.contains("--help") && !reason.contains("Usage"), "{reason}");
    }

    #[test]
    fn options_tell_what_they_take() {
        let options = list::<PredictArgs>();
        let of = |name: &str| options.iter().find(|option| option.name == name).unwrap();
        assert!(of("recordings").positional && of("recordings").repeated);
        assert_eq!((of("quantum").default.as_deref(), of("quantum").repeated), (Some("1ms"), false));
        assert_eq!(of("sync").choices, ["none", "start", "phase"]);
        assert!(of("without").repeated && !of("without").flag && of("without").default.is_none());
        assert!(of("eager-limit").help.starts_with("S: "));
    }
}
