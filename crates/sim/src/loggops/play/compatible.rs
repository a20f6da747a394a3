//! LogGOPSim's rules, nanosecond for nanosecond, with its arithmetic modulo 2⁶⁴.

use super::{Context, Effects, Play, Remote};
use crate::loggops::event::{Event, What};
use crate::loggops::free::IdleTimes;
use crate::loggops::matching::{Entry, Envelope};
use crate::loggops::noise::{Noise, NoiseError};
use crate::loggops::program::{Program, ReadyOp};
use crate::loggops::rank::Rank;

/// What an event does under LogGOPSim's rules.
#[derive(Debug)]
pub(in crate::loggops) struct Compatible<'a, P>(pub(in crate::loggops) Context<'a, P>);

impl<P: Program, F: IdleTimes> Play<P, F> for Compatible<'_, P> {
    fn play(&self, me: u32, rank: &mut Rank<P::Rank, F>, event: Event, t: u64, effects: &mut Effects) {
        match event.what {
            What::Calc => self.work(me, rank, event, t, effects),
            What::Send => self.send(me, rank, event, t, effects),
            What::Recv => self.receive(me, rank, event, t, effects),
            What::Message | What::Arriving => self.message(me, rank, event, t, effects),
            // There are no answers: a rendezvous ends at its sender in the instant of the receive.
            What::Answer | What::Data | What::DataArriving | What::Handling => {}
        }
    }

    #[inline(always)]
    fn freed(&self, me: u32, rank: &Rank<P::Rank, F>, free: ReadyOp, age: u64) -> Event {
        let mut event = self.0.event(me, free, 0, age);
        event.time = rank.free.cpu(event.cpu);
        if event.what == What::Send {
            event.time = event.time.max(rank.free.out(event.nic));
        }
        event
    }

    fn may_shrink(&self) -> bool {
        let net = self.0.net;
        let shrinks = |bytes: u64, fixed: u64| (bytes as i64) < 0 && bytes.wrapping_neg() > fixed;
        let cost = |cost: &super::Cost| {
            shrinks(cost.cpu_bytes, net.overhead)
                || shrinks(cost.wire_bytes, net.overhead)
                || shrinks(cost.wire_bytes, net.gap)
        };
        self.0.costs.iter().any(cost)
    }
}

impl<P: Program> Compatible<'_, P> {
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
        if let Noise::Window(window) = context.noise
            && length >= window.length()
        {
            let short = NoiseError::Short { longest: length, trace: window.length() };
            effects.error.get_or_insert(short.into());
            return;
        }
        let noise = context.delay(me, rank, t, length);
        effects.noise = effects.noise.wrapping_add(noise);
        *rank.free.cpu_mut(event.cpu) = t.wrapping_add(length).wrapping_add(noise);
        context.program.started(me, &mut rank.state, event.op, t, &mut effects.free);
        context.program.done(me, &mut rank.state, event.op, t, &mut effects.free);
    }

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
        context.program.started(me, &mut rank.state, event.op, t, &mut effects.free);
        let noise = context.delay(me, rank, t, net.overhead);
        effects.noise = effects.noise.wrapping_add(noise);
        let end = t.wrapping_add(net.overhead).wrapping_add(cost.cpu_bytes).wrapping_add(noise);
        *rank.free.cpu_mut(event.cpu) = end;
        *rank.free.out_mut(event.nic) = t.wrapping_add(net.gap).wrapping_add(cost.wire_bytes);
        let time = t.wrapping_add(net.overhead).wrapping_add(net.latency);
        effects.send(event.who, Event { time, who: me, what: What::Message, ..event });
        if !cost.rendezvous {
            context.program.done(me, &mut rank.state, event.op, t, &mut effects.free);
        }
    }

    fn receive<F: IdleTimes>(
        &self,
        me: u32,
        rank: &mut Rank<P::Rank, F>,
        event: Event,
        t: u64,
        effects: &mut Effects,
    ) {
        let Self(context) = self;
        let cost = context.cost(event.shape);
        context.program.started(me, &mut rank.state, event.op, t, &mut effects.free);
        let envelope = Envelope { source: event.who, tag: cost.tag };
        let Some(message) = rank.arrived.take(envelope) else {
            rank.posted.push(Entry { envelope, op: event.op, shape: event.shape, end: t });
            return;
        };
        if cost.rendezvous {
            let sender = message.envelope.source;
            let remote = Remote { rank: sender, op: message.op, cpu: event.cpu, nic: event.nic, at: t };
            self.end_rendezvous(me, rank, remote, effects);
        }
        context.program.done(me, &mut rank.state, event.op, t, &mut effects.free);
    }

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
        let noise = context.delay(me, rank, t, net.overhead);
        effects.noise = effects.noise.wrapping_add(noise);
        let bytes = cost.cpu_bytes.max(cost.wire_bytes);
        let end = t.wrapping_add(net.overhead).wrapping_add(noise).wrapping_add(bytes);
        *rank.free.cpu_mut(event.cpu) = end;
        *rank.free.inward_mut(event.nic) = t.wrapping_add(net.gap).wrapping_add(cost.wire_bytes);
        let envelope = Envelope { source: event.who, tag: cost.tag };
        let Some(posted) = rank.posted.take(envelope) else {
            rank.arrived.push(Entry { envelope, op: event.op, shape: event.shape, end: t });
            return;
        };
        if cost.rendezvous {
            let remote = Remote { rank: event.who, op: event.op, cpu: event.cpu, nic: event.nic, at: t };
            self.end_rendezvous(me, rank, remote, effects);
        }
        context.program.done(me, &mut rank.state, posted.op, t, &mut effects.free);
    }

    /// Ends a send at its sender, which may be this rank.
    fn end_rendezvous<F: IdleTimes>(
        &self,
        me: u32,
        rank: &mut Rank<P::Rank, F>,
        remote: Remote,
        effects: &mut Effects,
    ) {
        if remote.rank == me {
            self.0.program.done(me, &mut rank.state, remote.op, remote.at, &mut effects.free);
            raise(rank, remote);
        } else {
            effects.remote = Some(remote);
        }
    }
}

/// Keeps the sender of a rendezvous busy until its message is received.
pub(in crate::loggops) fn raise<S, F: IdleTimes>(rank: &mut Rank<S, F>, remote: Remote) {
    let cpu = rank.free.cpu_mut(remote.cpu);
    *cpu = (*cpu).max(remote.at);
    let out = rank.free.out_mut(remote.nic);
    *out = (*out).max(remote.at);
}
