//! The command lines of launchers as their users write them: which words are the launcher's own options, and where programs begin.

use std::path::Path;

use super::Launcher;

/// One launch: a launcher's options and the programs that it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The launcher's syntax.
    pub launcher: Launcher,
    /// Its parts between words `:`, each with options and a program of its own.
    pub parts: Vec<Part>,
}

/// One part of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Index of its first word.
    pub start: usize,
    /// The launcher's options, in order.
    pub options: Vec<LaunchOption>,
    /// Words that may be options of the launcher, or the program and its arguments: they follow an option that this list does not have.
    pub unclear: std::ops::Range<usize>,
}

/// An option of a launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchOption {
    /// Its full name, without hyphens; for short options of srun, too.
    pub name: String,
    /// Index of its word.
    pub at: usize,
    /// Its values: the index of the word, and where in this word the value begins.
    pub values: Vec<(usize, usize)>,
}

/// Whether a program starts the ranks of an MPI program, by its name.
pub fn is_launcher(program: &str) -> bool {
    const NAMES: [&str; 10] =
        ["mpirun", "mpiexec", "orterun", "prterun", "prun", "srun", "aprun", "jsrun", "flux", "ibrun"];
    NAMES.contains(&stem(program))
}

/// The syntax of a launcher by its name; `None` if several have this name.
pub fn launcher_by_name(program: &str) -> Option<Launcher> {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match (stem(program), name.split_once('.').map(|(_, suffix)| suffix)) {
        ("orterun", _) | (_, Some("openmpi")) => Some(Launcher::OpenMpi(4)),
        ("prterun" | "prun", _) => Some(Launcher::OpenMpi(5)),
        (_, Some("hydra" | "mpich")) => Some(Launcher::Hydra),
        ("srun", _) => Some(Launcher::Srun),
        ("mpirun" | "mpiexec", _) => None,
        _ => Some(Launcher::Other),
    }
}

/// A program's name up to the first dot: Debian has `mpirun.openmpi`.
fn stem(program: &str) -> &str {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.split('.').next().unwrap_or_default()
}

impl Launch {
    /// Reads the words that follow a launcher's name. All indices are those of `words`.
    pub fn from_words(launcher: Launcher, words: &[String]) -> Self {
        // All launchers here split their words at each `:`, even among a program's arguments.
        let mut parts = Vec::new();
        let mut start = 0;
        for (at, word) in words.iter().enumerate() {
            if word == ":" {
                parts.push(Part::from_words(launcher, &words[..at], start));
                start = at + 1;
            }
        }
        parts.push(Part::from_words(launcher, words, start));
        Self { launcher, parts }
    }
}

impl Part {
    fn from_words(launcher: Launcher, words: &[String], start: usize) -> Self {
        let mut part = Self { start, options: Vec::new(), unclear: words.len()..words.len() };
        let mut at = start;
        while let Some(word) = words.get(at).filter(|word| word.len() > 1 && word.starts_with('-')) {
            let found = match launcher {
                _ if word == "--" => return part,
                Launcher::Srun => slurm_option(word),
                Launcher::OpenMpi(_) => long_option(word, OPEN_MPI),
                Launcher::Hydra => long_option(word, HYDRA),
                Launcher::Other => None,
            };
            let Some(Found { name, number, inline }) = found else {
                at += 1;
                if word.contains('=') || words.get(at).is_some_and(|next| next.starts_with('-')) {
                    continue;
                }
                part.unclear = at..words.len();
                return part;
            };
            let inline = inline.map(|begin| (at, begin));
            let following = (at + 1..words.len()).map(|value| (value, 0));
            let values: Vec<_> = inline.into_iter().chain(following).take(number).collect();
            let last = values.last().map_or(at, |(word, _)| *word);
            part.options.push(LaunchOption { name, at, values });
            at = last.max(at) + 1;
        }
        part
    }

    /// Its options of these names.
    pub fn named<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a LaunchOption> {
        self.options.iter().filter(|option| names.contains(&option.name.as_str()))
    }
}

/// An option in a word.
struct Found {
    name: String,
    /// Number of its values.
    number: usize,
    /// Where in the word its first value begins.
    inline: Option<usize>,
}

/// Names of options with no value, with one, and with two, separated by blanks.
type Table = [&'static str; 3];

fn values_of(name: &str, table: Table) -> Option<usize> {
    table.iter().position(|names| names.split_whitespace().any(|one| one == name))
}

/// An option as Open MPI and Hydra have them: one hyphen or two, a value in the next word or after `=`.
fn long_option(word: &str, table: Table) -> Option<Found> {
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
    let number = values_of(name, table)?;
    let inline = value.map(|value| word.len() - value.len());
    Some(Found { name: name.to_owned(), number: number.max(usize::from(inline.is_some())), inline })
}

/// An option as GNU's `getopt_long` reads it: short ones may share a word, and names may be cut short.
fn slurm_option(word: &str) -> Option<Found> {
    let Some(long) = word.strip_prefix("--") else {
        let mut letters = word.char_indices().skip(1);
        return letters
            .find_map(|(at, letter)| {
                let rest = at + letter.len_utf8();
                let attached = (rest < word.len()).then_some(rest);
                let valued = SLURM_LETTERS.iter().find(|(short, _)| *short == letter);
                match valued {
                    Some((_, name)) => Some(Found { name: (*name).to_owned(), number: 1, inline: attached }),
                    None if SLURM_OPTIONAL.contains(letter)
                        || (attached.is_none() && SLURM_FLAGS.contains(letter)) =>
                    {
                        Some(Found { name: letter.to_string(), number: 0, inline: None })
                    }
                    None if SLURM_FLAGS.contains(letter) => None,
                    // Not an option that is listed: the end of the word, and no name.
                    None => Some(Found { name: String::new(), number: 0, inline: None }),
                }
            })
            .filter(|found| !found.name.is_empty());
    };
    let (typed, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
    let all = || SLURM.iter().flat_map(|names| names.split_whitespace());
    let mut starting = all().filter(|name| name.starts_with(typed));
    let name = match (all().find(|name| *name == typed), starting.next(), starting.next()) {
        (Some(name), _, _) | (None, Some(name), None) => name,
        _ => return None,
    };
    let inline = value.map(|value| word.len() - value.len());
    let number = values_of(name, SLURM)?.max(usize::from(inline.is_some()));
    Some(Found { name: name.to_owned(), number, inline })
}

/// Options of Open MPI 4 (`mpirun --help full`), and of 5 and PRRTE.
const OPEN_MPI: Table = [
    "allow-run-as-root bind-to-core bind-to-socket bycore bynode byslot byboard bysocket bynuma continuous cpu-set-by-core d debug \
     debug-devel debug-daemons debug-daemons-file disable-recovery display-allocation display-devel-allocation display-devel-map \
     display-diffable-map display-map display-topo do-not-launch do-not-resolve enable-instant-on-support enable-recovery \
     fwd-mpirun-port get-stack-traces index-argv-by-rank leave-session-attached merge-stderr-to-stdout nolocal nooversubscribe \
     noprefix novm nw no-local output-proctable oversubscribe pernode q quiet report-bindings report-child-jobs-separately \
     report-state-on-timeout s preload-binary set-cwd-to-session-dir show-progress tag-output timestamp-output tv \
     use-hwthread-cpus use-regexp v verbose V version xml stop-on-exec abort-on-non-zero-status no-ready-msg \
     daemonize debug-verbose set-sid no-app-prefix display-comm display-comm-finalize do-not-aggregate-help parsable parseable \
     exit-on-empty nodaemonize",
    "am tune app appfile bind-to c np n cf cartofile cpu-list cpu-set cpus-per-proc cpus-per-rank debugger default-hostfile H host hnp \
     hostfile launch-agent machinefile map-by max-restarts max-vm-size N npernode npersocket ompi-server output-filename \
     path personality ppr prefix preload-files rank-by report-events report-pid report-uri rf rankfile stdin timeout wd wdir x \
     xml-file xterm output output-directory output-filename display runtime-options rtos dvm-uri dvm-hostfile namespace nspace \
     with-ft pset add-host add-hostfile system-server-first memory-per-rank memory-per-node spawn-timeout stream-buffering pid \
     forward-signals exec-agent unset-env app-prefix pmix-prefix num-connect-retries wait-to-connect gpu-support tree-spawn",
    "mca gmca omca gomca prtemca pmixmca gpmixmca prepend-env append-env",
];

/// Options of Hydra's `mpiexec`: MPICH's (`mpiexec --help`), and those that Intel MPI and MVAPICH add.
const HYDRA: Table = [
    "genvnone genvall envnone envall enable-x disable-x verbose v info version V print-all-exitcodes profile prepend-rank l \
     disable-auto-cleanup enable-auto-cleanup disable-hostname-propagation enable-hostname-propagation pmi-port skip-launch-node \
     rr nolocal print-rank-map ordered-output noconf disable-gpus cleanup fork check_mpi dapl ib",
    "genvlist genvexcl wdir configfile f hosts hostfile machinefile machine host n np envlist envexcl launcher bootstrap launcher-exec \
     bootstrap-exec bootstrap-exec-args rmk topolib bind-to map-by membind binding demux iface ppn perhost grr prepend-pattern \
     outfile-pattern errfile-pattern outfile errfile nameserver order-nodes localhost usize gpus-per-proc gpu-subdevs-per-proc s path \
     umask tmpdir ckpoint-interval ckpoint-prefix ckpoint-num ckpointlib gtool gtoolfile port-range pmi-connect pmi-aggregate \
     singleton_pid singleton_port gpath gwdir gumask ghost g hydra-exec",
    "genv env",
];

/// Options of Slurm's `srun` (`src/common/slurm_opt.c`): without a value or with one that only `=` may give, and with one.
const SLURM: Table = [
    "async consolidate-segments contiguous debugger-test disable-status exact help hold interactive label multi-prog no-allocate \
     overcommit oversubscribe share parsable preserve-env quiet quit-on-interrupt reboot spread-job spread-segments stepmgr test-only \
     unbuffered usage use-min-nodes verbose version wait-for-children whole bcast compress exclusive external-launcher immediate \
     kill-on-bad-exit nice no-kill oom-kill-step overlap propagate pty resv-ports send-libs x11",
    "accel-bind account acctg-freq autocomplete bb bbf bcast-exclude begin chdir cluster cluster-constraint clusters comment \
     constraint container container-id context core-spec cores-per-socket cpu-bind cpu-freq cpu_bind cpus-per-gpu cpus-per-task \
     deadline delay-boot dependency distribution epilog error exclude export extra extra-node-info gpu-bind gpu-freq gpus \
     gpus-per-node gpus-per-socket gpus-per-task gres gres-flags het-group hint ignore-signals input job-name jobid licenses \
     mail-type mail-user mcs-label mem mem-bind mem_bind mem-per-cpu mem-per-gpu mem-update mincpus mpi msg-timeout network nodefile \
     nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output \
     pack-group partition power prefer priority profile prolog qos relative reservation resources runtime segment signal slurmd-debug \
     sockets-per-node switches task-epilog task-prolog tasks-per-node thread-spec threads threads-per-core time time-min tmp \
     treewidth tres-bind tres-per-task uid gid wait wckey",
    "",
];

/// Short options of `srun` with a value.
const SLURM_LETTERS: &[(char, &str)] = &[
    ('A', "account"),
    ('b', "begin"),
    ('D', "chdir"),
    ('M', "clusters"),
    ('C', "constraint"),
    ('S', "core-spec"),
    ('c', "cpus-per-task"),
    ('d', "dependency"),
    ('m', "distribution"),
    ('e', "error"),
    ('x', "exclude"),
    ('B', "extra-node-info"),
    ('G', "gpus"),
    ('i', "input"),
    ('J', "job-name"),
    ('L', "licenses"),
    ('F', "nodefile"),
    ('w', "nodelist"),
    ('N', "nodes"),
    ('n', "ntasks"),
    ('o', "output"),
    ('p', "partition"),
    ('q', "qos"),
    ('r', "relative"),
    ('T', "threads"),
    ('t', "time"),
    ('W', "wait"),
];
/// Short options of `srun` without a value, and those with one that only the same word may give.
const SLURM_FLAGS: &str = "XhHlZOsEQuvV";
const SLURM_OPTIONAL: &str = "IKk";

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(launcher: Launcher, line: &str) -> Vec<(String, String)> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let launch = Launch::from_words(launcher, &words);
        let shown = |part: &Part| {
            let value = |(word, begin): &(usize, usize)| words[*word][*begin..].to_owned();
            let option = |option: &LaunchOption| {
                let values: Vec<String> = option.values.iter().map(value).collect();
                std::iter::once(option.name.clone()).chain(values).collect::<Vec<_>>().join("=")
            };
            (
                part.options.iter().map(option).collect::<Vec<_>>().join(" "),
                words[part.unclear.clone()].join(" "),
            )
        };
        launch.parts.iter().map(shown).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(options, unclear)| ((*options).to_owned(), (*unclear).to_owned())).collect()
    }

    /// A program whose arguments look like the options of every launcher.
    const LIKE_OPTIONS: &str =
        "./app -x 3 -n 4 --export=NONE -genv A B -genvnone --mca mca_base_env_list C -envlist D";

    #[test]
    fn options_end_where_the_program_begins() {
        for (launcher, options, read) in [
            (
                Launcher::OpenMpi(4),
                "-np 2 --mca btl self,tcp -x A=1 --bind-to none -H a:2,b",
                "np=2 mca=btl=self,tcp x=A=1 bind-to=none H=a:2,b",
            ),
            (
                Launcher::OpenMpi(5),
                "--map-by ppr:1:node:OVERSUBSCRIBE --prtemca a b --np=2 --tag-output",
                "map-by=ppr:1:node:OVERSUBSCRIBE prtemca=a=b np=2 tag-output",
            ),
            (
                Launcher::Hydra,
                "-genv A B -genvnone -hosts a,b -ppn=1 --np 2 -env C D",
                "genv=A=B genvnone hosts=a,b ppn=1 np=2 env=C=D",
            ),
            (
                Launcher::Srun,
                "-N2 -lx node7 --expo NONE --mpi=pmix -ln 4 --exclusive -K1 --time=1:00",
                "nodes=2 exclude=node7 export=NONE mpi=pmix ntasks=4 exclusive K time=1:00",
            ),
        ] {
            let line = format!("{options} {LIKE_OPTIONS} : -n 2 ./other -x B");
            let second = if launcher == Launcher::Srun { "ntasks=2" } else { "n=2" };
            assert_eq!(parts(launcher, &line), pairs(&[(read, ""), (second, "")]), "{line}");
        }
    }

    #[test]
    fn words_after_an_unknown_option_are_unclear() {
        for launcher in [Launcher::OpenMpi(4), Launcher::Hydra, Launcher::Srun] {
            assert_eq!(
                parts(launcher, "-n 2 --site-policy fast ./app -x A"),
                pairs(&[(if launcher == Launcher::Srun { "ntasks=2" } else { "n=2" }, "fast ./app -x A")])
            );
            let clear = parts(launcher, "--site-policy=fast --site-flag -n 2 ./app -x A");
            assert_eq!(clear[0].1, "", "neither takes the program");
        }
        assert_eq!(
            parts(Launcher::OpenMpi(4), "-n 2 -- -x A"),
            pairs(&[("n=2", "")]),
            "all options are before --"
        );
    }

    #[test]
    fn launchers_are_known_by_name() {
        assert!(
            is_launcher("/usr/bin/mpirun.openmpi") && is_launcher("srun") && is_launcher("mpiexec.hydra")
        );
        assert!(!is_launcher("./mpirun_like") && !is_launcher("lmp") && !is_launcher(""));
        assert_eq!(launcher_by_name("/usr/bin/mpiexec.openmpi"), Some(Launcher::OpenMpi(4)));
        assert_eq!(launcher_by_name("mpiexec.hydra"), Some(Launcher::Hydra));
        assert_eq!(launcher_by_name("/opt/slurm/bin/srun"), Some(Launcher::Srun));
        assert_eq!(launcher_by_name("mpirun"), None);
        assert_eq!(launcher_by_name("jsrun"), Some(Launcher::Other));
    }
}
