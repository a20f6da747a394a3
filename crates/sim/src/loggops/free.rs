//! The times from which the CPUs and interfaces of a rank are free.

/// Number of CPUs and interfaces of each rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) cpus: usize,
    pub(super) nics: usize,
}

impl Layout {
    pub(super) fn is_single(self) -> bool {
        self.cpus <= 1 && self.nics <= 1
    }
}

/// The time from which each CPU of a rank is free, and each interface for sending and for receiving, in nanoseconds.
pub(super) trait IdleTimes: Send {
    /// Whether there is only one CPU and one interface.
    const SINGLE: bool;
    /// Whether messages are handled only in a call, and a call that waits for its interface holds its CPU.
    const IN_CALL: bool = false;

    /// All are free from 0 on.
    fn new(layout: Layout) -> Self;
    fn cpu(&self, cpu: u8) -> u64;
    /// The time before which nothing is sent through an interface; what waits for it does not hold a CPU.
    fn out(&self, nic: u8) -> u64;
    /// The same for what is received.
    fn inward(&self, nic: u8) -> u64;
    fn cpu_mut(&mut self, cpu: u8) -> &mut u64;
    fn out_mut(&mut self, nic: u8) -> &mut u64;
    fn inward_mut(&mut self, nic: u8) -> &mut u64;
    /// The time at which the last CPU becomes free.
    fn finish(&self) -> u64;
}

/// One CPU and one interface: what nearly all programs use, and the fastest to look up.
#[derive(Debug)]
pub(super) struct Single {
    cpu: u64,
    out: u64,
    inward: u64,
}

impl IdleTimes for Single {
    const SINGLE: bool = true;

    fn new(_: Layout) -> Self {
        Self { cpu: 0, out: 0, inward: 0 }
    }

    #[inline(always)]
    fn cpu(&self, _: u8) -> u64 {
        self.cpu
    }

    #[inline(always)]
    fn out(&self, _: u8) -> u64 {
        self.out
    }

    #[inline(always)]
    fn inward(&self, _: u8) -> u64 {
        self.inward
    }

    #[inline(always)]
    fn cpu_mut(&mut self, _: u8) -> &mut u64 {
        &mut self.cpu
    }

    #[inline(always)]
    fn out_mut(&mut self, _: u8) -> &mut u64 {
        &mut self.out
    }

    #[inline(always)]
    fn inward_mut(&mut self, _: u8) -> &mut u64 {
        &mut self.inward
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.cpu
    }
}

/// Any number of CPUs and interfaces.
#[derive(Debug)]
pub(super) struct Several {
    cpus: Box<[u64]>,
    outs: Box<[u64]>,
    inwards: Box<[u64]>,
}

impl IdleTimes for Several {
    const SINGLE: bool = false;

    fn new(layout: Layout) -> Self {
        let zeros = |count: usize| vec![0; count.max(1)].into_boxed_slice();
        Self { cpus: zeros(layout.cpus), outs: zeros(layout.nics), inwards: zeros(layout.nics) }
    }

    fn cpu(&self, cpu: u8) -> u64 {
        self.cpus[usize::from(cpu)]
    }

    fn out(&self, nic: u8) -> u64 {
        self.outs[usize::from(nic)]
    }

    fn inward(&self, nic: u8) -> u64 {
        self.inwards[usize::from(nic)]
    }

    fn cpu_mut(&mut self, cpu: u8) -> &mut u64 {
        &mut self.cpus[usize::from(cpu)]
    }

    fn out_mut(&mut self, nic: u8) -> &mut u64 {
        &mut self.outs[usize::from(nic)]
    }

    fn inward_mut(&mut self, nic: u8) -> &mut u64 {
        &mut self.inwards[usize::from(nic)]
    }

    fn finish(&self) -> u64 {
        self.cpus.iter().copied().max().unwrap_or(0)
    }
}

/// The same times under progress in the call: an operation starts when its CPU is free, and waits for its interface while it
/// holds the CPU.
#[derive(Debug)]
pub(super) struct InCall<F>(F);

impl<F: IdleTimes> IdleTimes for InCall<F> {
    const SINGLE: bool = F::SINGLE;
    const IN_CALL: bool = true;

    fn new(layout: Layout) -> Self {
        Self(F::new(layout))
    }

    #[inline(always)]
    fn cpu(&self, cpu: u8) -> u64 {
        self.0.cpu(cpu)
    }

    #[inline(always)]
    fn out(&self, _: u8) -> u64 {
        0
    }

    #[inline(always)]
    fn inward(&self, _: u8) -> u64 {
        0
    }

    #[inline(always)]
    fn cpu_mut(&mut self, cpu: u8) -> &mut u64 {
        self.0.cpu_mut(cpu)
    }

    #[inline(always)]
    fn out_mut(&mut self, nic: u8) -> &mut u64 {
        self.0.out_mut(nic)
    }

    #[inline(always)]
    fn inward_mut(&mut self, nic: u8) -> &mut u64 {
        self.0.inward_mut(nic)
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0.finish()
    }
}
