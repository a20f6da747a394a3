//! What an event changes on its rank and causes on other ranks.

mod compatible;
mod physical;

use super::event::{Event, What};
use super::free::Layout;
use super::levels::{Levels, MOST_LEVELS};
use super::noise::{Noise, NoiseError};
use super::program::{ANY, Kind, Program, ReadyOp, ReadyTrigger};
use super::rank::Rank;
use super::{Network, Rules, Run, RunError, SizeRange};

pub(super) use compatible::{Compatible, raise};
pub(super) use physical::Physical;

/// Cost of the operations of one shape, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) kind: Kind,
    pub(super) cpu: u8,
    pub(super) nic: u8,
    pub(super) rendezvous: bool,
    pub(super) tag: u32,
    /// For work, its length.
    pub(super) work: u64,
    /// L, o and g of its size.
    pub(super) latency: u64,
    pub(super) overhead: u64,
    pub(super) gap: u64,
    /// CPU time of its bytes.
    pub(super) cpu_bytes: u64,
    /// Wire time of its bytes.
    pub(super) wire_bytes: u64,
    /// The level of the network, 0 between ranks that share none.
    pub(super) level: u8,
}

/// The effects of one event. Reused from event to event to avoid allocations.
#[derive(Debug)]
pub(super) struct Effects {
    /// Operations of the rank itself that became free.
    pub(super) free: Vec<ReadyOp>,
    /// The rank that a message or an answer goes to; [`ANY`] for none.
    pub(super) message_to: u32,
    /// That message or answer.
    pub(super) message: Event,
    /// How much later it arrives because it overtakes no earlier one, in nanoseconds.
    pub(super) held: u64,
    /// A send of another rank that ends in the same instant (LogGOPSim's rendezvous).
    pub(super) remote: Option<Remote>,
    /// The noise that struck, in nanoseconds.
    pub(super) noise: u64,
    /// The first thing that went wrong.
    pub(super) error: Option<RunError>,
}

impl Default for Effects {
    fn default() -> Self {
        Self {
            free: Vec::new(),
            message_to: ANY,
            message: Event::default(),
            held: 0,
            remote: None,
            noise: 0,
            error: None,
        }
    }
}

impl Effects {
    #[inline(always)]
    fn send(&mut self, to: u32, message: Event) {
        self.message_to = to;
        self.message = message;
    }
}

/// The end of a rendezvous, at the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote {
    pub(super) rank: u32,
    pub(super) op: u32,
    pub(super) cpu: u8,
    pub(super) nic: u8,
    pub(super) at: u64,
}

/// Which receives may be posted as soon as it is known that they will be free before anything else can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Early {
    /// None: others could become free in between and be posted before them.
    None,
    /// Those that will wait for their message. An operation that another one frees may start in the same instant as one that
    /// is free already, before or after it.
    Unmet,
    /// All.
    All,
}

/// The rules that define what events do.
pub(super) trait Play<P: Program, F>: Sync {
    /// Plays `event`, which starts at `t` on rank `me`.
    fn play(&self, me: u32, rank: &mut Rank<P::Rank, F>, event: Event, t: u64, effects: &mut Effects);

    /// The event of an operation that became free.
    fn freed(&self, me: u32, rank: &Rank<P::Rank, F>, free: ReadyOp, age: u64) -> Event;

    /// Hints that events of a rank will be played soon.
    fn prepare(&self, _me: u32, _rank: &Rank<P::Rank, F>) {}

    /// See [`Context::early`].
    fn early(&self) -> Early {
        Early::None
    }

    /// Whether the time from which a CPU or interface is free can go back.
    fn may_shrink(&self) -> bool {
        false
    }
}

/// What the rules need to know about a run.
#[derive(Debug)]
pub(super) struct Context<'a, P> {
    pub(super) program: &'a P,
    pub(super) net: Network,
    pub(super) noise: &'a Noise,
    /// The costs of all shapes, again for each level of the network.
    pub(super) costs: Vec<Cost>,
    pub(super) levels: Levels<'a>,
    pub(super) layout: Layout,
    /// Whether a message could overtake an earlier one of the same ranks, because L depends on the size.
    pub(super) may_overtake: bool,
}

/// Whether all messages between two ranks have one latency, which may depend on their level.
pub(super) fn has_one_latency(costs: &[Cost]) -> bool {
    let sends = || costs.iter().filter(|cost| cost.kind == Kind::Send);
    let mut first = [None; MOST_LEVELS + 1];
    sends().all(|cost| *first[usize::from(cost.level)].get_or_insert(cost.latency) == cost.latency)
}

/// Maximum time of a run, in nanoseconds, so that sums cannot overflow.
pub(super) const MAX_TIME: u64 = 1 << 62;

impl<'a, P: Program> Context<'a, P> {
    /// Checks that program, rules and noise fit, and computes the cost of each shape.
    pub(super) fn new(program: &'a P, run: &Run<'a>) -> Result<Self, RunError> {
        let offsets = match run.noise {
            Noise::None => None,
            Noise::Window(window) => Some(window.ranks()),
            Noise::Clocks(clocks) => Some(clocks.places().len()),
        };
        if let Some(offsets) = offsets.filter(|&offsets| offsets < program.ranks() as usize) {
            return Err(NoiseError::Offsets { offsets, ranks: program.ranks() }.into());
        }
        let compatible = run.rules == Rules::Compatible;
        if compatible && !run.ranges.is_empty() {
            return Err(RunError::Ranges);
        }
        if compatible && !run.levels.is_empty() {
            return Err(RunError::Levels);
        }
        let levels = Levels::new(program.shapes().len(), run.levels)?;
        let cost = |(level, net, ranges): (u8, Network, &[SizeRange]), shape: &super::Shape| {
            let message = shape.kind != Kind::Calc;
            let range = SizeRange::find(ranges, shape.size).filter(|_| message);
            let net = range.map_or(net, |range| Network { eager_limit: net.eager_limit, ..range.network });
            let bytes = match compatible {
                true => shape.size.wrapping_sub(1),
                false => shape.size.max(1) - 1,
            };
            let per_byte = |price: super::PerByte, name| match (compatible, price.whole_nanos()) {
                // As in LogGOPSim: for an empty message, the number of further bytes wraps to −1.
                (true, Some(ns)) => Ok(bytes.wrapping_mul(ns)),
                (true, None) => Err(RunError::Fraction(name)),
                (false, _) => Ok(price.time(bytes)),
            };
            let cost = Cost {
                kind: shape.kind,
                cpu: shape.cpu,
                nic: shape.nic,
                rendezvous: message && shape.size > net.eager_limit,
                tag: shape.tag,
                work: if message { 0 } else { shape.size },
                latency: net.latency,
                overhead: net.overhead,
                gap: net.gap,
                cpu_bytes: if message { per_byte(net.overhead_per_byte, "O")? } else { 0 },
                wire_bytes: if message { per_byte(net.gap_per_byte, "G")? } else { 0 },
                level,
            };
            let bytes = if compatible { 0 } else { cost.cpu_bytes.max(cost.wire_bytes) };
            let times = [cost.work, bytes, cost.latency, cost.overhead, cost.gap];
            if times.iter().any(|&time| time > MAX_TIME) {
                Err(RunError::Overflow)
            } else {
                Ok::<_, RunError>(cost)
            }
        };
        let near = (1..).zip(run.levels).map(|(number, level)| (number, level.network, &level.ranges[..]));
        let mut costs = Vec::with_capacity(program.shapes().len() * (1 + run.levels.len()));
        for network in std::iter::once((0, run.net, run.ranges)).chain(near) {
            let net = network.1;
            if [net.latency, net.overhead, net.gap].iter().any(|&time| time > MAX_TIME) {
                return Err(RunError::Overflow);
            }
            for shape in program.shapes() {
                costs.push(cost(network, shape)?);
            }
        }
        let longest = costs.iter().map(|cost| cost.overhead).max().unwrap_or(run.net.overhead);
        if let Noise::Window(window) = run.noise
            && longest >= window.length()
        {
            return Err(NoiseError::Short { longest, trace: window.length() }.into());
        }
        let layout = Layout { cpus: program.cpus() as usize, nics: program.nics() as usize };
        let may_overtake = !has_one_latency(&costs);
        Ok(Self { program, net: run.net, noise: run.noise, costs, levels, layout, may_overtake })
    }

    #[inline(always)]
    pub(super) fn cost(&self, shape: u32) -> &Cost {
        &self.costs[shape as usize]
    }

    /// Whether any send waits for an answer.
    pub(super) fn has_rendezvous(&self) -> bool {
        self.costs.iter().any(|cost| cost.kind == Kind::Send && cost.rendezvous)
    }

    /// Whether each message takes CPU time.
    fn costs_cpu(&self) -> bool {
        self.costs.iter().all(|cost| cost.kind == Kind::Calc || cost.overhead > 0)
    }

    /// Which receives of a rank with one CPU may be posted as soon as the time at which they become free is known.
    pub(super) fn early(&self) -> Early {
        let idle = |cost: &Cost| cost.kind == Kind::Calc && cost.work == 0;
        match self.program.frees() {
            ReadyTrigger::InSteps => Early::All,
            ReadyTrigger::AtEnds
                if self.costs_cpu() && !self.has_rendezvous() && !self.costs.iter().any(idle) =>
            {
                Early::Unmet
            }
            ReadyTrigger::AtEnds | ReadyTrigger::AtStarts => Early::None,
        }
    }

    /// The event of a freed operation, which does not start before `time`.
    #[inline(always)]
    fn event(&self, me: u32, free: ReadyOp, time: u64, age: u64) -> Event {
        let shape = self.levels.shape(me, free.peer, free.shape);
        let cost = self.cost(shape);
        let what = match cost.kind {
            Kind::Send => What::Send,
            Kind::Recv => What::Recv,
            Kind::Calc => What::Calc,
        };
        Event { time, age, who: free.peer, op: free.op, shape, what, cpu: cost.cpu, nic: cost.nic }
    }

    /// Whether `peer` is a rank of the program; if not, sets the error.
    #[inline(always)]
    fn reaches(&self, me: u32, peer: u32, effects: &mut Effects) -> bool {
        let there = peer < self.program.ranks();
        if !there {
            let ranks = self.program.ranks();
            effects.error.get_or_insert(RunError::Peer { rank: me, peer, ranks });
        }
        there
    }

    /// The delay of `work` that starts at `t`.
    #[inline(always)]
    fn delay<F>(&self, me: u32, rank: &mut Rank<P::Rank, F>, t: u64, work: u64) -> u64 {
        if t.saturating_add(work) < rank.quiet { 0 } else { self.struck(me, rank, t, work) }
    }

    #[cold]
    fn struck<F>(&self, me: u32, rank: &mut Rank<P::Rank, F>, t: u64, work: u64) -> u64 {
        match self.noise {
            Noise::None => {
                rank.quiet = u64::MAX;
                0
            }
            Noise::Window(window) => window.delay(me, t, work),
            Noise::Clocks(clocks) => {
                let (delay, quiet) = clocks.delay(me, t, work);
                rank.quiet = quiet;
                delay
            }
        }
    }
}
