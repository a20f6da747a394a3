//! `quell tune serve`: keeps a profile applied until it is asked to end, and reverts it then.

use std::time::{Duration, Instant};

use quell_recording::format_cpu_list;
use quell_tune::Root;
use quell_tune::apply::{Applied, ApplyError};
use quell_tune::guard::{Allowed, refusals};
use quell_tune::keeper::Until;
use quell_tune::place::{Units, started};
use quell_tune::plan::Plan;
use quell_tune::revert::{RevertError, recover};
use quell_tune::serve::{Device, Events, Look, Served};
use quell_tune::store::StoreError;
use sd_notify::NotifyState;

use super::apply::TIMEOUT;
use super::plan::{Wanted, planned};
use super::{allowed, may_write, need_root, program, revert};
use crate::args::TuneServe;
use crate::outcome::Outcome;
use crate::printer::{Printer, one_line};
use crate::signals::Signals;
use crate::steps::audit::{catalogue, root};

/// Shortest time between looks that devices cause, which may come and go in hundreds. CPUs do not wait.
const REST: Duration = Duration::from_secs(5);
/// Longest wait without a look at the signals.
const STEP: Duration = Duration::from_millis(500);

/// Applies, follows the machine, and reverts at the end.
pub fn run(args: &TuneServe, printer: Printer) -> anyhow::Result<Outcome> {
    quell_request::positive(args.every, "--every")?;
    let root = root(args.machine.sysroot.as_deref())?;
    let first = plan(args, &root)?;
    if !args.yes {
        printer.result(&first.diff())?;
    }
    let refused = refusals(&root, &first, allowed(&args.allow), &catalogue(&args.machine, &root)?);
    refused.iter().for_each(|refusal| printer.notice(&format!("refused: {refusal}")));
    if !refused.is_empty() {
        return Ok(Outcome::LimitExceeded);
    }
    if !args.yes {
        let who = if may_write(&root) { "" } else { " (only root may)" };
        printer.notice(&format!(
            "nothing was written: --yes makes these writes{who}, and those for what comes later, until quell ends"
        ));
        return Ok(Outcome::Done);
    }
    need_root(&root, "change")?;
    // A second signal must not end quell before it has reverted.
    let signals = Signals::catch()?;
    let stopped = || signals.stopped();
    // What an earlier service left, if it and its keepers were killed.
    let left = patiently(is_locked, || recover(&root, "the next service"))?;
    if !left.ids.is_empty() {
        printer.status(revert::text(&left).trim_end());
    }
    let me = std::process::id();
    let start =
        started(me).ok_or_else(|| anyhow::anyhow!("/proc does not show when this process started"))?;
    let until = Until { after: None, process: Some((me, start)) };
    let served = Served::new(&root, program()?, until);
    let mut service = Service { args, root: &root, served, units: Units::default(), printer, problem: None };
    // Changes from here on are seen.
    let events = Events::listen();
    if root.is_system() {
        leave_compute_cpus(&first, printer);
    }
    // While a machine boots, others change what was planned.
    let passes = |error: &anyhow::Error| match error.downcast_ref::<ApplyError>() {
        Some(ApplyError::Stale(_)) => true,
        Some(ApplyError::Store(error)) => matches!(error, StoreError::Locked(_)),
        _ => false,
    };
    patiently(passes, || service.apply(&plan(args, &root)?, &stopped))?;
    report(&[NotifyState::Ready, NotifyState::Status(&format!("{} is applied", args.profile))]);
    let every = Duration::from_nanos(args.every.as_nanos());
    while !stopped() {
        let (begin, mut changed) = (Instant::now(), false);
        let end = begin + every;
        while !stopped() && Instant::now() < end {
            let devices = events.wait(STEP.min(end.saturating_duration_since(Instant::now())));
            devices.iter().for_each(|device| service.served.disturb(device));
            changed |= !devices.is_empty();
            if is_due(changed, devices.iter().any(Device::is_cpu), begin.elapsed()) {
                break;
            }
        }
        if !stopped() {
            service.look(&stopped);
        }
    }
    report(&[NotifyState::Stopping]);
    let reverted = patiently(is_locked, || service.served.end())?;
    printer.status(revert::text(&reverted).trim_end());
    revert::outcome(&reverted)
}

/// Whether devices that came or went since the last look call for another one.
fn is_due(changed: bool, is_cpu: bool, since: Duration) -> bool {
    is_cpu || changed && since >= REST
}

/// Tries again for as long as an error passes.
fn patiently<T, E>(passes: impl Fn(&E) -> bool, mut act: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let end = Instant::now() + TIMEOUT;
    loop {
        match act() {
            Err(error) if passes(&error) && Instant::now() < end => std::thread::sleep(STEP),
            other => return other,
        }
    }
}

fn is_locked(error: &RevertError) -> bool {
    matches!(error, RevertError::Store(StoreError::Locked(_)))
}

fn plan(args: &TuneServe, root: &Root) -> anyhow::Result<Plan> {
    let catalogue = catalogue(&args.machine, root)?;
    let wanted = Wanted { ids: &[], profile: Some(&args.profile), persist: false };
    planned(root, &catalogue, &wanted, &args.options, &args.machine)
}

struct Service<'a> {
    args: &'a TuneServe,
    root: &'a Root,
    served: Served<'a>,
    units: Units,
    printer: Printer,
    /// The last problem that was reported, so that each is reported once.
    problem: Option<String>,
}

impl Service<'_> {
    /// Looks at the machine again, and applies what is due. A problem does not end the service.
    fn look(&mut self, stopped: &dyn Fn() -> bool) {
        let (served, args, root) = (&mut self.served, self.args, self.root);
        // Before the state of units is read once for all that follows.
        let failed = match served.revert_failed() {
            // The next look does.
            Err(StoreError::Locked(_)) => Ok(()),
            other => other,
        };
        let looked = self.units.during(root, || {
            let plan = plan(args, root)?;
            anyhow::Ok(served.look(&plan)?)
        });
        let looked = looked.and_then(|look| self.act(look, stopped));
        let looked = failed.map_err(anyhow::Error::from).and(looked);
        let unguarded = self.served.is_unguarded().then(|| {
            "both processes that would revert if this one were killed are gone: start the service again"
                .into()
        });
        let problem = looked.err().map(|error| format!("{error:#}")).or(unguarded);
        if let Some(problem) = problem.as_ref().filter(|one| self.problem.as_ref() != Some(one)) {
            self.printer.warn(problem);
        }
        self.problem = problem;
    }

    fn apply(&mut self, plan: &Plan, stopped: &dyn Fn() -> bool) -> anyhow::Result<()> {
        let look = self.served.look(plan)?;
        self.act(look, stopped)
    }

    /// Does what a look found to be due.
    fn act(&mut self, look: Look, stopped: &dyn Fn() -> bool) -> anyhow::Result<()> {
        let Look { due, again, foreign } = look;
        for write in &again {
            match self.served.write_again(write) {
                Ok(true) => self.printer.status(&format!("{} is set again", write.place)),
                Ok(false) => {}
                Err(trouble) => self.printer.warn(&format!("{} cannot be set again: {trouble}", write.place)),
            }
        }
        for (place, value) in foreign {
            let value = one_line(value.trim());
            self.printer
                .notice(&format!("{place} was changed by someone else to `{value}`, and is left alone"));
        }
        if due.writes.is_empty() {
            return Ok(());
        }
        // Jobs that came since must not keep later threads and devices from what their predecessors have.
        let permitted = Allowed { users: true, ..allowed(&self.args.allow) };
        let refused = refusals(self.root, &due, permitted, &catalogue(&self.args.machine, self.root)?);
        if let Some(refusal) = refused.first() {
            anyhow::bail!("{} settings are due and not written: {refusal}", due.writes.len());
        }
        match self.served.apply(&due, stopped) {
            Ok(applied) => self.printer.status(&text(&applied)),
            // A thread or a device may go while its write is planned; the next look plans anew.
            Err(ApplyError::Stale(_)) if self.served.has_applied() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// Reports to systemd, if it started this process.
fn report(state: &[NotifyState<'_>]) {
    // Without systemd there is nothing to report to.
    let _ = sd_notify::notify(state);
}

/// A service must not be the noise: it leaves the CPUs that compute.
fn leave_compute_cpus(plan: &Plan, printer: Printer) {
    if let Ok(housekeeping) = quell_recording::parse_cpu_list(&plan.housekeeping)
        && !housekeeping.is_empty()
        && let Err(error) = quell_node::machine::pin(&housekeeping)
    {
        printer.warn(&format!("cannot move to the CPUs {}: {error}", format_cpu_list(&housekeeping)));
    }
}

fn text(applied: &Applied) -> String {
    let id = applied.id.as_deref().unwrap_or("nothing");
    let mut text = format!("applied as {id}: {} written", applied.written.len());
    for (write, why) in &applied.refused {
        text += &format!("\nrejected: {}: {}", one_line(write), one_line(why));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_wait_and_cpus_do_not() {
        for (changed, is_cpu, seconds, due) in
            [(true, false, 1, false), (true, false, 6, true), (false, false, 6, false), (true, true, 0, true)]
        {
            assert_eq!(is_due(changed, is_cpu, Duration::from_secs(seconds)), due);
        }
    }
}
