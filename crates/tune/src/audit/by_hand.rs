//! The state of things that quell does not change.

use super::ByHand;
use super::look::{Examined, Examiner, Verdict};
use crate::catalogue::{ByHandKnob, ManualCheck};

/// Possible paths of Slurm's configuration.
const SLURM: [&str; 3] = ["/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/usr/local/etc/slurm.conf"];

/// What the machine shows, and a text; an error if the machine does not have it.
type Seen = Result<(Verdict, String), String>;

impl Examiner<'_> {
    pub(super) fn by_hand(&self, knob: &ByHandKnob) -> Examined {
        let by_hand = |done, seen| Some(ByHand { todo: knob.r#do.clone(), done, seen });
        let Some(how) = &knob.look else {
            let by_hand = by_hand(None, None);
            let why = Some("quell cannot see whether it is done".to_owned());
            return Examined { verdict: Verdict::Unseen, why, place_state: None, by_hand };
        };
        if let ManualCheck::File { path, .. } = how
            && !self.root.has(path)
            && let Some(look) = self.behind_a_mount(path)
        {
            return Examined { by_hand: by_hand(None, look.why.clone()), ..look };
        }
        match self.seen(how) {
            Ok((verdict, seen)) => {
                let done = match verdict {
                    Verdict::Done => Some(true),
                    Verdict::Not => Some(false),
                    _ => None,
                };
                let by_hand = by_hand(done, Some(seen.clone()));
                Examined { verdict, why: Some(seen), place_state: None, by_hand }
            }
            Err(why) => Examined::bare(Verdict::NotMissed, why),
        }
    }

    fn seen(&self, how: &ManualCheck) -> Seen {
        match how {
            ManualCheck::Steal => Ok(self.steal()),
            ManualCheck::File { path, matches } => self.text(path, matches),
            ManualCheck::NoProcess { matches } => self.no_process(matches),
            ManualCheck::Process { matches } => self.some_process(matches),
            ManualCheck::Irq { matches } => self.some_irq(matches),
            ManualCheck::SlurmCores => self.slurm_cores(),
            ManualCheck::BannedCpus { path } => self.banned_cpus(path),
        }
    }

    fn steal(&self) -> (Verdict, String) {
        let stat = self.root.read("/proc/stat").unwrap_or_default();
        let field = stat.lines().next().and_then(|line| line.split_whitespace().nth(8));
        let ticks: u64 = field.and_then(|field| field.parse().ok()).unwrap_or(0);
        if ticks > 0 {
            // USER_HZ is 100 on every architecture that Linux supports.
            let seconds = ticks as f64 / 100.0;
            return (Verdict::Not, format!("the hypervisor took {seconds:.1} s of CPU time since boot"));
        }
        let lparcfg = self.root.read("/proc/ppc64/lparcfg").unwrap_or_default();
        let shared = lparcfg.lines().find_map(|line| line.strip_prefix("shared_processor_mode="));
        match shared.map(str::trim) {
            Some("0") => return (Verdict::Done, "the partition's processors are dedicated".into()),
            Some(_) => return (Verdict::Not, "the partition shares its processors with others".into()),
            None => {}
        }
        match crate::facts::is_guest(self.root) {
            Some(false) => (Verdict::Done, "there is no hypervisor".into()),
            Some(true) => (Verdict::Unseen, "there is a hypervisor; it reports no stolen time".into()),
            None => (
                Verdict::Unseen,
                "no stolen time is reported, and it is unknown whether there is a hypervisor".into(),
            ),
        }
    }

    fn text(&self, path: &str, matches: &str) -> Seen {
        let regex = regex::Regex::new(matches).map_err(|e| e.to_string())?;
        let text = match self.readable(path)? {
            Ok(text) => text,
            Err(unseen) => return Ok(unseen),
        };
        let first = text.trim().lines().next().unwrap_or_default();
        let shown: String = first.chars().take(120).collect();
        Ok((judged(regex.is_match(text.trim())), format!("{path} has `{shown}`")))
    }

    fn no_process(&self, matches: &str) -> Seen {
        let regex = regex::Regex::new(matches).map_err(|e| e.to_string())?;
        let processes = self.lists.processes().iter().map(|one| one.comm.as_str());
        let all = processes.chain(self.lists.kernel_threads().iter().map(|one| one.comm.as_str()));
        let mut names: Vec<&str> = all.filter(|name| regex.is_match(name)).collect();
        names.sort_unstable();
        names.dedup();
        Ok(match names.is_empty() {
            true => (Verdict::Done, "no such process runs".into()),
            false => (Verdict::Not, format!("{} runs", names.join(", "))),
        })
    }

    fn some_process(&self, matches: &str) -> Seen {
        match self.no_process(matches)? {
            (Verdict::Done, _) => Err(format!("no process or kernel thread is named like `{matches}`")),
            (_, runs) => Ok((Verdict::Unseen, format!("{runs}; quell cannot see whether it is done"))),
        }
    }

    fn some_irq(&self, matches: &str) -> Seen {
        let regex = regex::Regex::new(matches).map_err(|e| e.to_string())?;
        let count = self.lists.irqs().iter().filter(|irq| regex.is_match(&irq.name)).count();
        match count {
            0 => Err(format!("no interrupt is named like `{matches}`")),
            _ => Ok((
                Verdict::Unseen,
                format!("{count} such interrupts are here; quell cannot see whether it is done"),
            )),
        }
    }

    fn slurm_cores(&self) -> Seen {
        let Some((path, text)) = SLURM.iter().find_map(|path| Some((*path, self.root.read(path).ok()?)))
        else {
            return Err("there is no slurm.conf here".into());
        };
        let (verdict, seen) = super::slurm::reserved(&text, &self.facts.host);
        Ok((verdict, format!("{path} {seen}")))
    }

    fn banned_cpus(&self, path: &str) -> Seen {
        let text = match self.readable(path)? {
            Ok(text) => text,
            Err(unseen) => return Ok(unseen),
        };
        let (verdict, seen) = super::irqbalance::bans(&text, self.parts.map(|parts| &*parts.compute));
        Ok((verdict, format!("{path} {seen}")))
    }

    /// The text of a file, or why it is not visible; an error if it does not exist.
    fn readable(&self, path: &str) -> Result<Result<String, (Verdict, String)>, String> {
        match self.root.read(path) {
            Ok(text) => Ok(Ok(text)),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Ok(Err((Verdict::NotReadable, format!("{path} cannot be read: only root may"))))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(format!("{path} is not there")),
            Err(error) => Ok(Err((Verdict::Unseen, format!("{path} cannot be read: {error}")))),
        }
    }
}

fn judged(done: bool) -> Verdict {
    if done { Verdict::Done } else { Verdict::Not }
}
