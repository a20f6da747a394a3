//! What happens where there is no memory: one line, and exit code 1.
//!
//! Rust ends a program with SIGABRT when an allocation fails that has no error of its own. `std::alloc::set_alloc_error_hook`, which could
//! change that, is not stable.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

/// The system's allocator, which remembers that it could not allocate.
struct Noted;

#[global_allocator]
static ALLOCATOR: Noted = Noted;

/// Whether an allocation failed.
static FAILED: AtomicBool = AtomicBool::new(false);

impl Noted {
    fn noted(pointer: *mut u8) -> *mut u8 {
        if pointer.is_null() {
            FAILED.store(true, Ordering::Relaxed);
        }
        pointer
    }
}

// SAFETY: each method calls the one of `System` with its own arguments.
unsafe impl GlobalAlloc for Noted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the rules of this method, which are the same.
        Self::noted(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        Self::noted(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        Self::noted(unsafe { System.realloc(pointer, layout, size) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Rust's runtime allocates before `main`, so the handler stands before that.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = report_failures;

/// From now on, the program ends with a line that names the reason where an allocation fails. Any other abort stays an abort.
extern "C" fn report_failures() {
    extern "C" fn aborts(_: libc::c_int) {
        const LINE: &[u8] =
            b"error: there is not enough memory: give quell more (ulimit -v, the job's limit), or less to do at a time\n";
        if FAILED.load(Ordering::Relaxed) {
            // SAFETY: both calls are async-signal-safe, and the line lives forever.
            unsafe {
                libc::write(2, LINE.as_ptr().cast(), LINE.len());
                libc::_exit(1);
            }
        }
    }
    // SAFETY: the handler makes only async-signal-safe calls. If it returns, abort(3) ends the program as it would without it.
    unsafe {
        libc::signal(libc::SIGABRT, aborts as extern "C" fn(libc::c_int) as libc::sighandler_t);
    }
}
