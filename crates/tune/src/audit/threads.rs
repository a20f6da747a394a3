//! Threads: those of the kernel, and those of the process for which a plan is made.

use quell_recording::format_cpu_list;

use super::look::{At, Examined, Examiner, Verdict};
use super::near::near;
use crate::catalogue::{Compare, KernelThreadKnob, ProcessKnob, Property};
use crate::place::Place;
use crate::place::thread::{Task, threads_of};

impl Examiner<'_> {
    pub(super) fn kernel_threads(&self, at: At<'_>, knob: &KernelThreadKnob) -> Vec<Examined> {
        let regex = match regex::Regex::new(&knob.matches) {
            Ok(regex) => regex,
            Err(error) => return vec![Examined::bare(Verdict::Unseen, error.to_string())],
        };
        let threads = self.lists.kernel_threads();
        let mine: Vec<&Task> = threads.iter().filter(|one| regex.is_match(&one.comm)).collect();
        if mine.is_empty() {
            let why = format!("no kernel thread is named like `{}`", knob.matches);
            return vec![Examined::bare(Verdict::NotMissed, why)];
        }
        let look = |thread: &&Task| {
            let place = place(thread, Property::Affinity);
            let now = place.cpus(&thread.affinity).unwrap_or_default();
            let part = at.filling.cpus(knob.want);
            let want = part.map(|part| format_cpu_list(&near(&now, &part, &self.facts.numa)));
            let mut look = self.see(place, want, Compare::Within, true);
            look.place_state.iter_mut().for_each(|place_state| place_state.may_fail = mine.len() > 1);
            match thread.bound {
                true => look.immovable("bound to its CPUs by the kernel"),
                false => look,
            }
        };
        mine.iter().map(look).collect()
    }

    pub(super) fn process(&self, at: At<'_>, knob: &ProcessKnob) -> Vec<Examined> {
        let Some(pid) = self.options.pid else {
            let why = "it applies to a process: give --pid";
            return vec![Examined::bare(Verdict::Unseen, why)];
        };
        let threads = match threads_of(self.root, pid) {
            Ok(threads) if !threads.is_empty() => threads,
            Ok(_) => return vec![Examined::bare(Verdict::Unseen, format!("there is no process {pid}"))],
            Err(trouble) => return vec![Examined::bare(Verdict::Unseen, trouble.to_string())],
        };
        // Threads with CPUs of their own are bound on purpose. Threads that all have the same few CPUs, and what they start, may lack some.
        let differ = threads.iter().any(|one| one.affinity != threads[0].affinity);
        let how = match knob.what {
            Property::TimerSlack => Compare::AtLeast,
            Property::Affinity if differ => Compare::Within,
            _ => Compare::Equal,
        };
        let see = |thread: &Task| self.see(place(thread, knob.what), at.fill(&knob.want), how, false);
        threads.iter().map(see).collect()
    }
}

fn place(thread: &Task, property: Property) -> Place {
    Place::Thread { pid: thread.pid, start: thread.start, comm: thread.comm.clone(), property }
}
