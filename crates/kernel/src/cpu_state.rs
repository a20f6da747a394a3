//! The state that the programs keep of each CPU, as the recorder sets and reads it.

use libbpf_rs::{MapCore as _, MapFlags};
use quell_recording::Cpu;

use crate::bpf::{RecorderSkel, types};
use crate::error::KernelError;

/// Each part begins on a cache line.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<types::cpu_state>() == 7 * 64);
    assert!(offset_of!(types::cpu_state, softirq) == 64);
    assert!(offset_of!(types::cpu_state, task) == 2 * 64);
    assert!(offset_of!(types::cpu_state, sent) == 3 * 64);
    assert!(offset_of!(types::cpu_state, woken) == 4 * 64);
    assert!(offset_of!(types::cpu_state, running) == 5 * 64);
    assert!(offset_of!(types::cpu_state, outer) == 6 * 64);
};

/// The state of a CPU as the programs left it.
pub(crate) fn state_of(skeleton: &RecorderSkel<'_>, cpu: u32) -> Option<types::cpu_state> {
    let bytes = skeleton.maps.cpus.lookup(&cpu.to_ne_bytes(), MapFlags::ANY).ok()??;
    (bytes.len() == size_of::<types::cpu_state>()).then(|| {
        // SAFETY: the length was checked, and every bit pattern is a valid state.
        unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }
    })
}

/// Sets in the programs' maps which CPUs to watch, and which ring each has. A ring goes on where the programs left it.
pub(crate) fn watch(
    skeleton: &RecorderSkel<'_>,
    watched: &[Cpu],
    ringed: &[Cpu],
    ring_entries: u32,
) -> Result<(), KernelError> {
    for (ring, cpu) in ringed.iter().enumerate() {
        let is_watched = watched.contains(cpu);
        let next = state_of(skeleton, cpu.0).map_or(0, |state| state.next);
        let from_afar = || types::cause_from_afar { wanted: u32::from(is_watched), ..Default::default() };
        let state = types::cpu_state {
            watched: u32::from(is_watched),
            active: u16::from(is_watched),
            next,
            full_at: next,
            // There are no more than 8,192 CPUs.
            ring: ring as u16,
            ring_order: ring_entries.trailing_zeros() as u16,
            sent: from_afar(),
            woken: from_afar(),
            ..Default::default()
        };
        // SAFETY: a plain C struct without implicit padding can be read as bytes of its size.
        let bytes = unsafe {
            std::slice::from_raw_parts((&raw const state).cast::<u8>(), size_of::<types::cpu_state>())
        };
        skeleton
            .maps
            .cpus
            .update(&cpu.0.to_ne_bytes(), bytes, MapFlags::ANY)
            .map_err(|e| KernelError::refused("to watch a CPU", &e))?;
    }
    Ok(())
}
