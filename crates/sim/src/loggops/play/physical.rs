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
            What::Arriving if F::IN_CALL => self.arrive_in_call(me, rank, event, t),
            What::Arriving => self.arrive(me, rank, event),
            What::Handling => self.handle(me, rank, event, t, effects),
            What::Answer => self.send_data(me, rank, event, t, effects),
            What::DataArriving => self.arrive_data(me, rank, event),
            What::Data => self.data(me, rank, event, t, effects),
        }
    }

    #[inline(always)]
    fn freed(&self, me: u32, _: &Rank<P::Rank, F>, free: ReadyOp, age: u64) -> Event {
        self.0.event(me, free, free.ready, age)
    }

    #[inline(always)]
    fn prepare(&self, me: u32, rank: &Rank<P::Rank, F>) {
        self.0.program.prepare(me, &rank.state);
    }

    fn early(&self) -> Early {
        match self.0.early() {
            // A message that arrives before its receive is posted may be matched by another receive.
            Early::Unmet if F::IN_CALL => Early::None,
            early => early,
        }
    }
}

impl<P: Program> Physical<'_, P> {
    /// Time of a message of a shape to its receiver without noise, in nanoseconds.
    pub(in crate::loggops) fn flight(&self, shape: u32) -> u64 {
        let cost = self.0.cost(shape);
        cost.overhead.saturating_add(cost.latency)
    }

    /// Whether a message could overtake an earlier one.
    pub(in crate::loggops) fn may_overtake(&self) -> bool {
        self.0.may_overtake
    }

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
        let what = if F::SINGLE && !F::IN_CALL { What::Message } else { What::Arriving };
        let end = self.transmit(me, rank, Event { what, ..event }, t, effects);
        context.program.started(me, &mut rank.state, event.op, t, &mut effects.free);
        if !context.cost(event.shape).rendezvous {
            context.program.done(me, &mut rank.state, event.op, end, &mut effects.free);
        }
    }

    /// Sends the data of a rendezvous: its receive waits for them.
    fn send_data<F: IdleTimes>(
        &self,
        me: u32,
        rank: &mut Rank<P::Rank, F>,
        event: Event,
        t: u64,
        effects: &mut Effects,
    ) {
        let what = if F::SINGLE { What::Data } else { What::DataArriving };
        let end = self.transmit(me, rank, Event { what, ..event }, t, effects);
        self.0.program.done(me, &mut rank.state, event.op, end, &mut effects.free);
    }

    /// Sends `message` from `t` on, and returns when the CPU is done with it.
    #[inline(always)]
    fn transmit<F: IdleTimes>(
        &self,
        me: u32,
        rank: &mut Rank<P::Rank, F>,
        message: Event,
        t: u64,
        effects: &mut Effects,
    ) -> u64 {
        let cost = self.0.cost(message.shape);
        let (cpu_bytes, wire_bytes) = self.bytes(&message);
        let work = cost.overhead.saturating_add(cpu_bytes);
        let (age, quiet) = (t, rank.quiet);
        let t = if F::IN_CALL { t.max(*rank.free.out_mut(message.nic)) } else { t };
        let end = self.end(me, rank, t, work);
        let leaves = if cpu_bytes == 0 { end } else { self.end(me, rank, t, cost.overhead) };
        effects.noise += (end - t).saturating_sub(work);
        if F::IN_CALL && !F::SINGLE && t > age {
            // Another CPU may start something before this time.
            rank.quiet = quiet;
        }
        *rank.free.cpu_mut(message.cpu) = end;
        *rank.free.out_mut(message.nic) =
            (leaves - cost.overhead).saturating_add(cost.gap).saturating_add(wire_bytes);
        let mut time = leaves.saturating_add(cost.latency);
        if self.0.may_overtake && !matches!(message.what, What::Data | What::DataArriving) {
            let arrives = rank.last_arrivals.in_order(message.who, age, time);
            effects.held = arrives - time;
            time = arrives;
        }
        effects.send(message.who, Event { time, age, who: me, ..message });
        end
    }

    /// CPU and wire time of a message's bytes. The request of a rendezvous has none.
    #[inline(always)]
    fn bytes(&self, message: &Event) -> (u64, u64) {
        let cost = self.0.cost(message.shape);
        let is_request =
            cost.rendezvous && matches!(message.what, What::Message | What::Arriving | What::Handling);
        if is_request { (0, 0) } else { (cost.cpu_bytes, cost.wire_bytes) }
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
        let at = t.max(message.end);
        if F::IN_CALL {
            return self.meet(
                me,
                rank,
                message,
                Entry { envelope, op: event.op, shape: event.shape, end: at },
            );
        }
        if context.cost(message.shape).rendezvous {
            self.grant(rank, me, message, &Grant { op: event.op, shape: event.shape, at, age: t }, effects);
        } else {
            context.program.done(me, &mut rank.state, event.op, at, &mut effects.free);
        }
    }

    /// Determines the CPU and interface of a message that has arrived: those of the receive that it matches, or else those of its send.
    fn arrive<F: IdleTimes>(&self, me: u32, rank: &mut Rank<P::Rank, F>, event: Event) {
        let envelope = Envelope { source: event.who, tag: self.0.cost(event.shape).tag };
        let shape = rank.posted.peek(envelope).map_or(event.shape, |posted| posted.shape);
        let cost = self.0.cost(shape);
        rank.push(Event { what: What::Message, cpu: cost.cpu, nic: cost.nic, ..event }, me);
    }

    /// Determines the CPU and interface of the data of a rendezvous: those of the receive that waits for them.
    fn arrive_data<F: IdleTimes>(&self, me: u32, rank: &mut Rank<P::Rank, F>, event: Event) {
        let receive = rank.granted.peek(data_of(event.who, event.op));
        let cost = self.0.cost(receive.map_or(event.shape, |receive| receive.shape));
        rank.push(Event { what: What::Data, cpu: cost.cpu, nic: cost.nic, ..event }, me);
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
        let end = self.take_in(me, rank, event, t, effects);
        let cost = context.cost(event.shape);
        let envelope = Envelope { source: event.who, tag: cost.tag };
        let message = Entry { envelope, op: event.op, shape: event.shape, end };
        match rank.posted.take(envelope) {
            Some(posted) if cost.rendezvous => {
                let grant = Grant { op: posted.op, shape: posted.shape, at: end, age: t };
                self.grant(rank, me, message, &grant, effects);
            }
            Some(posted) => context.program.done(me, &mut rank.state, posted.op, end, &mut effects.free),
            None => rank.arrived.push(message),
        }
    }

    /// Receives the data of a rendezvous.
    fn data<F: IdleTimes>(
        &self,
        me: u32,
        rank: &mut Rank<P::Rank, F>,
        event: Event,
        t: u64,
        effects: &mut Effects,
    ) {
        let end = self.take_in(me, rank, event, t, effects);
        if let Some(receive) = rank.granted.take(data_of(event.who, event.op)) {
            self.0.program.done(me, &mut rank.state, receive.op, end, &mut effects.free);
        }
    }

    /// Progress in the call: a message that has arrived meets the first posted receive that it matches, or waits for one.
    #[inline(always)]
    fn arrive_in_call<F: IdleTimes>(&self, me: u32, rank: &mut Rank<P::Rank, F>, event: Event, t: u64) {
        let envelope = Envelope { source: event.who, tag: self.0.cost(event.shape).tag };
        let message = Entry { envelope, op: event.op, shape: event.shape, end: t };
        match rank.posted.take(envelope) {
            // A receive may be known before the time from which it is posted.
            Some(posted) => self.meet(me, rank, message, Entry { end: posted.end.max(t), ..posted }),
            None => rank.arrived.push(message),
        }
    }

    /// Lets a receive handle its message from `receive.end` on.
    #[inline(always)]
    fn meet<F: IdleTimes>(&self, me: u32, rank: &mut Rank<P::Rank, F>, message: Entry, receive: Entry) {
        let (who, time) = (message.envelope.source, receive.end);
        let (op, shape) = (receive.op, message.shape);
        if self.0.cost(shape).rendezvous {
            let envelope = Envelope { source: who, tag: op };
            rank.granted.push_request(Entry { envelope, op: message.op, ..receive });
        }
        let cost = self.0.cost(receive.shape);
        let (what, cpu, nic) = (What::Handling, cost.cpu, cost.nic);
        rank.push(Event { time, age: time, who, op, shape, what, cpu, nic }, me);
    }

    /// Handles the message of a receive.
    #[inline(always)]
    fn handle<F: IdleTimes>(
        &self,
        me: u32,
        rank: &mut Rank<P::Rank, F>,
        event: Event,
        t: u64,
        effects: &mut Effects,
    ) {
        let end = self.take_in(me, rank, event, t, effects);
        let cost = self.0.cost(event.shape);
        if !cost.rendezvous {
            self.0.program.done(me, &mut rank.state, event.op, end, &mut effects.free);
        } else if let Some(request) = rank.granted.take_request(Envelope { source: event.who, tag: event.op })
        {
            let envelope = Envelope { source: event.who, tag: cost.tag };
            let grant = Grant { op: event.op, shape: request.shape, at: end, age: t };
            self.grant(
                rank,
                me,
                Entry { envelope, op: request.op, shape: event.shape, end },
                &grant,
                effects,
            );
        }
    }

    /// Takes a message from the network from `t` on, and returns when the CPU is done with it.
    #[inline(always)]
    fn take_in<F: IdleTimes>(
        &self,
        me: u32,
        rank: &mut Rank<P::Rank, F>,
        event: Event,
        t: u64,
        effects: &mut Effects,
    ) -> u64 {
        let cost = self.0.cost(event.shape);
        let (cpu_bytes, wire_bytes) = self.bytes(&event);
        let work = cost.overhead.saturating_add(cpu_bytes);
        let (turn, before) = (t, rank.quiet);
        let t = if F::IN_CALL { t.max(*rank.free.inward_mut(event.nic)) } else { t };
        let silent = t.saturating_add(cost.overhead).saturating_add(cpu_bytes.max(wire_bytes));
        let end = if silent < rank.quiet {
            silent
        } else {
            let own = self.end(me, rank, t, work);
            let quiet = rank.quiet;
            let after = self.end(me, rank, t.saturating_add(wire_bytes), cost.overhead);
            // The quiet time after a later start does not hold for what starts before it.
            rank.quiet = quiet;
            own.max(after)
        };
        if F::IN_CALL && !F::SINGLE && t > turn {
            rank.quiet = before;
        }
        effects.noise += end.saturating_sub(silent);
        *rank.free.cpu_mut(event.cpu) = end;
        *rank.free.inward_mut(event.nic) = t.saturating_add(cost.gap).saturating_add(wire_bytes);
        end
    }

    /// Lets the sender of a rendezvous send its data: its request and a receive have met.
    #[cold]
    fn grant<F>(
        &self,
        rank: &mut Rank<P::Rank, F>,
        me: u32,
        request: Entry,
        grant: &Grant,
        effects: &mut Effects,
    ) {
        let Entry { envelope: Envelope { source, .. }, op, shape, .. } = request;
        let envelope = data_of(source, op);
        rank.granted.push(Entry { envelope, op: grant.op, shape: grant.shape, end: grant.at });
        let cost = self.0.cost(shape);
        let time = grant.at.saturating_add(cost.latency);
        let (what, age) = (What::Answer, grant.age);
        effects.send(source, Event { time, age, who: me, op, shape, what, cpu: cost.cpu, nic: cost.nic });
    }
}

/// A receive that takes the data of a rendezvous.
struct Grant {
    op: u32,
    shape: u32,
    /// When the answer leaves.
    at: u64,
    /// When the event that matched both started.
    age: u64,
}

/// What the data of a rendezvous are matched by: sender and send.
fn data_of(source: u32, op: u32) -> Envelope {
    Envelope { source, tag: op }
}

#[cfg(test)]
mod tests;
