//! The physical rules: those of `docs/reference/loggops.md`.

use super::{Context, Early, Effects, Play};
use crate::loggops::event::{Event, What};
use crate::loggops::free::IdleTimes;
use crate::loggops::matching::{Entry, Envelope};
use crate::loggops::program::{Program, ReadyOp};
use crate::loggops::rank::Rank;

/// What an event does under the physical rules.
#[derive(Debug)]
pub(in crate::loggops) struct Physical<'a, P>(pub(in crate::loggops) Context<'a, P>);

impl<P: Program, F: IdleTimes> Play<P, F> for Physical<'_, P> {
    #[inline(always)]
    fn play(&self, me: u32, rank: &mut Rank<P::Rank, F>, event: Event, t: u64, effects: &mut Effects) {
        match event.what {
            What::Message => self.message(me, rank, event, t, effects),
            What::Send => self.send(me, rank, event, t, effects),
            What::Recv => self.receive(me, rank, event, t, effects),
            What::Calc => self.work(me, rank, event, t, effects),
            What::Arriving => self.arrive(me, rank, event),
            What::Answer => self.0.program.done(me, &mut rank.state, event.op, t, &mut effects.free),
        }
    }

    #[inline(always)]
    fn freed(&self, _: &Rank<P::Rank, F>, free: ReadyOp, age: u64) -> Event {
        self.0.event(free, free.ready, age)
    }

    #[inline(always)]
    fn prepare(&self, me: u32, rank: &Rank<P::Rank, F>) {
        self.0.program.prepare(me, &rank.state);
    }

    fn early(&self) -> Early {
        self.0.early()
    }
}

impl<P: Program> Physical<'_, P> {
    /// The tag of a shape.
    pub(in crate::loggops) fn tag(&self, shape: u32) -> u32 {
        self.0.cost(shape).tag
    }

    /// The iteration that a rank is in.
    pub(in crate::loggops) fn iteration(&self, state: &P::Rank) -> u32 {
        self.0.program.iteration(state)
    }

    /// W(t, work): the end of work that starts at `t`.
    #[inline(always)]
    fn end<F: IdleTimes>(&self, me: u32, rank: &mut Rank<P::Rank, F>, t: u64, work: u64) -> u64 {
        let noise = self.0.delay(me, rank, t, work);
        t.saturating_add(work).saturating_add(noise)
    }

    fn work<F: IdleTimes>(
        &self,
        me: u32,
        rank: &mut Rank<P::Rank, F>,
        event: Event,
        t: u64,
        effects: &mut Effects,
    ) {
        let Self(context) = self;
        let length = context.cost(event.shape).work;
        let end = self.end(me, rank, t, length);
        effects.noise += (end - t).saturating_sub(length);
        *rank.free.cpu_mut(event.cpu) = end;
        context.program.started(me, &mut rank.state, event.op, t, &mut effects.free);
        context.program.done(me, &mut rank.state, event.op, end, &mut effects.free);
    }

    #[inline(always)]
    fn send<F: IdleTimes>(
        &self,
        me: u32,
        rank: &mut Rank<P::Rank, F>,
        event: Event,
        t: u64,
        effects: &mut Effects,
    ) {
        let Self(context) = self;
        if !context.reaches(me, event.who, effects) {
            return;
        }
        let (cost, net) = (context.cost(event.shape), context.net);
        let work = net.overhead.saturating_add(cost.cpu_bytes);
        let end = self.end(me, rank, t, work);
        let leaves = if cost.cpu_bytes == 0 { end } else { self.end(me, rank, t, net.overhead) };
        effects.noise += (end - t).saturating_sub(work);
        *rank.free.cpu_mut(event.cpu) = end;
        *rank.free.out_mut(event.nic) =
            (leaves - net.overhead).saturating_add(net.gap).saturating_add(cost.wire_bytes);
        let time = leaves.saturating_add(net.latency);
        let what = if F::SINGLE { What::Message } else { What::Arriving };
        effects.send(event.who, Event { time, age: t, who: me, what, ..event });
        context.program.started(me, &mut rank.state, event.op, t, &mut effects.free);
        if !cost.rendezvous {
            context.program.done(me, &mut rank.state, event.op, end, &mut effects.free);
        }
    }

    #[inline(always)]
    fn receive<F: IdleTimes>(
        &self,
        me: u32,
        rank: &mut Rank<P::Rank, F>,
        event: Event,
        t: u64,
        effects: &mut Effects,
    ) {
        let Self(context) = self;
        context.program.started(me, &mut rank.state, event.op, t, &mut effects.free);
        let envelope = Envelope { source: event.who, tag: context.cost(event.shape).tag };
        let Some(message) = rank.arrived.take(envelope) else {
            rank.posted.push(Entry { envelope, op: event.op, shape: event.shape, end: t });
            return;
        };
        self.answer(me, message, t, effects);
        context.program.done(me, &mut rank.state, event.op, t.max(message.end), &mut effects.free);
    }

    /// Determines the CPU and interface of a message that has arrived: those of the receive that it matches, or else those of its send.
    fn arrive<F: IdleTimes>(&self, me: u32, rank: &mut Rank<P::Rank, F>, event: Event) {
        let envelope = Envelope { source: event.who, tag: self.0.cost(event.shape).tag };
        let shape = rank.posted.peek(envelope).map_or(event.shape, |posted| posted.shape);
        let cost = self.0.cost(shape);
        rank.push(Event { what: What::Message, cpu: cost.cpu, nic: cost.nic, ..event }, me);
    }

    #[inline(always)]
    fn message<F: IdleTimes>(
        &self,
        me: u32,
        rank: &mut Rank<P::Rank, F>,
        event: Event,
        t: u64,
        effects: &mut Effects,
    ) {
        let Self(context) = self;
        let (cost, net) = (context.cost(event.shape), context.net);
        let (cpu_bytes, wire_bytes) = (cost.cpu_bytes, cost.wire_bytes);
        let work = net.overhead.saturating_add(cpu_bytes);
        let silent = t.saturating_add(net.overhead).saturating_add(cpu_bytes.max(wire_bytes));
        let end = if silent < rank.quiet {
            silent
        } else {
            let own = self.end(me, rank, t, work);
            let quiet = rank.quiet;
            let after = self.end(me, rank, t.saturating_add(wire_bytes), net.overhead);
            // The quiet time after a later start does not hold for what starts before it.
            rank.quiet = quiet;
            own.max(after)
        };
        effects.noise += end.saturating_sub(silent);
        *rank.free.cpu_mut(event.cpu) = end;
        *rank.free.inward_mut(event.nic) = t.saturating_add(net.gap).saturating_add(wire_bytes);
        let envelope = Envelope { source: event.who, tag: cost.tag };
        match rank.posted.take(envelope) {
            Some(posted) => {
                let message = Entry { envelope, op: event.op, shape: event.shape, end };
                self.answer(me, message, t, effects);
                context.program.done(me, &mut rank.state, posted.op, end, &mut effects.free);
            }
            None => rank.arrived.push(Entry { envelope, op: event.op, shape: event.shape, end }),
        }
    }

    /// Notifies the sender of a rendezvous that message and receive have met at `t`.
    #[inline(always)]
    fn answer(&self, me: u32, message: Entry, t: u64, effects: &mut Effects) {
        if self.0.cost(message.shape).rendezvous {
            let time = t.saturating_add(self.0.net.latency);
            let (op, shape) = (message.op, message.shape);
            let answer = Event { time, age: t, who: me, op, shape, what: What::Answer, cpu: 0, nic: 0 };
            effects.send(message.envelope.source, answer);
        }
    }
}
