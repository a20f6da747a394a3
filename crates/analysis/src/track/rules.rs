//! The noise-free end of calls: the rules of `docs/concepts/tracking.md`, after Nataraj et al. 2007, §3.

use quell_recording::mpi::{Run, Waits};

use super::collectives::CollectiveId;
use super::eager_limits::{Left, Others};
use super::engine::{Engine, nanos};
use super::event_reader::{Channel, polls_again};
use super::messages::{End, Message, MessageId};
use super::place::{Call, Polling};
use super::shortest::WaitKind;
use super::teams::TeamWait;
use super::waiting::SHORT_NS;
use super::{Ended, Watch};

/// An event that a call waited for, or would have waited for without noise.
#[derive(Debug)]
struct Cause {
    /// Its location and time.
    location: u32,
    at: i64,
    /// The minimum time between it and the end of the call, if it is known.
    least: i64,
    /// Its operation and size class: the tail of a call is compared with those of the same.
    like: (u8, u8),
}

/// The causes of one call, and the time of each on the noise-free timelines.
#[derive(Debug, Default)]
struct Causes {
    all: Vec<Cause>,
    quiet: Vec<i64>,
    /// The noise of each cause's location since then, by account.
    noise: Vec<i64>,
}

impl Causes {
    fn push(&mut self, cause: Cause, quiet: &[i64]) {
        self.all.push(cause);
        self.quiet.extend_from_slice(quiet);
        self.noise.resize(self.quiet.len(), 0);
    }

    /// Adds the noise that has struck the last cause's location since then.
    fn struck(&mut self, until: &[i64], now: &[i64]) {
        let at = self.noise.len() - now.len();
        for (noise, (now, until)) in self.noise[at..].iter_mut().zip(now.iter().zip(until)) {
            *noise = now - until;
        }
    }
}

/// The cause that a call waited for longest.
#[derive(Debug)]
struct Waited {
    /// Index among the causes.
    place: usize,
    location: u32,
    at: i64,
    /// Time from the cause to the end of the call, and its excess over the shortest that was seen.
    tail: i64,
    excess: i64,
    key: WaitKind,
}

/// The other end of a message that the call needed for as long as it lasted, because a message above the eager limit needs both.
#[derive(Debug)]
struct Partner {
    /// Its noise since then, by account.
    noise: Vec<i64>,
    /// The length of the call beyond the shortest of its kind.
    excess: i64,
    key: WaitKind,
}

/// In place of an operation, for messages and teams; collectives have the highest bit.
const POINT_TO_POINT: u8 = 0;
const BOTH_ENDS: u8 = 3;
const FORK: u8 = 1;
const JOIN: u8 = 2;

/// Before any event.
const LONG_AGO: i64 = i64::MIN / 4;

/// Sizes that share a class differ by less than a factor of two.
fn class(bytes: u64) -> u8 {
    (u64::BITS - bytes.leading_zeros()) as u8
}

impl<R: Run + ?Sized, W: Watch + ?Sized> Engine<'_, R, W> {
    /// Ends a call whose causes are all known.
    pub(super) fn complete_call(&mut self, location: u32, call: &Call) {
        self.observe(location, call);
        // A worker without work is in no call.
        let drawn = self.watch.wanted() && !matches!(call.team, Some(TeamWait::Fork(_)));
        let before = drawn.then(|| self.places[location as usize].ledger.clone());
        let collective = call.blocking.filter(|(id, _)| self.waits_for_all(*id, call.left));
        let cause = if let Some((id, part)) = collective {
            // A location in a collective does not poll for anything else.
            self.places[location as usize].polling = None;
            self.complete_collective(location, call, id, part)
        } else {
            self.complete_local_call(location, call)
        };
        let shows = call.blocking.is_some() || !call.collectives.is_empty() || !call.received.is_empty();
        if self.events.kind(call.region).unshown && !shows {
            let (calls, time) = self.unshown.entry(call.region).or_default();
            *calls += 1;
            *time += call.left - call.entered;
        }
        let collectives = call.collectives.iter().chain(&call.blocking);
        for (id, _) in collectives {
            if let Some(over) = self.collectives.remove_complete(*id) {
                self.judge(&over);
            }
        }
        for id in call.received.iter().chain(&call.probed).chain(&call.sent) {
            self.messages.release(*id);
        }
        if let Some(wait) = call.team {
            self.teams.end_wait(wait);
        }
        if let Some(before) = before {
            let after = &self.places[location as usize].ledger;
            let more = |after: &[i64], before: &[i64]| -> Vec<i64> {
                after.iter().zip(before).map(|(after, before)| after - before).collect()
            };
            self.watch.ended(&Ended {
                location,
                region: call.region,
                entered_ns: call.entered,
                left_ns: call.left,
                before_ns: &before.accumulated,
                after_ns: &after.accumulated,
                amplified_ns: &more(&after.amplified, &before.amplified),
                absorbed_ns: &more(&after.absorbed, &before.absorbed),
                cause,
            });
        }
    }

    /// Notes what the sends of a call show about the eager limit.
    fn observe(&mut self, location: u32, call: &Call) {
        self.places[location as usize].last = Some(call.into());
        if call.observed.is_empty() {
            return;
        }
        let others = self.waited_for_others(call);
        if let Some(evidence) = &mut self.evidence {
            evidence.left(&call.observed, Left { entered: call.entered, left: call.left, others });
        }
    }

    /// What a call may have waited for other than the receivers of its sends.
    fn waited_for_others(&self, call: &Call) -> Others {
        let collective = call.blocking.is_some() || !call.collectives.is_empty();
        if collective || !call.probed.is_empty() || self.events.kind(call.region).polls {
            return Others::Unknown;
        }
        let sent = call.received.iter().map(|id| self.messages.get(*id).sent);
        sent.fold(Others::Nothing, |others, sent| match (others, sent) {
            (Others::Nothing, Some((_, at))) => Others::Message(at),
            (Others::Message(last), Some((_, at))) => Others::Message(last.max(at)),
            _ => Others::Unknown,
        })
    }

    /// Whether the location left a collective in which no rank leaves before the last has entered.
    fn waits_for_all(&self, id: CollectiveId, left: i64) -> bool {
        self.collectives.get(id).is_some_and(|collective| {
            let early = collective.left_early(left);
            collective.waits() == Waits::All && collective.parts.len() > 1 && !early
        })
    }

    /// Ends an all-to-all collective, in which no rank leaves before the last has entered.
    fn complete_collective(
        &mut self,
        location: u32,
        call: &Call,
        id: CollectiveId,
        part: usize,
    ) -> Option<(u32, i64)> {
        let collective = self.collectives.get(id)?;
        let (last_entry, last_part) = collective.last_entry;
        let last = &collective.parts[last_part];
        let (last_location, (shortest, longest)) = (last.location, collective.tails);
        let late = last_entry - call.left;
        let tail = (call.left - last_entry).max(0);
        let kind = collective.operation.map_or(u8::MAX, |operation| operation as u8);
        let key = (u32::MAX, collective.comm, kind, class(collective.bytes));
        let usual = self.shortest.with(key, shortest);
        let most = shortest - usual;
        let is_limited = collective.noise(last_part).iter().any(|noise| *noise > most);
        let quiet: Vec<i64> = (0..collective.last_quiet.len())
            .map(|account| {
                // Noise that delayed all ranks also delayed the last one to enter.
                let common = collective.noise(last_part)[account].min(most).max(0);
                // The paper's sync time is from the last entry to the last exit, for all ranks. If the exits are further apart than the first of
                // them is from the last entry, each rank has its own sync time, without the noise that delayed its exit.
                let sync = if longest - shortest <= shortest {
                    longest
                } else {
                    tail - collective.noise(part)[account].min(tail - shortest).max(0)
                };
                collective.last_quiet[account] + sync - common
            })
            .collect();
        if is_limited {
            self.shortest.limited(key);
        }
        if late > 0 {
            self.before_cause(location, late);
        }
        self.leave_at(location, call, |account, _| quiet[account]);
        (last_location != location).then_some((last_location, last_entry))
    }

    /// Ends any other call: it ends when its own work is done and its causes have happened.
    fn complete_local_call(&mut self, location: u32, call: &Call) -> Option<(u32, i64)> {
        let mut causes = Causes::default();
        self.messages_of(location, call, &mut causes);
        for (id, part) in call.collectives.iter().chain(&call.blocking) {
            self.ranks_of(*id, *part, call.left, &mut causes);
        }
        self.team_of(call, &mut causes);
        let polling = self.polling(location, call);
        let (entered, polled) = match &polling {
            Some(polling) => (polling.since, Some(polling.noise.clone())),
            None if call.is_first => (LONG_AGO, None),
            None => (call.entered, None),
        };
        // If clocks disagree, the cause is assumed to have happened when the call ended.
        let left = call.left;
        let mut late = 0;
        let accounts = self.places[location as usize].ledger.accounts();
        for (cause, quiet) in causes.all.iter_mut().zip(causes.quiet.chunks_mut(accounts)) {
            let by = (cause.at - left).max(0);
            late = late.max(by);
            cause.at -= by;
            quiet.iter_mut().for_each(|quiet| *quiet -= by);
        }
        if late > 0 {
            self.before_cause(location, late);
        }
        // It waited for causes that arrived after it began. Without a network, those are the causes that happened after.
        // With a network a message also needs its transfer, so a send shortly before the call may still be waited for.
        let came = |cause: &Cause| cause.at + cause.least;
        let latest = causes.all.iter().enumerate().filter(|(_, cause)| came(cause) > entered);
        let waited = latest.max_by_key(|(_, cause)| came(cause)).map(|(place, cause)| {
            let tail = left - cause.at;
            let key = (cause.location, location, cause.like.0, cause.like.1);
            // The shortest tail of its kind had no noise in it; noise explains at most what is longer.
            let excess = tail - self.shortest.with(key, tail);
            Waited { place, location: cause.location, at: cause.at, tail, excess, key }
        });
        let is_long = call.left - call.entered >= SHORT_NS;
        let partner = if waited.is_none() && is_long { self.partner(location, call) } else { None };
        let know_transfers = self.network.is_some();
        let own = self.network.as_ref().map_or(0, |net| nanos(net.least_overhead())).min(left - entered);
        let mut is_limited = false;
        self.leave_at(location, call, |account, ledger| {
            let within = ledger.noise_of_call(account, left - call.entered);
            let noise = polled.as_ref().map_or(within, |polled| polled[account].min(left - entered));
            // Noise of the other side explains a late message as well as noise of this one does.
            let both = |waited: &Waited| noise + causes.noise[waited.place * accounts + account];
            is_limited |= waited.as_ref().is_some_and(|waited| both(waited) > waited.excess);
            let base = entered - (ledger.accumulated[account] + within - noise);
            let quiet_cause = |place: usize| causes.quiet[place * accounts + account];
            let mut ends = match (&waited, &partner) {
                (None, None) => base + (left - entered) - noise,
                (None, Some(partner)) => {
                    let of_partner = partner.noise[account];
                    is_limited |= noise + of_partner > partner.excess;
                    base + (left - entered) - noise - of_partner.min((partner.excess - noise).max(0))
                }
                (Some(_), _) => base + own,
            };
            for (place, cause) in causes.all.iter().enumerate() {
                let after = match &waited {
                    Some(waited) if waited.place == place || (!know_transfers && cause.at > entered) => {
                        waited.tail - both(waited).min(waited.excess)
                    }
                    _ => cause.least,
                };
                ends = ends.max(quiet_cause(place) + after);
            }
            ends
        });
        let key = waited.as_ref().map(|waited| waited.key).or(partner.map(|partner| partner.key));
        if let Some(key) = key.filter(|_| is_limited) {
            self.shortest.limited(key);
        }
        waited.map(|waited| (waited.location, waited.at))
    }

    /// Of the locations at the other ends of the call's messages above the eager limit, which had both come before, the one with most noise since.
    fn partner(&mut self, location: u32, call: &Call) -> Option<Partner> {
        let since = |(id, end, other): (MessageId, End, u32), account: usize| {
            self.places[other as usize].ledger.local[account] - self.messages.noise(id, end)[account]
        };
        let most = self.partners(location, call).max_by_key(|partner| since(*partner, 0))?;
        let (id, _, other) = most;
        let accounts = self.places[location as usize].ledger.accounts();
        let noise: Vec<i64> = match since(most, 0) {
            0 => Vec::new(),
            _ => (0..accounts).map(|account| since(most, account)).collect(),
        };
        let key = (other, location, BOTH_ENDS, class(self.messages.get(id).bytes));
        let length = call.left - call.entered;
        let excess = length - self.shortest.with(key, length);
        if noise.is_empty() {
            return None;
        }
        Some(Partner { noise, excess, key })
    }

    /// The other ends of the call's messages above the eager limit.
    pub(super) fn partners(&self, location: u32, call: &Call) -> impl Iterator<Item = (MessageId, End, u32)> {
        let received = call.received.iter().filter_map(move |id| {
            let message = self.messages.get(*id);
            let (sender, _) = message.sent.filter(|_| !message.lost)?;
            self.limits.may_wait(self.way(sender, location), message.bytes).then_some((
                *id,
                End::Send,
                sender,
            ))
        });
        let sent = call.sent.iter().filter_map(move |id| {
            let message = self.messages.get(*id);
            message.begun?;
            let receiver = self.of_rank.get(&message.key.channel.to).copied()?;
            Some((*id, End::Receive, receiver))
        });
        received.chain(sent).filter(move |(.., other)| *other != location)
    }

    /// Minimum time of a message; 0 without a network.
    pub(super) fn transfer(&self, message: &Message) -> i64 {
        let (Channel { from, to, .. }, bytes) = (message.key.channel, message.bytes);
        let network = self.network.as_ref().map(|net| net.between(from, to, bytes));
        network.map_or(0, |network| nanos(network.transfer_ns(bytes)))
    }

    /// Adds the messages that the call received, probed, or may have waited to hand over.
    fn messages_of(&self, location: u32, call: &Call, causes: &mut Causes) {
        for id in call.received.iter().chain(&call.probed) {
            let message = self.messages.get(*id);
            if let Some((sender, at)) = message.sent.filter(|_| !message.lost) {
                let least = self.transfer(message);
                let cause =
                    Cause { location: sender, at, least, like: (POINT_TO_POINT, class(message.bytes)) };
                causes.push(cause, self.messages.quiet_send(*id));
                let now = &self.places[sender as usize].ledger.local;
                causes.struck(self.messages.noise(*id, End::Send), now);
            }
        }
        for id in &call.sent {
            let message = self.messages.get(*id);
            // Only a receive that began during the sender's call can have delayed that call.
            let Some(at) = message.begun.filter(|at| *at > call.entered && *at <= call.left) else {
                continue;
            };
            let receiver = self.of_rank.get(&message.key.channel.to).copied().unwrap_or(location);
            let cause =
                Cause { location: receiver, at, least: 0, like: (POINT_TO_POINT, class(message.bytes)) };
            causes.push(cause, self.messages.quiet_begin(*id));
            if receiver != location {
                let now = &self.places[receiver as usize].ledger.local;
                causes.struck(self.messages.noise(*id, End::Receive), now);
            }
        }
    }

    /// Adds the thread of a team that the call waited for: the one that forked, or the last that came to the join.
    fn team_of(&self, call: &Call, causes: &mut Causes) {
        let Some((wait, reached)) = call.team.and_then(|wait| Some((wait, self.teams.cause(wait)?))) else {
            return;
        };
        let operation = if matches!(wait, TeamWait::Fork(_)) { FORK } else { JOIN };
        let cause = Cause { location: reached.location, at: reached.at, least: 0, like: (operation, 0) };
        causes.push(cause, &reached.quiet);
    }

    /// Adds the ranks that a part of a collective waits for.
    fn ranks_of(&self, id: CollectiveId, part: usize, left: i64, causes: &mut Causes) {
        let Some(collective) = self.collectives.get(id) else { return };
        let Some(bytes) = collective.parts.get(part).map(|part| part.bytes) else { return };
        let mut one = |place: usize| {
            let other = &collective.parts[place];
            let operation = collective.operation.map_or(0, |operation| operation as u8) | 0x80;
            let like = (operation, class(bytes));
            let cause = Cause { location: other.location, at: other.entered, least: 0, like };
            causes.push(cause, collective.quiet(place));
        };
        let is_root = collective.root == Some(part);
        let waits = collective.waits();
        // A rank that left before others entered did not need them.
        let came = |place: &usize| collective.parts[*place].entered <= left;
        let early = collective.left_early(left);
        match waits {
            Waits::ForRoot if !is_root && early => collective.root.filter(came).into_iter().for_each(one),
            Waits::All | Waits::Root if early && (is_root || waits == Waits::All) => {
                (0..collective.parts.len()).filter(came).for_each(one);
            }
            Waits::ForRoot if !is_root => collective.root.into_iter().for_each(one),
            // Not one by one: only the latest on each noise-free timeline matters.
            Waits::Prefix => {
                if let Some((latest, quiet)) = collective.before(part) {
                    one(latest);
                    let at = causes.quiet.len() - quiet.len();
                    causes.quiet[at..].copy_from_slice(quiet);
                }
            }
            Waits::All | Waits::Root if waits == Waits::All || is_root => {
                one(collective.last_entry.1);
                let accounts = collective.last_quiet.len();
                let at = causes.quiet.len() - accounts;
                causes.quiet[at..].copy_from_slice(&collective.last_quiet);
            }
            _ => {}
        }
    }

    /// The unsuccessful polls before this call, which count as one call with it, unless the program did something else in between.
    /// It may be one that blocks, such as `MPI_Wait`.
    fn polling(&mut self, location: u32, call: &Call) -> Option<Polling> {
        let polls = self.events.kind(call.region).polls || call.completes();
        let place = &mut self.places[location as usize];
        let goes_on = |polling: &Polling| {
            // Noise between two polls must not end the wait, so it does not count as time in which the program did something.
            let gap = call.entered
                - polling.left
                - (polling.noise[0] - polling.noise_by_then - place.ledger.within[0]);
            polls && polls_again(gap, polling.length)
        };
        let before = place.polling.take().filter(goes_on);
        if !call.unsuccessful {
            return before;
        }
        let mut polling = before.unwrap_or_else(|| Polling {
            since: call.entered,
            noise: place.ledger.within.clone(),
            left: 0,
            length: 0,
            noise_by_then: 0,
        });
        polling.left = call.left;
        polling.length = call.left - call.entered;
        polling.noise_by_then = polling.noise[0];
        place.polling = Some(polling);
        None
    }

    /// Ends the call at the time that `quiet` gives on each noise-free timeline.
    fn leave_at(
        &mut self,
        location: u32,
        call: &Call,
        mut quiet: impl FnMut(usize, &super::ledger::Ledger) -> i64,
    ) {
        let ledger = &mut self.places[location as usize].ledger;
        let length = call.left - call.entered;
        for account in 0..ledger.accounts() {
            let ends = quiet(account, ledger);
            let mut change = ledger.leave(account, length, call.left, ends);
            // A worker that begins late because of the thread that forked is counted there.
            if matches!(call.team, Some(TeamWait::Fork(_))) {
                change.amplified = 0;
            }
            if change != super::ledger::Change::default() {
                self.paths.changed(call.path, account, change);
            }
        }
    }
}

#[cfg(test)]
mod tests;
