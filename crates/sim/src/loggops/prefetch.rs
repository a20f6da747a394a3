//! A hint to the CPU.

/// How many bytes of memory come at once.
const LINE: usize = 64;

/// Asks for the first `LINES` cache lines of what will be used soon.
#[inline(always)]
pub(crate) fn prefetch<T, const LINES: usize>(what: &T) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..LINES {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint: it never faults, whatever the address, and changes nothing that a program sees.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(what).cast::<i8>().wrapping_add(line * LINE));
        };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (what, LINE);
}
