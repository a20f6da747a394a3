//! Observes a program while it is played: timelines, and the detours that made it late.

mod culprits;
mod meetings;
mod timeline;

use std::sync::Mutex;

use super::event::{Event, What};
use super::free::IdleTimes;
use super::matching::Envelope;
use super::outcome::Outcome;
use super::play::{Early, Effects, Physical, Play};
use super::program::{Program, ReadyOp};
use super::rank::Rank;
use super::{Run, RunError, lock};
use meetings::Meetings;

pub(super) use culprits::Struck;
pub use culprits::{Culprits, Hit};
pub use timeline::{Activity, Slice, Timeline};

/// One observed event.
#[derive(Debug)]
pub(super) struct Seen<'e> {
    pub(super) rank: u32,
    pub(super) event: &'e Event,
    /// When it started (a call that waited for its interface: when that was free), and when its CPU was done with it; equal for an event that takes no CPU.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) noise: u64,
    /// The time from which its CPU was free when it came.
    pub(super) cpu_free: u64,
    /// Sender and operation: of the message that a receive found, or of a message or data that found their receive.
    pub(super) found: Option<(u32, u32)>,
    /// The receive whose message is handled, under progress in the call.
    pub(super) receive: Option<u32>,
    /// Whether messages are handled in the call.
    pub(super) in_call: bool,
    /// The operations that it freed.
    pub(super) freed: &'e [ReadyOp],
    /// Time of its message to a receiver without noise, in nanoseconds.
    pub(super) flight: u64,
    /// How much later its message arrives because it overtakes no earlier one; `None` where none could.
    pub(super) held: Option<u64>,
    /// The message or answer that it sent, and its destination.
    pub(super) sent: Option<(u32, &'e Event)>,
    /// The iteration of the program.
    pub(super) iteration: u32,
}

/// An observer of a run.
pub(super) trait Watch: Send {
    fn see(&mut self, seen: &Seen<'_>);
}

/// The physical rules, watched.
pub(super) struct Watched<'a, 'w, P, W> {
    rules: Physical<'a, P>,
    watch: Mutex<(&'w mut W, Meetings)>,
}

impl<'a, 'w, P, W> Watched<'a, 'w, P, W> {
    pub(super) fn new(rules: Physical<'a, P>, watch: &'w mut W) -> Self {
        Self { rules, watch: Mutex::new((watch, Meetings::default())) }
    }
}

impl<P: Program, F: IdleTimes, W: Watch> Play<P, F> for Watched<'_, '_, P, W> {
    fn play(&self, me: u32, rank: &mut Rank<P::Rank, F>, event: Event, t: u64, effects: &mut Effects) {
        let rules = &self.rules;
        let mut watch = lock(&self.watch);
        let (watch, meetings) = &mut *watch;
        let cpu_free = rank.free.cpu(event.cpu);
        let envelope = Envelope { source: event.who, tag: rules.tag(event.shape) };
        let found = match event.what {
            What::Recv if !F::IN_CALL => {
                rank.arrived.peek(envelope).map(|message| (message.envelope.source, message.op))
            }
            What::Message => rank.posted.peek(envelope).map(|_| (event.who, event.op)),
            What::Data => Some((event.who, event.op)),
            _ => None,
        };
        let (mut start, mut shown, mut receive) = (t, event, None);
        if F::IN_CALL {
            start = t.max(match event.what {
                What::Send | What::Answer => *rank.free.out_mut(event.nic),
                What::Handling | What::Data => *rank.free.inward_mut(event.nic),
                _ => 0,
            });
            match event.what {
                What::Arriving => {
                    meetings.arrive(me, &event, rank.posted.peek(envelope).map(|receive| receive.op));
                }
                What::Recv => meetings.post(me, &event, rank.arrived.peek(envelope)),
                What::Handling => (shown, receive) = (meetings.handle(me, &event), Some(event.op)),
                _ => {}
            }
        }
        let found = receive.map(|_| (shown.who, shown.op)).or(found);
        let (freed_before, noise_before) = (effects.free.len(), effects.noise);
        let message_before = effects.message_to;
        effects.held = 0;
        let iteration = rules.iteration(&rank.state);
        rules.play(me, rank, event, t, effects);
        let busy = event.what.is_busy();
        let sent = (effects.message_to != message_before).then_some((effects.message_to, &effects.message));
        watch.see(&Seen {
            rank: me,
            event: &shown,
            start,
            end: if busy { rank.free.cpu(event.cpu) } else { t },
            noise: effects.noise - noise_before,
            cpu_free,
            found,
            receive,
            in_call: F::IN_CALL,
            freed: &effects.free[freed_before..],
            sent,
            flight: rules.flight(event.shape),
            held: rules.may_overtake().then_some(effects.held),
            iteration,
        });
    }

    fn freed(&self, me: u32, rank: &Rank<P::Rank, F>, free: ReadyOp, age: u64) -> Event {
        self.rules.freed(me, rank, free, age)
    }

    fn early(&self) -> Early {
        Play::<P, F>::early(&self.rules)
    }
}

/// Plays a program under the physical rules event by event, on one thread, and returns which detours made it as late as it was.
pub(super) fn culprits_by_events<P: Program>(
    program: &P,
    run: &Run<'_>,
) -> Result<(Outcome, Culprits), RunError> {
    let mut trails = culprits::Trails::new(program.ranks());
    let outcome = super::run_watched(program, run, &mut trails)?;
    let culprits = trails.culprits(&outcome, run.noise.clocks());
    Ok((outcome, culprits))
}

/// Plays a program under the physical rules, on one thread, and records its timeline.
///
/// # Errors
/// As for [`run`](super::run).
pub fn run_for_timeline<P: Program>(
    program: &P,
    run: &Run<'_>,
    timeline: &mut Timeline,
) -> Result<Outcome, RunError> {
    super::run_watched(program, run, timeline)
}
