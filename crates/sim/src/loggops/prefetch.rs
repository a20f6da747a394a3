//! Prefetch hints to the CPU.

/// Size of a cache line, in bytes.
const LINE: usize = 64;

/// Prefetches the first `LINES` cache lines of a value that will be used soon.
#[inline(always)]
pub(crate) fn prefetch<T, const LINES: usize>(what: &T) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..LINES {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint: it never faults, whatever the address, and changes nothing that a program observes.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(what).cast::<i8>().wrapping_add(line * LINE));
        };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (what, LINE);
}
