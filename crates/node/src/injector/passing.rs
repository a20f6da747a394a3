//! Passes variables of the environment to the ranks of a command: most launchers do by themselves, unless the command lists what they pass.

use std::ffi::OsString;
use std::path::PathBuf;

use fs_err as fs;

use super::launches::{Edit, Found, Place, apply, launches};
use crate::mpi::{Launch, LaunchOption, Launcher, Part, launcher_of};

/// The variable that names what the dynamic linker loads first.
const PRELOAD: &str = "LD_PRELOAD";
/// The variable that lists what Open MPI exports to other hosts; other MPIs export all variables.
const OPEN_MPI_LIST: &str = "OMPI_MCA_mca_base_env_list";
/// The same parameter as an option.
const OPEN_MPI_PARAMETER: &str = "mca_base_env_list";
/// The variable with srun's `--export`: `sbatch --export` sets it for the job.
const SLURM_LIST: &str = "SLURM_EXPORT_ENV";

/// What is loaded into each process of a command, on every host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loading {
    /// The library to load.
    pub library: PathBuf,
    /// The variables that the library reads.
    pub variables: Vec<Variable>,
}

/// A variable of the environment.
pub type Variable = (&'static str, OsString);

/// A command that passes a library and its variables to its ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The command's words.
    pub words: Vec<String>,
    /// Variables in addition to this process's environment.
    pub variables: Vec<Variable>,
    /// The reasons why ranks may lack the variables.
    pub doubts: Vec<Doubt>,
}

/// A reason why ranks may lack variables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Doubt {
    /// An unknown option is before words that may be the launcher's or the program's.
    #[error(
        "quell does not know all options of {launcher}, so it left `{word}` as it is; ranks may lack {names}. Put options with `=` \
         (`--option=value`), or add these variables to `{word}`"
    )]
    Unclear {
        /// The launcher.
        launcher: String,
        /// The word.
        word: String,
        /// The variables.
        names: String,
    },
    /// A launcher of an unknown MPI has `-x`.
    #[error(
        "quell does not know which MPI {launcher} belongs to, so it added no `-x` to the command; ranks on other hosts may lack \
         {names}. If it is Open MPI's, put an `-x` before its other options"
    )]
    UnknownLauncher {
        /// The launcher.
        launcher: String,
        /// The variables.
        names: String,
    },
    /// An Open MPI application file has `-x`.
    #[error(
        "{file} exports variables with `-x`; ranks on other hosts lack {names} unless each of its lines exports them with `-x`, too"
    )]
    AppFile {
        /// The file.
        file: String,
        /// The variables.
        names: String,
    },
    /// A shell replaces a part of a word that lists variables.
    #[error(
        "a shell computes `{word}`, which lists the variables for the ranks; they lack {names} unless the list has them"
    )]
    Expanded {
        /// The word.
        word: String,
        /// The variables.
        names: String,
    },
    /// A value is not text, and an option cannot have it.
    #[error("the value of {name} is not text, so no option passes it to ranks on other hosts")]
    NotText {
        /// The variable.
        name: &'static str,
    },
}

/// What this machine says about a command.
struct Site<'a> {
    launcher: &'a dyn Fn(&str) -> Launcher,
    environment: &'a dyn Fn(&str) -> Option<OsString>,
    file: &'a dyn Fn(&str) -> Option<String>,
}

/// What a command needs.
struct Passing<'a> {
    site: &'a Site<'a>,
    names: Vec<&'static str>,
    /// `None` where a value is not text.
    values: Vec<(&'static str, Option<String>)>,
    /// Values of the user's for the library list, with quell's in front.
    preload: String,
    doubts: Vec<Doubt>,
}

/// What a launch does with the variables of its environment.
struct Reading {
    found: Found,
    launch: Launch,
    /// It is Open MPI's, and exports variables with `-x`.
    exports: bool,
    /// It cannot have Open MPI's list as well, or may not.
    refuses_list: bool,
}

impl Loading {
    /// The command that passes this library and its variables to its ranks, in addition to what this process's environment has already.
    pub fn passed(&self, command: &[String]) -> Passed {
        let site = Site {
            launcher: &launcher_of,
            environment: &|name| std::env::var_os(name),
            file: &|name| fs::read_to_string(name).ok(),
        };
        self.pass(command, &site)
    }

    /// Its variables, if the environment loads others already.
    fn variables_after(&self, others: Option<OsString>) -> Vec<Variable> {
        let mut preload = self.library.clone().into_os_string();
        if let Some(others) = others {
            preload.push(":");
            preload.push(others);
        }
        std::iter::once((PRELOAD, preload)).chain(self.variables.iter().cloned()).collect()
    }

    /// The command that passes this library and its variables to its ranks.
    fn pass(&self, command: &[String], site: &Site<'_>) -> Passed {
        let has = |name: &str| (site.environment)(name).filter(|value| !value.is_empty());
        let mut variables = self.variables_after(has(PRELOAD));
        let names: Vec<&'static str> = variables.iter().map(|(name, _)| *name).collect();
        let text = |(name, value): &Variable| (*name, value.to_str().map(str::to_owned));
        let mut passing = Passing {
            site,
            values: variables.iter().map(text).collect(),
            names,
            preload: self.library.to_string_lossy().into_owned(),
            doubts: Vec::new(),
        };
        let read: Vec<Reading> = launches(command).into_iter().map(|found| passing.read(found)).collect();
        let listed = has(OPEN_MPI_LIST);
        // With a list in the environment, `-x` of the launcher's own would end the job anyway: each `-x` is the program's.
        let exports = listed.is_none() && read.iter().any(|one| one.exports);
        let list = listed.is_some() || !read.iter().any(|one| one.exports || one.refuses_list);
        let changes: Vec<(Place, Vec<Edit>)> =
            read.iter().map(|one| (one.found.place.clone(), passing.edits(one, exports))).collect();
        let (words, left) = apply(command, &changes);
        let shown = passing.names.join(", ");
        let expanded = left.into_iter().map(|word| Doubt::Expanded { word, names: shown.clone() });
        passing.doubts.extend(expanded);
        if list {
            let mut list = listed.unwrap_or_default();
            if !list.is_empty() {
                list.push(";");
            }
            list.push(passing.names.join(";"));
            variables.push((OPEN_MPI_LIST, list));
        }
        if let Some(list) = has(SLURM_LIST).and_then(|list| list.into_string().ok())
            && let Some(list) = passing.slurm_list(&list)
        {
            variables.push((SLURM_LIST, list.into()));
        }
        Passed { words, variables, doubts: passing.doubts }
    }
}

/// Whether a list has an entry that gives the library list another value.
fn sets_preload(entry: &str) -> Option<&str> {
    entry.strip_prefix(PRELOAD)?.strip_prefix('=')
}

impl Passing<'_> {
    fn read(&mut self, found: Found) -> Reading {
        let launcher = (self.site.launcher)(&found.launcher);
        let name = found.launcher.rsplit('/').next().unwrap_or_default();
        let is_unknown =
            launcher == Launcher::Other && (name.starts_with("mpirun") || name.starts_with("mpiexec"));
        // Of launchers with these names, only Open MPI's has `-x`.
        let syntax = if is_unknown { Launcher::OpenMpi(0) } else { launcher };
        let launch = Launch::from_words(syntax, &found.words);
        let (mut exports, mut refuses_list) = (false, false);
        if matches!(syntax, Launcher::OpenMpi(_)) {
            let unclear = |word: &str| {
                launch
                    .parts
                    .iter()
                    .any(|part| found.words[part.unclear.clone()].iter().any(|one| one == word))
            };
            let certain = launch.parts.iter().any(|part| part.named(&["x"]).next().is_some());
            let possible = unclear("-x") || unclear("--x");
            exports = certain || (possible && !is_unknown);
            if possible && !exports {
                refuses_list = true;
                self.doubts.push(Doubt::UnknownLauncher {
                    launcher: found.launcher.clone(),
                    names: self.names.join(", "),
                });
            }
            if unclear(OPEN_MPI_PARAMETER) {
                self.unclear(&found, OPEN_MPI_PARAMETER);
            }
            for option in launch.parts.iter().flat_map(|part| part.named(&["app", "appfile"])) {
                let Some((at, begin)) = option.values.first() else { continue };
                let file = found.words[*at][*begin..].to_owned();
                let text = (self.site.file)(&file).unwrap_or_default();
                if text.split_whitespace().any(|word| word == "-x" || word == "--x") {
                    refuses_list = true;
                    self.doubts.push(Doubt::AppFile { file, names: self.names.join(", ") });
                }
            }
        }
        Reading { found, launch, exports, refuses_list }
    }

    fn unclear(&mut self, found: &Found, word: &str) {
        let (launcher, word) = (found.launcher.clone(), word.to_owned());
        self.doubts.push(Doubt::Unclear { launcher, word, names: self.names.join(", ") });
    }

    fn edits(&mut self, reading: &Reading, exports: bool) -> Vec<Edit> {
        let Reading { found, launch, .. } = reading;
        match launch.launcher {
            Launcher::OpenMpi(_) => self.open_mpi(found, launch, exports),
            Launcher::Hydra => self.hydra(found, launch),
            Launcher::Srun => self.slurm(found, launch),
            Launcher::Other => Vec::new(),
        }
    }

    fn open_mpi(&self, found: &Found, launch: &Launch, exports: bool) -> Vec<Edit> {
        let mut edits = Vec::new();
        for part in &launch.parts {
            let mut exported: Vec<&str> = Vec::new();
            for option in part.named(&["x"]) {
                let Some(value) = value(found, option, 0) else { continue };
                if let Some(others) = sets_preload(value) {
                    edits.push(replace(found, option, 0, &format!("{PRELOAD}={}:{others}", self.preload)));
                }
                exported.push(value.split('=').next().unwrap_or(value));
            }
            for option in part.named(&["mca", "gmca", "omca", "gomca"]) {
                if value(found, option, 0) == Some(OPEN_MPI_PARAMETER)
                    && let Some(list) = value(found, option, 1)
                {
                    edits.push(replace(found, option, 1, &self.open_mpi_list(list)));
                }
            }
            if exports {
                let names = self.names.iter().filter(|name| !exported.contains(*name));
                edits.push(Edit::Insert(
                    part.start,
                    names.flat_map(|name| ["-x".to_owned(), (*name).to_owned()]).collect(),
                ));
            }
        }
        edits
    }

    fn open_mpi_list(&self, list: &str) -> String {
        let with_library = |entry: &str| {
            sets_preload(entry)
                .map_or_else(|| entry.to_owned(), |others| format!("{PRELOAD}={}:{others}", self.preload))
        };
        let mut entries: Vec<String> =
            list.split(';').filter(|entry| !entry.is_empty()).map(with_library).collect();
        let has = |name: &str| list.split(';').any(|entry| entry.split('=').next() == Some(name));
        entries.extend(self.names.iter().filter(|name| !has(name)).map(|name| (*name).to_owned()));
        entries.join(";")
    }

    /// Hydra passes all variables, unless options or its own variable limit them; `-genv` adds to what it passes then.
    fn hydra(&mut self, found: &Found, launch: &Launch) -> Vec<Edit> {
        const LIMITS: [&str; 5] = ["genvnone", "genvlist", "genvexcl", "envnone", "envlist"];
        let mut edits = Vec::new();
        let mut sets = false;
        let mut limits =
            (self.site.environment)("HYDRA_ENV").is_some_and(|value| !value.is_empty() && value != "all");
        for part in &launch.parts {
            limits |= part.named(&LIMITS).next().is_some();
            limits |= found.words[part.unclear.clone()]
                .iter()
                .any(|word| LIMITS.contains(&word.trim_start_matches('-')));
            // The value is in the next word, or after `=`.
            for option in part.named(&["genv", "env"]) {
                let Some(first) = value(found, option, 0) else { continue };
                let (at, joined) = match sets_preload(first) {
                    Some(others) => (0, format!("{PRELOAD}={}:{others}", self.preload)),
                    None if first == PRELOAD => {
                        let Some(others) = value(found, option, 1) else { continue };
                        (1, format!("{}:{others}", self.preload))
                    }
                    None => continue,
                };
                sets |= option.name == "genv";
                edits.push(replace(found, option, at, &joined));
            }
            for option in part.named(&["configfile"]) {
                let file =
                    value(found, option, 0).and_then(|file| (self.site.file)(file)).unwrap_or_default();
                limits |= file.split_whitespace().any(|word| LIMITS.contains(&word.trim_start_matches('-')));
            }
        }
        if limits {
            let mut words = Vec::new();
            for (name, value) in self.values.iter().filter(|(name, _)| !(sets && *name == PRELOAD)) {
                match value {
                    Some(value) => words.extend(["-genv".to_owned(), (*name).to_owned(), value.clone()]),
                    None => self.doubts.push(Doubt::NotText { name }),
                }
            }
            edits.push(Edit::Insert(0, words));
        }
        edits
    }

    fn slurm(&mut self, found: &Found, launch: &Launch) -> Vec<Edit> {
        let mut edits = Vec::new();
        for Part { options, unclear, .. } in &launch.parts {
            for option in options.iter().filter(|option| option.name == "export") {
                let list = value(found, option, 0).and_then(|list| self.slurm_list(list));
                edits.extend(list.map(|list| replace(found, option, 0, &list)));
            }
            let mut words = found.words[unclear.clone()].iter();
            if let Some(word) = words.find(|word| *word == "--export" || word.starts_with("--export=")) {
                self.unclear(found, word);
            }
        }
        edits
    }

    /// A value of `--export` that also passes the variables; `None` if it does already.
    fn slurm_list(&self, list: &str) -> Option<String> {
        let whole = list.trim().to_ascii_uppercase();
        if whole == "NONE" || whole == "NIL" || whole.is_empty() {
            // A list passes Slurm's own variables as NONE does.
            return Some(self.names.join(","));
        }
        let mut entries: Vec<String> = Vec::new();
        for entry in list.split(',') {
            let joined = sets_preload(entry).map(|others| {
                let (quote, others) = others.strip_prefix('\'').map_or(("", others), |others| ("'", others));
                format!("{PRELOAD}={quote}{}:{others}", self.preload)
            });
            entries.push(joined.unwrap_or_else(|| entry.to_owned()));
        }
        let has = |name: &str| list.split(',').any(|entry| entry.split('=').next() == Some(name));
        if !list.split(',').any(|entry| entry.eq_ignore_ascii_case("ALL")) {
            entries.extend(self.names.iter().filter(|name| !has(name)).map(|name| (*name).to_owned()));
        }
        let joined = entries.join(",");
        (joined != list).then_some(joined)
    }
}

/// The value of an option with this number.
fn value<'a>(found: &'a Found, option: &LaunchOption, number: usize) -> Option<&'a str> {
    option.values.get(number).map(|(word, begin)| &found.words[*word][*begin..])
}

/// The option with another value.
fn replace(found: &Found, option: &LaunchOption, number: usize, value: &str) -> Edit {
    let (word, begin) = option.values[number];
    Edit::Replace(word, format!("{}{value}", &found.words[word][..begin]))
}

#[cfg(test)]
mod tests;
