//! The C library's functions behind our own of the same names.

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

/// A function that is looked up once.
pub struct Next {
    name: &'static CStr,
    place: AtomicPtr<c_void>,
}

impl Next {
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, place: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Its address; null if this C library does not have it.
    #[inline]
    pub fn get(&self) -> *mut c_void {
        let place = self.place.load(Ordering::Relaxed);
        if place.is_null() { self.find() } else { place }
    }

    #[cold]
    pub fn find(&self) -> *mut c_void {
        let mut place = core::ptr::null_mut();
        // Before glibc 2.36 `dlsym` returns the oldest version of a symbol. That of condition variables has a different type of them.
        #[cfg(target_env = "gnu")]
        if self.name.to_bytes().starts_with(b"pthread_cond_") {
            // SAFETY: both texts are NUL-terminated.
            place = unsafe { libc::dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), c"GLIBC_2.3.2".as_ptr()) };
        }
        if place.is_null() {
            // SAFETY: the name is NUL-terminated.
            place = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        }
        self.place.store(place, Ordering::Relaxed);
        place
    }
}

/// What a function returns that this C library does not have.
#[cold]
pub fn lacking() -> isize {
    // SAFETY: the address of this thread's errno is always valid.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

/// Calls the next function with arguments that each fill one register.
macro_rules! next {
    ($next:ident($($argument:expr),*)) => {{
        let place = $next.get();
        if place.is_null() {
            $crate::timer::preload::next::lacking()
        } else {
            // SAFETY: a C function of that name takes these arguments, each in a register, as the program passed them.
            unsafe {
                let call = core::mem::transmute::<
                    *mut core::ffi::c_void,
                    extern "C" fn($($crate::timer::preload::next::register!($argument)),*) -> isize,
                >(place);
                call($($argument),*)
            }
        }
    }};
}

/// The type of any argument.
macro_rules! register {
    ($argument:expr) => {
        usize
    };
}

/// Exports functions of the C library. Each gets the name of the next function, arguments, and a body that calls it.
macro_rules! hooks {
    ($($next:ident = $function:ident($($argument:ident),*) $body:block)*) => {
        $(
            static $next: $crate::timer::preload::next::Next = $crate::timer::preload::next::Next::new(
                match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($function), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                },
            );

            #[unsafe(no_mangle)]
            extern "C" fn $function(
                $($argument: $crate::timer::preload::next::register!($argument)),*
            ) -> isize $body
        )*
        /// All functions that this module hooks.
        pub const NEXT: &[&$crate::timer::preload::next::Next] = &[$(&$next),*];
    };
}

pub(super) use {hooks, next, register};
