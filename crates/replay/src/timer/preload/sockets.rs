//! Calls on sockets and pipes. A signal interrupts calls on a socket with a timeout, and leaves a long transfer incomplete.

use core::mem::zeroed;

use super::calls::{failed_with, masked, masked_if};
use super::next::{hooks, next};
use crate::report::Field;

/// Writes to a pipe up to this length are atomic.
const WHOLE: usize = 4096;

/// Whether a call with these flags may wait.
fn waits(flags: usize) -> bool {
    flags as i32 & libc::MSG_DONTWAIT == 0
}

/// The total length of an iovec list. The kernel validates the list again.
fn total(pieces: usize, count: usize) -> usize {
    // Only short lists are read here, because the kernel returns an error for a list that cannot be read. A longer one counts as long.
    if pieces == 0 || count as i32 as isize > 8 || count as i32 <= 0 {
        return usize::MAX;
    }
    // SAFETY: the program passed a list with that many entries.
    let pieces = unsafe { core::slice::from_raw_parts(pieces as *const libc::iovec, count as i32 as usize) };
    pieces.iter().fold(0, |sum, piece| sum.saturating_add(piece.iov_len))
}

/// Makes a very frequent call, for which our signal is blocked only if necessary: `limit` is the option of the socket's timeout, and a call on
/// a socket with a timeout is repeated if one of our timers interrupted it.
fn again(socket: usize, limit: i32, call: impl Fn() -> isize) -> isize {
    let strikes = || super::engine().map_or(0, |engine| engine.report.get(Field::Calls));
    let before = strikes();
    let result = call();
    if failed_with(result, libc::EINTR) && strikes() != before && is_limited(socket, limit) {
        return masked(call);
    }
    result
}

/// Receives everything that was requested (`MSG_WAITALL`), or what is available.
fn receive(socket: usize, flags: usize, call: impl Fn() -> isize) -> isize {
    if waits(flags) && flags as i32 & libc::MSG_WAITALL != 0 {
        return masked(call);
    }
    again(socket, libc::SO_RCVTIMEO, call)
}

/// Sends a long message completely, and repeats a short one if necessary.
fn send_all(socket: usize, size: usize, flags: usize, call: impl Fn() -> isize) -> isize {
    if waits(flags) && size > WHOLE {
        return masked(call);
    }
    again(socket, libc::SO_SNDTIMEO, call)
}

/// Whether it is a socket with this timeout.
fn is_limited(socket: usize, option: i32) -> bool {
    // SAFETY: zeros are a valid time; it and its length live through the call. `errno` stays EINTR.
    unsafe {
        let mut limit: libc::timeval = zeroed();
        let mut size = size_of::<libc::timeval>() as libc::socklen_t;
        let (place, size) = ((&raw mut limit).cast(), &raw mut size);
        let found = libc::getsockopt(socket as i32, libc::SOL_SOCKET, option, place, size) == 0;
        *libc::__errno_location() = libc::EINTR;
        found && (limit.tv_sec != 0 || limit.tv_usec != 0)
    }
}

hooks! {
    CONNECT = connect(socket, address, size) { masked(|| next!(CONNECT(socket, address, size))) }
    ACCEPT = accept(socket, address, size) { masked(|| next!(ACCEPT(socket, address, size))) }
    ACCEPT4 = accept4(socket, address, size, flags) { masked(|| next!(ACCEPT4(socket, address, size, flags))) }
    RECV = recv(socket, buffer, size, flags) {
        receive(socket, flags, || next!(RECV(socket, buffer, size, flags)))
    }
    RECV_CHK = __recv_chk(socket, buffer, size, room, flags) {
        receive(socket, flags, || next!(RECV_CHK(socket, buffer, size, room, flags)))
    }
    RECVFROM = recvfrom(socket, buffer, size, flags, address, length) {
        receive(socket, flags, || next!(RECVFROM(socket, buffer, size, flags, address, length)))
    }
    RECVFROM_CHK = __recvfrom_chk(socket, buffer, size, room, flags, address, length) {
        receive(socket, flags, || next!(RECVFROM_CHK(socket, buffer, size, room, flags, address, length)))
    }
    RECVMSG = recvmsg(socket, message, flags) { receive(socket, flags, || next!(RECVMSG(socket, message, flags))) }
    RECVMMSG = recvmmsg(socket, messages, count, flags, limit) {
        receive(socket, flags, || next!(RECVMMSG(socket, messages, count, flags, limit)))
    }
    SEND = send(socket, buffer, size, flags) {
        send_all(socket, size, flags, || next!(SEND(socket, buffer, size, flags)))
    }
    SENDTO = sendto(socket, buffer, size, flags, address, length) {
        send_all(socket, size, flags, || next!(SENDTO(socket, buffer, size, flags, address, length)))
    }
    SENDMSG = sendmsg(socket, message, flags) { masked_if(waits(flags), || next!(SENDMSG(socket, message, flags))) }
    SENDMMSG = sendmmsg(socket, messages, count, flags) {
        masked_if(waits(flags), || next!(SENDMMSG(socket, messages, count, flags)))
    }
    READ = read(file, buffer, size) { again(file, libc::SO_RCVTIMEO, || next!(READ(file, buffer, size))) }
    READ_CHK = __read_chk(file, buffer, size, room) {
        again(file, libc::SO_RCVTIMEO, || next!(READ_CHK(file, buffer, size, room)))
    }
    READV = readv(file, pieces, count) { again(file, libc::SO_RCVTIMEO, || next!(READV(file, pieces, count))) }
    WRITE = write(file, buffer, size) {
        if size > WHOLE { masked(|| next!(WRITE(file, buffer, size))) } else { next!(WRITE(file, buffer, size)) }
    }
    WRITEV = writev(file, pieces, count) {
        if total(pieces, count) > WHOLE {
            masked(|| next!(WRITEV(file, pieces, count)))
        } else {
            next!(WRITEV(file, pieces, count))
        }
    }
    SENDFILE = sendfile(to, from, offset, count) { masked(|| next!(SENDFILE(to, from, offset, count))) }
    SENDFILE64 = sendfile64(to, from, offset, count) { masked(|| next!(SENDFILE64(to, from, offset, count))) }
    SPLICE = splice(from, from_offset, to, to_offset, size, flags) {
        masked(|| next!(SPLICE(from, from_offset, to, to_offset, size, flags)))
    }
}
