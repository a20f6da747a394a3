//! Plays ranks on their own through windows in which they are independent.
//!
//! What a rank sends at t reaches no other rank before t + o + L. So the ranks can be played one after the other, each through
//! a whole window of that width, on any number of threads, and no message arrives too late. There is no queue of all
//! events: each of the next windows has a bitmap of the ranks that have something due.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex};

use super::event::{Event, Next, What};
use super::free::{IdleTimes, Layout};
use super::play::{Early, Effects, MAX_TIME, Play};
use super::prefetch;
use super::program::{ANY, Program, ReadyOp};
use super::rank::{Played, Rank};
use super::{Run, RunError, lock};

/// Number of windows that have a bitmap at a time.
const RING: u64 = 64;
/// Minimum number of ranks per thread: a thread with fewer would wait more than it works.
const MIN_RANKS: u32 = if cfg!(debug_assertions) { 1 } else { 1024 };

/// Number of messages that are held back at a time while their ranks' memory is prefetched.
const PENDING: usize = 8;
/// Smaller than the number of any window plus one.
const FAILED: u64 = 0;

/// The ranks of a worker that have something due, by window.
#[derive(Debug)]
struct Agenda {
    words: usize,
    /// The windows `first..first + RING`, each at its number modulo RING.
    bits: Vec<u64>,
    count: Vec<u32>,
    first: u64,
    later: BTreeMap<u64, Vec<u32>>,
}

impl Agenda {
    fn new(ranks: usize) -> Self {
        let words = ranks.div_ceil(64);
        Self {
            words,
            bits: vec![0; words * RING as usize],
            count: vec![0; RING as usize],
            first: 0,
            later: BTreeMap::new(),
        }
    }

    #[inline(always)]
    fn add(&mut self, window: u64, rank: u32) {
        // Almost all are due within o + L and a little work; a bitmap needs no order among them.
        if window < self.first + RING {
            let slot = (window % RING) as usize;
            let word = &mut self.bits[slot * self.words + rank as usize / 64];
            let bit = 1u64 << (rank % 64);
            self.count[slot] += u32::from(*word & bit == 0);
            *word |= bit;
        } else {
            self.later.entry(window).or_default().push(rank);
        }
    }

    /// The first window in which something is due; `u64::MAX` for none.
    fn next(&self) -> u64 {
        let soon = (self.first..self.first + RING).find(|window| self.count[(window % RING) as usize] > 0);
        let later = || self.later.first_key_value().map(|(window, _)| *window);
        soon.or_else(later).unwrap_or(u64::MAX)
    }

    /// Advances to a window before which nothing is due.
    fn advance(&mut self, window: u64) {
        self.first = window;
        while let Some(entry) = self.later.first_entry().filter(|entry| *entry.key() < window + RING) {
            let (window, ranks) = entry.remove_entry();
            ranks.into_iter().for_each(|rank| self.add(window, rank));
        }
    }
}

/// A message to a rank of another worker.
type Message = (u32, Event);

/// State that workers share.
struct Exchange {
    /// From each worker to each, for even and odd turns.
    mailboxes: Vec<[Mutex<Vec<Message>>; 2]>,
    /// The next window of each worker (see `Worker::due`), for even and odd turns.
    next: Vec<[AtomicU64; 2]>,
    barrier: Barrier,
}

impl Exchange {
    fn new(workers: usize) -> Self {
        Self {
            mailboxes: (0..workers * workers).map(|_| Default::default()).collect(),
            next: (0..workers).map(|_| Default::default()).collect(),
            barrier: Barrier::new(workers),
        }
    }
}

/// One thread's part of a run.
struct Task {
    number: usize,
    /// Number of ranks of each worker but the last.
    share: u32,
    workers: usize,
    exchange: Arc<Exchange>,
}

/// The ranks of one thread.
struct Worker<'a, P: Program, F, R> {
    rules: &'a R,
    number: usize,
    width: u64,
    /// Its ranks begin at this one …
    first: u32,
    /// … and every worker but the last has this number of ranks.
    share: u32,
    ranks: Vec<Rank<P::Rank, F>>,
    noise: Vec<u64>,
    agenda: Agenda,
    early: Early,
    /// Batches of operations that early receives freed: the index in the list of freed operations at which each begins, and its time.
    posted: Vec<(usize, u64)>,
    /// Messages to ranks of this worker that are held back briefly. None is due in the current window.
    pending: [Message; PENDING],
    next_pending: usize,
    out: Vec<Vec<Message>>,
    /// The first window in which a message to other workers is due.
    message_due: u64,
    events: u64,
    effects: Effects,
}

/// Plays to the end in windows of `width` nanoseconds and returns the ranks.
pub(super) fn run<P: Program, F: IdleTimes, R: Play<P, F>>(
    program: &P,
    rules: &R,
    layout: Layout,
    width: u64,
    run: &Run<'_>,
) -> Result<Played<P::Rank, F>, RunError> {
    let ranks = program.ranks();
    let threads = (run.threads.max(1) as u64).min(u64::from(ranks.div_ceil(MIN_RANKS).max(1))) as u32;
    let play = |task: &Task| Worker::new(program, rules, layout, width, task).play(&task.exchange, run);
    let results = std::thread::scope(|scope| {
        // Where fewer threads can be had, fewer share the ranks.
        let ready = (1..threads).map_while(|_| {
            let (sender, receiver) = channel::<Task>();
            let work = move || receiver.recv().ok().map(|task| play(&task));
            Some((sender, std::thread::Builder::new().spawn_scoped(scope, work).ok()?))
        });
        let ready: Vec<_> = ready.collect();
        let share = ranks.div_ceil(ready.len() as u32 + 1).max(1);
        // Shares are rounded up, so there may be fewer workers than threads.
        let workers = ranks.div_ceil(share).max(1) as usize;
        let exchange = Arc::new(Exchange::new(workers));
        let task = |number| Task { number, share, workers, exchange: Arc::clone(&exchange) };
        let give = |(number, (sender, thread))| {
            let _ = Sender::send(&sender, task(number));
            thread
        };
        let others: Vec<_> = (1..workers).zip(ready).map(give).collect();
        let mut results = vec![play(&task(0))];
        for other in others {
            // A panic of a worker is propagated.
            results.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    });
    // In the order of the workers, which is that of the ranks: the result does not depend on which thread ends first.
    let mut results = results.into_iter();
    let first = results.next().unwrap_or(Ok(Played { ranks: Vec::new(), noise: Vec::new(), events: 0 }))?;
    results.try_fold(first, |mut all, result| {
        let mut played = result?;
        all.ranks.append(&mut played.ranks);
        all.noise.append(&mut played.noise);
        all.events += played.events;
        Ok(all)
    })
}

impl<'a, P: Program, F: IdleTimes, R: Play<P, F>> Worker<'a, P, F, R> {
    fn new(program: &'a P, rules: &'a R, layout: Layout, width: u64, task: &Task) -> Self {
        let Task { number, share, workers, .. } = *task;
        let first = number as u32 * share;
        let count = share.min(program.ranks().saturating_sub(first)) as usize;
        let mut this = Self {
            rules,
            number,
            width,
            first,
            share,
            ranks: Vec::with_capacity(count),
            noise: vec![0; count],
            agenda: Agenda::new(count),
            early: if F::SINGLE { rules.early() } else { Early::None },
            posted: Vec::new(),
            pending: [(ANY, Event::default()); PENDING],
            next_pending: 0,
            out: (0..workers).map(|_| Vec::new()).collect(),
            message_due: u64::MAX,
            events: 0,
            effects: Effects::default(),
        };
        for at in 0..count {
            let state = program.begin(first + at as u32, &mut this.effects.free);
            this.ranks.push(Rank::new(layout, state));
            let (mut held, mut holds) = (Event::default(), false);
            this.free_ops(at, 0, &mut held, &mut holds);
            if holds {
                this.ranks[at].push(held, first + at as u32);
            }
            this.agenda.add(0, at as u32);
        }
        this
    }

    fn play(mut self, exchange: &Exchange, run: &Run<'_>) -> Result<Played<P::Rank, F>, RunError> {
        let mut window = 0;
        let mut reported = 0;
        for turn in 0.. {
            self.play_window(window);
            let parity = turn % 2;
            let next = if self.out.len() == 1 { self.due() } else { self.exchange(exchange, parity) };
            if next == FAILED || next == u64::MAX {
                break;
            }
            window = next - 1;
            if self.out.len() > 1 {
                self.collect(exchange, parity);
            }
            // Rarely, because a call per event would take longer than the event.
            if self.number == 0 && self.events - reported >= 1 << 16 {
                reported = self.events;
                if (run.progress)(reported * self.out.len() as u64).is_break() {
                    // The other workers see it at the end of the next turn.
                    self.effects.error = Some(RunError::Stopped);
                }
            }
        }
        match self.effects.error {
            Some(error) => Err(error),
            None => Ok(Played { ranks: self.ranks, noise: self.noise, events: self.events }),
        }
    }

    /// Hands this turn's messages to the other workers and returns the next window.
    fn exchange(&mut self, exchange: &Exchange, parity: usize) -> u64 {
        for (to, messages) in self.out.iter_mut().enumerate().filter(|(_, messages)| !messages.is_empty()) {
            let mut mailbox = lock(&exchange.mailboxes[self.number * exchange.next.len() + to][parity]);
            std::mem::swap(&mut *mailbox, messages);
        }
        exchange.next[self.number][parity].store(self.due(), Ordering::SeqCst);
        self.message_due = u64::MAX;
        // No worker writes to the boxes of this parity again before all have passed the next turn's barrier.
        exchange.barrier.wait();
        exchange.next.iter().map(|next| next[parity].load(Ordering::SeqCst)).min().unwrap_or(u64::MAX)
    }

    /// One more than the first window in which something is due, `u64::MAX` for none; or [`FAILED`].
    fn due(&self) -> u64 {
        match &self.effects.error {
            Some(_) => FAILED,
            None => self.agenda.next().min(self.message_due).saturating_add(1),
        }
    }

    /// Receives the messages of this turn from the other workers.
    fn collect(&mut self, exchange: &Exchange, parity: usize) {
        for from in 0..self.out.len() {
            let mut mailbox = lock(&exchange.mailboxes[from * self.out.len() + self.number][parity]);
            for (to, event) in mailbox.drain(..) {
                self.deliver(to - self.first, event);
            }
        }
    }

    fn play_window(&mut self, window: u64) {
        self.agenda.advance(window);
        let slot = (window % RING) as usize;
        if self.agenda.count[slot] == 0 {
            return;
        }
        self.agenda.count[slot] = 0;
        let end = (window + 1).saturating_mul(self.width);
        for word in 0..self.agenda.words {
            // A whole word at once: no message that is sent in this window arrives in it, so no other rank becomes due.
            let mut bits = std::mem::take(&mut self.agenda.bits[slot * self.agenda.words + word]);
            let mut due = [0; 64];
            let mut count = 0;
            while bits != 0 {
                due[count] = word * 64 + bits.trailing_zeros() as usize;
                count += 1;
                bits &= bits - 1;
            }
            for next in 0..count {
                // Prefetch a rank's own memory first, then what its program reads.
                if let Some(&soon) = due[..count].get(next + 3) {
                    prefetch::<_, 4>(&self.ranks[soon]);
                }
                if let Some(&soon) = due[..count].get(next + 1) {
                    self.rules.prepare(self.first + soon as u32, &self.ranks[soon]);
                }
                self.play_rank(due[next], end);
            }
        }
        // Before the window ends: what is held back may be due in the next one.
        self.deliver_all();
        if self.effects.error.is_none() && end > MAX_TIME {
            self.effects.error = Some(RunError::Overflow);
        }
    }

    /// Plays all that starts on a rank before `end`.
    #[inline(always)]
    fn play_rank(&mut self, at: usize, end: u64) {
        let me = self.first + at as u32;
        // The operation that became free last is mostly the next one. It is held here, because it need not be queued to be found.
        let mut held = Event::default();
        let mut holds = false;
        loop {
            let Rank { pending, free, .. } = &mut self.ranks[at];
            let mut next = pending.next(free, me);
            let mut is_held = false;
            if holds {
                let mine = Next::held(&held, free);
                if next.is_none_or(|other| pending.yields(other, &held, mine, me)) {
                    (next, is_held) = (Some(mine), true);
                }
            }
            let Some(next) = next else { return };
            if next.start >= end {
                // The queue outlives this call, `held` does not.
                if holds {
                    pending.push(held, me);
                }
                let window = self.window_of(next.start);
                return self.agenda.add(window, at as u32);
            }
            let event = if is_held {
                holds = false;
                held
            } else {
                let Some(event) = pending.take(next) else { return };
                event
            };
            self.rules.play(me, &mut self.ranks[at], event, next.start, &mut self.effects);
            self.send_message();
            self.free_ops(at, next.start, &mut held, &mut holds);
            if self.effects.noise > 0 {
                self.noise[at] = self.noise[at].saturating_add(std::mem::take(&mut self.effects.noise));
            }
        }
    }

    /// Queues the operations that became free at `t`, except for the last one, which is held.
    #[inline(always)]
    fn free_ops(&mut self, at: usize, t: u64, held: &mut Event, holds: &mut bool) {
        let me = self.first + at as u32;
        let (mut next, mut age, mut ages) = (0, t, 0);
        let turn = |free: &ReadyOp| (free.ready, free.op);
        if self.early != Early::None && !self.effects.free.is_sorted_by_key(turn) {
            self.effects.free.sort_unstable_by_key(turn);
        }
        while let Some(&free) = self.effects.free.get(next) {
            if let Some(&(_, later)) = self.posted.get(ages).filter(|(from, _)| *from == next) {
                (age, ages) = (later, ages + 1);
            }
            next += 1;
            let rank = &mut self.ranks[at];
            let event = self.rules.freed(me, rank, free, age);
            // Nothing else starts on the rank's only CPU before that time.
            let early = self.early != Early::None
                && event.what == What::Recv
                && event.time <= rank.free.cpu(0).max(t)
                && (self.early == Early::All || waits_alone(rank, held, *holds));
            if early {
                let (start, from) = (event.time.max(t), self.effects.free.len());
                self.rules.play(me, rank, event, start, &mut self.effects);
                self.send_message();
                if self.effects.free.len() > from {
                    self.posted.push((from, start));
                }
            } else {
                if *holds {
                    rank.push(*held, me);
                }
                (*held, *holds) = (event, true);
            }
        }
        if ages > 0 {
            self.posted.clear();
        }
        self.events += next as u64;
        self.effects.free.clear();
    }

    /// Sends the message or answer of the last event.
    #[inline(always)]
    fn send_message(&mut self) {
        if self.effects.message_to != ANY {
            let to = std::mem::replace(&mut self.effects.message_to, ANY);
            self.events += u64::from(self.effects.message.what != What::Answer);
            self.send(to, self.effects.message);
        }
    }

    #[inline(always)]
    fn send(&mut self, to: u32, event: Event) {
        let place = to.wrapping_sub(self.first);
        if let Some(rank) = self.ranks.get(place as usize) {
            // Its memory is fetched while other ranks are played.
            prefetch::<_, 2>(rank);
            let (to, event) =
                std::mem::replace(&mut self.pending[self.next_pending % PENDING], (place, event));
            self.next_pending += 1;
            if to != ANY {
                self.deliver(to, event);
            }
        } else {
            self.message_due = self.message_due.min(self.window_of(event.time));
            self.out[(to / self.share) as usize].push((to, event));
        }
    }

    /// Delivers the messages that are held back.
    fn deliver_all(&mut self) {
        for next_pending in self.next_pending..self.next_pending + PENDING {
            let (to, event) =
                std::mem::replace(&mut self.pending[next_pending % PENDING], (ANY, Event::default()));
            if to != ANY {
                self.deliver(to, event);
            }
        }
    }

    #[inline(always)]
    fn deliver(&mut self, place: u32, event: Event) {
        self.ranks[place as usize].push(event, self.first + place);
        let window = self.window_of(event.time);
        self.agenda.add(window, place);
    }

    /// The window that contains a time, which is not before the current window.
    #[inline(always)]
    fn window_of(&self, time: u64) -> u64 {
        let ahead = time - self.agenda.first * self.width;
        // 32-bit divisions are several times faster.
        match (u32::try_from(ahead), u32::try_from(self.width)) {
            (Ok(ahead), Ok(width)) => self.agenda.first + u64::from(ahead / width),
            _ => self.agenda.first + ahead / self.width,
        }
    }
}

/// Whether a posted receive matches no message and overtakes no other receive.
#[inline(always)]
fn waits_alone<S, F>(rank: &Rank<S, F>, held: &Event, holds: bool) -> bool {
    rank.arrived.is_empty() && !(holds && held.what == What::Recv) && !rank.pending.holds_receive()
}
