//! The functions under MPI's names: each passes its arguments on unchanged, and calls `enter` before and `leave` after the MPI's own.
//!
//! They do not interpret arguments, so they need no header and no MPI of the site, and one library serves every MPI and Fortran
//! (docs/decisions/2026-11-21-stubs-that-know-no-arguments.md).

use core::arch::naked_asm;
use core::ffi::{CStr, c_char, c_int, c_void};

use super::{enter, leave, missing};
use crate::schedule::phase_call;

/// A hooked call.
pub(super) struct Call {
    pub(super) name: &'static CStr,
    /// The kind of phase that it ends: a bit of [`phase_call`].
    pub(super) ends: u64,
    pub(super) finalize: bool,
}

/// A function that passes its number to [`around`].
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

/// Calls `enter`, then the MPI's function with all arguments, then `leave`. On entry the stack holds the stub's number, then the return
/// address of the caller, then the arguments that did not fit into registers: at most eight words, for MPI's longest calls from Fortran.
/// Ten words are passed on.
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
        // 80 bytes for arguments, 56 for registers, 128 for vector registers (MPI_Pcontrol may take doubles); aligned to 16.
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

/// The next function of this name, behind this library.
pub(super) fn find(name: &'static CStr) -> *mut c_void {
    // SAFETY: the name ends with a NUL.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !found.is_null() {
        return found;
    }
    // An MPI that an interpreter such as Python loaded with RTLD_LOCAL is not behind this library in the linker's search order.
    let mut paths = Paths([[0; PATH]; PATHS]);
    // SAFETY: `note` gets what is passed here, which lives through the call.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut paths).cast()) };
    let found = paths.0.iter().find_map(|path| function(path, name));
    found.unwrap_or(missing as *mut c_void)
}

const PATHS: usize = 4;
const PATH: usize = 1024;

/// Paths of loaded objects that may be an MPI, each NUL-terminated; empty ones are free. Any of them is good enough, because looking up a
/// name in an object also searches the MPI that it depends on.
struct Paths([[c_char; PATH]; PATHS]);

/// Notes the path of one loaded object; a return value other than 0 ends the iteration. The linker's lock is held, so nothing may be
/// opened here.
unsafe extern "C" fn note(object: *mut libc::dl_phdr_info, _size: usize, paths: *mut c_void) -> c_int {
    // SAFETY: both pointers are as `find` and the linker pass them; a path is null or NUL-terminated, and so is its last component.
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

/// A function of a loaded object, unless it is one of ours.
fn function(path: &[c_char; PATH], name: &CStr) -> Option<*mut c_void> {
    if path.first() == Some(&0) {
        return None;
    }
    // SAFETY: path and name are NUL-terminated. The handle is only used for the lookup, and keeps the object loaded if it has the function.
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

/// The load address of the object that contains this address; null if there is none.
fn object_of(address: *const c_void) -> *mut c_void {
    // SAFETY: zeros are a valid value, and `facts` is valid for writes; any address may be passed.
    unsafe {
        let mut facts: libc::Dl_info = core::mem::zeroed();
        libc::dladdr(address, &raw mut facts);
        facts.dli_fbase
    }
}
