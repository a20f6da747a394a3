//! What all points of a sweep share: the plan, the folder of its relative paths, and the noise that is already open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{ArgMatches, Command, FromArgMatches};
use quell_analysis::sweep::{Axis, Paths, Plan, Point, Value};
use quell_recording::results::Kind;

use super::Failure;
use super::noise::{Noise, Opened};
use quell_request::Usage;
use quell_request::network::{self, NetText};
use quell_request::noise::ModelScale;

/// What all points share.
#[derive(Debug)]
pub struct Context {
    /// The plan.
    pub plan: Plan,
    /// The folder that the plan's paths are relative to.
    base: PathBuf,
    opened: Opened,
}

impl Context {
    /// The context of a plan that was read from `file`.
    pub fn new(plan: Plan, file: &Path) -> Self {
        let base = file.parent().map(Path::to_owned).unwrap_or_default();
        Self { plan, base, opened: Opened::new() }
    }

    /// Resolves a path of the plan relative to the current directory.
    pub fn path(&self, word: &str) -> PathBuf {
        self.base.join(word)
    }

    /// The paths of an axis at a point.
    pub fn paths(&self, point: &Point, axis: &str) -> Vec<PathBuf> {
        let words = self.plan.value(point, axis).map_or(&[][..], |value| &value.words);
        words.iter().map(|word| self.path(word)).collect()
    }

    /// The noise of a point, from its axes `noise` and `without`.
    ///
    /// # Errors
    /// If a file holds no noise.
    pub fn noise(&self, point: &Point, scale: ModelScale) -> Result<Arc<Noise>, Failure> {
        let without = self.plan.value(point, "without").map_or(&[][..], |value| &value.words);
        self.opened.get(&self.paths(point, "noise"), without, scale)
    }

    /// The verb's arguments for a point, without the axes in `but`.
    pub fn words(&self, point: &Point, but: &[&str]) -> Vec<String> {
        let values = self.plan.values(point).filter(|(axis, _)| !but.contains(&axis.kind.name));
        let option = |(axis, value): (&Axis, &Value)| {
            let (name, word) = (axis.kind.name, value.word());
            match axis.kind.kind {
                Kind::Bool => (word == "true").then(|| format!("--{name}")),
                _ => Some(format!("--{name}={}", self.located(axis.kind.paths, word))),
            }
        };
        values.filter_map(option).collect()
    }

    /// An argument in which a path, if it holds one, is resolved.
    fn located(&self, paths: Paths, word: &str) -> String {
        match paths.within(word) {
            Some((path, rest)) => format!("{}{rest}", self.path(path).display()),
            None => word.to_owned(),
        }
    }

    /// Refuses invalid networks. Their files can only be read here, where paths are resolved.
    ///
    /// # Errors
    /// [`Usage`], with the line of the plan.
    pub fn check_nets(&self) -> Result<(), Usage> {
        let nets = self.plan.axes.iter().filter(|axis| axis.kind.name == "net");
        for (axis, value) in nets.flat_map(|axis| axis.values.iter().map(move |value| (axis, value))) {
            let net = self.located(axis.kind.paths, value.word()).parse::<NetText>();
            let line = axis.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            net.and_then(|net| network::check(&net))
                .map_err(|reason| Usage(format!("{line}net: {reason}")))?;
        }
        Ok(())
    }
}

/// The clap parser of a verb's arguments.
#[derive(Debug)]
pub struct Options(Command);

impl Options {
    /// The parser for the arguments `T`.
    pub fn from_args<T: clap::Args>() -> Self {
        let mut command = T::augment_args(Command::new("point").no_binary_name(true));
        command.build();
        Self(command)
    }

    /// Parses the arguments of a point.
    ///
    /// # Errors
    /// The parser's message.
    pub fn read<T: FromArgMatches>(&self, words: Vec<String>) -> Result<T, String> {
        let matches: Result<ArgMatches, clap::Error> = self.0.clone().try_get_matches_from(words);
        matches.and_then(|matches| T::from_arg_matches(&matches)).map_err(|error| {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).to_owned()
        })
    }
}
