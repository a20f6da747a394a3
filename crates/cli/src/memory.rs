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

/// Where not even this many bytes are left, the program ends at once: it could do nothing more, and not every crate looks whether it got
/// what it asked for. Whoever can do with less asks for more than this.
const LITTLE: usize = 1 << 20;

impl Noted {
    fn noted(pointer: *mut u8, size: usize) -> *mut u8 {
        if pointer.is_null() {
            FAILED.store(true, Ordering::Relaxed);
            if size <= LITTLE {
                end();
            }
        }
        pointer
    }
}

/// Prints the reason, and ends the program. Async-signal-safe.
fn end() -> ! {
    const LINE: &[u8] =
        b"error: there is not enough memory: give quell more (ulimit -v, the job's limit), or less to do at a time\n";
    // SAFETY: both calls are async-signal-safe, and the line lives forever.
    unsafe {
        libc::write(2, LINE.as_ptr().cast(), LINE.len());
        libc::_exit(1);
    }
}

// SAFETY: each method calls the one of `System` with its own arguments.
unsafe impl GlobalAlloc for Noted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the rules of this method, which are the same.
        Self::noted(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        Self::noted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        Self::noted(unsafe { System.realloc(pointer, layout, size) }, size)
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
        // Rust's and C's libraries also allocate past this allocator, and a failure leaves its number.
        // SAFETY: errno is this thread's own.
        let is_last_failure = unsafe { *libc::__errno_location() } == libc::ENOMEM;
        if is_last_failure || FAILED.load(Ordering::Relaxed) {
            end();
        }
    }
    // SAFETY: the handler makes only async-signal-safe calls. If it returns, abort(3) ends the program as it would without it.
    unsafe {
        libc::signal(libc::SIGABRT, aborts as extern "C" fn(libc::c_int) as libc::sighandler_t);
    }
}

/// The same for panics: crates that expect memory panic where they get none. The library of zstd has an allocator of its own.
pub fn report_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if quell_recording::is_lack_of_memory(panic.payload()) {
            FAILED.store(true, Ordering::Relaxed);
        }
        if FAILED.load(Ordering::Relaxed) {
            std::process::abort();
        }
        default(panic);
    }));
}
