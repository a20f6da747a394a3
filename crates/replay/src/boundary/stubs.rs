//! The functions under MPI's names: each passes whatever it was given on, with a look at the clock before and after.
//!
//! They know no arguments, so no header and no MPI of the site's is needed, and one library serves all.

use core::arch::naked_asm;
use core::ffi::{CStr, c_char, c_int, c_void};

use super::{enter, leave, missing};
use crate::schedule::phase_call;

/// A call that is hooked.
pub(super) struct Call {
    pub(super) name: &'static CStr,
    /// Which kind of phase's end it is: a bit of [`phase_call`].
    pub(super) ends: u64,
    pub(super) finalize: bool,
}

/// A function that tells its number to [`around`].
macro_rules! stub {
    ($number:literal, $name:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "push {number}",
                ".cfi_adjust_cfa_offset 8",
                "jmp {around}",
                ".cfi_endproc",
                number = const $number,
                around = sym around,
            )
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/calls.rs"));

/// Calls `enter`, then the MPI's function with all arguments, then `leave`. On entry the stack holds the stub's number, then the caller's
/// address, then what did not fit into registers: at most eight words, for MPI's longest calls from Fortran; ten are passed on.
#[unsafe(naked)]
unsafe extern "C" fn around() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_def_cfa_offset 16",
        "push rbp",
        ".cfi_def_cfa_offset 24",
        ".cfi_offset rbp, -24",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        // 80 for arguments, 56 for registers, 128 for vectors (MPI_Pcontrol may take doubles); aligned to 16.
        "sub rsp, 264",
        "mov [rsp + 80], rdi",
        "mov [rsp + 88], rsi",
        "mov [rsp + 96], rdx",
        "mov [rsp + 104], rcx",
        "mov [rsp + 112], r8",
        "mov [rsp + 120], r9",
        "mov [rsp + 128], rax",
        "movups [rsp + 136], xmm0",
        "movups [rsp + 152], xmm1",
        "movups [rsp + 168], xmm2",
        "movups [rsp + 184], xmm3",
        "movups [rsp + 200], xmm4",
        "movups [rsp + 216], xmm5",
        "movups [rsp + 232], xmm6",
        "movups [rsp + 248], xmm7",
        "mov rdi, [rbp + 8]",
        "mov rsi, rbp",
        "call {enter}",
        "mov r11, rax",
        "movups xmm0, [rsp + 136]",
        "movups xmm1, [rsp + 152]",
        "movups xmm2, [rsp + 168]",
        "movups xmm3, [rsp + 184]",
        "movups xmm4, [rsp + 200]",
        "movups xmm5, [rsp + 216]",
        "movups xmm6, [rsp + 232]",
        "movups xmm7, [rsp + 248]",
        "mov r10, [rbp + 24]",
        "mov [rsp], r10",
        "mov r10, [rbp + 32]",
        "mov [rsp + 8], r10",
        "mov r10, [rbp + 40]",
        "mov [rsp + 16], r10",
        "mov r10, [rbp + 48]",
        "mov [rsp + 24], r10",
        "mov r10, [rbp + 56]",
        "mov [rsp + 32], r10",
        "mov r10, [rbp + 64]",
        "mov [rsp + 40], r10",
        "mov r10, [rbp + 72]",
        "mov [rsp + 48], r10",
        "mov r10, [rbp + 80]",
        "mov [rsp + 56], r10",
        "mov r10, [rbp + 88]",
        "mov [rsp + 64], r10",
        "mov r10, [rbp + 96]",
        "mov [rsp + 72], r10",
        "mov rdi, [rsp + 80]",
        "mov rsi, [rsp + 88]",
        "mov rdx, [rsp + 96]",
        "mov rcx, [rsp + 104]",
        "mov r8, [rsp + 112]",
        "mov r9, [rsp + 120]",
        "mov rax, [rsp + 128]",
        "call r11",
        "mov [rsp + 80], rax",
        "mov [rsp + 88], rdx",
        "mov rdi, [rbp + 8]",
        "mov rsi, rbp",
        "call {leave}",
        "mov rax, [rsp + 80]",
        "mov rdx, [rsp + 88]",
        "leave",
        ".cfi_def_cfa rsp, 16",
        "add rsp, 8",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
        enter = sym enter,
        leave = sym leave,
    )
}

/// The function of this name behind this library.
pub(super) fn find(name: &'static CStr) -> *mut c_void {
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !found.is_null() {
        return found;
    }
    // An MPI that an interpreter loaded for itself alone, as Python does, is not behind this library for the linker.
    let mut paths = Paths([[0; PATH]; PATHS]);
    // SAFETY: `note` takes what is passed here, which lives through the call.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut paths).cast()) };
    let found = paths.0.iter().find_map(|path| function(path, name));
    found.unwrap_or(missing as *mut c_void)
}

const PATHS: usize = 4;
const PATH: usize = 1024;

/// Paths of loaded objects that may be an MPI, each zero-ended; empty ones are free. Any of them will do, for those beside an MPI's own
/// lead to it.
struct Paths([[c_char; PATH]; PATHS]);

/// Notes the path of one loaded object; not 0 ends the search. The linker is locked meanwhile, so nothing is opened here.
unsafe extern "C" fn note(object: *mut libc::dl_phdr_info, _size: usize, paths: *mut c_void) -> c_int {
    // SAFETY: both are as `find` and the linker promise; a path is null or ends with a zero, and so its last part does.
    unsafe {
        let (path, paths) = ((*object).dlpi_name, &mut *paths.cast::<Paths>());
        if path.is_null() {
            return 0;
        }
        let slash = libc::strrchr(path, c_int::from(b'/'));
        let file = if slash.is_null() { path } else { slash.cast_const() };
        let length = libc::strlen(path);
        if libc::strstr(file, c"libmpi".as_ptr()).is_null() || length >= PATH {
            return 0;
        }
        let Some(free) = paths.0.iter_mut().find(|place| place.first() == Some(&0)) else { return 1 };
        core::ptr::copy_nonoverlapping(path, free.as_mut_ptr(), length);
    }
    0
}

/// A function of a loaded object's, if it is not one of ours.
fn function(path: &[c_char; PATH], name: &CStr) -> Option<*mut c_void> {
    if path.first() == Some(&0) {
        return None;
    }
    // SAFETY: path and name end with a zero. The handle is only used to ask, and keeps the object where it is if it has what is wanted.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return None;
        }
        let found = libc::dlsym(handle, name.as_ptr());
        if found.is_null() || object_of(found) == object_of(function as *const c_void) {
            libc::dlclose(handle);
            return None;
        }
        Some(found)
    }
}

/// Where the object that holds this address is loaded; null for none.
fn object_of(address: *const c_void) -> *mut c_void {
    // SAFETY: zeros are a valid answer, and `facts` a valid place for one; any address may be asked about.
    unsafe {
        let mut facts: libc::Dl_info = core::mem::zeroed();
        libc::dladdr(address, &raw mut facts);
        facts.dli_fbase
    }
}
