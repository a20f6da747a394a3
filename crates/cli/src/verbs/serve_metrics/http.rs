//! The part of HTTP/1.1 (RFC 9112) that is needed to serve one page: one thread, a bounded number of connections, each with a time limit.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use quell_analysis::live::CONTENT_TYPE;

use super::Page;

/// Maximum number of connections; a new one replaces the oldest.
const MOST_CONNECTIONS: usize = 64;
/// Maximum number of new connections to accept before serving the others.
const MOST_NEW: usize = 16;
/// Maximum length of a request's head, in bytes.
const LONGEST_HEAD: usize = 8 * 1024;
/// Maximum time of a connection, from its start to the last byte of the response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time until a signal is noticed, in ms.
const LONGEST_NAP_MS: libc::c_int = 200;

/// Serves requests until `stop`.
pub fn serve(listener: &TcpListener, page: &Page, stop: &AtomicBool) -> io::Result<()> {
    let mut connections: Vec<Connection> = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        wait(listener, &connections)?;
        let now = Instant::now();
        for _ in 0..MOST_NEW {
            match listener.accept() {
                Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                    if connections.len() >= MOST_CONNECTIONS {
                        connections.remove(0);
                    }
                    connections.push(Connection::new(stream, now));
                }
                Err(error) if error.kind() != ErrorKind::WouldBlock => {
                    // The client is gone already, or no file descriptor is free, which is temporary; an immediate retry would only burn the
                    // CPU.
                    std::thread::sleep(Duration::from_millis(LONGEST_NAP_MS as u64));
                    break;
                }
                // No connection waits.
                _ => break,
            }
        }
        connections.retain_mut(|one| now < one.end && one.go_on(page));
    }
    Ok(())
}

/// Waits until there is something to do, or for a limited time.
fn wait(listener: &TcpListener, connections: &[Connection]) -> io::Result<()> {
    let entry = |fd, events| libc::pollfd { fd, events, revents: 0 };
    let mut all = vec![entry(listener.as_raw_fd(), libc::POLLIN)];
    all.extend(connections.iter().map(|one| {
        entry(one.stream.as_raw_fd(), if one.answer.is_empty() { libc::POLLIN } else { libc::POLLOUT })
    }));
    // SAFETY: the array is valid, and lives through the call.
    let ready = unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, LONGEST_NAP_MS) };
    match io::Error::last_os_error() {
        error if ready < 0 && error.kind() != ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// A request and its response.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    end: Instant,
    head: Vec<u8>,
    /// Empty until the request's head is complete.
    answer: Vec<u8>,
    sent: usize,
}

impl Connection {
    fn new(stream: TcpStream, now: Instant) -> Self {
        Self { stream, end: now + TIMEOUT, head: Vec::new(), answer: Vec::new(), sent: 0 }
    }

    /// Reads or writes as much as possible without blocking; returns whether there is more to do.
    fn go_on(&mut self, page: &Page) -> bool {
        if self.answer.is_empty() && !self.read(page) {
            return false;
        }
        self.answer.is_empty() || self.write()
    }

    fn read(&mut self, page: &Page) -> bool {
        let mut bytes = [0; 1024];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => self.head.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return false,
            }
            if let Some(answer) = answer(&self.head, page) {
                self.answer = answer;
                return true;
            }
        }
    }

    fn write(&mut self) -> bool {
        while self.sent < self.answer.len() {
            match self.stream.write(&self.answer[self.sent..]) {
                Ok(0) => return false,
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        let _ = self.stream.shutdown(Shutdown::Write);
        false
    }
}

/// The response to a request, once its head is complete, or too long or invalid.
fn answer(head: &[u8], page: &Page) -> Option<Vec<u8>> {
    let plain = |status: &str, text: &str| Some(message(status, "text/plain; charset=utf-8", text, true));
    let whole = head.windows(4).any(|end| end == b"\r\n\r\n") || head.windows(2).any(|end| end == b"\n\n");
    if !whole {
        let long = head.len() > LONGEST_HEAD;
        return if long { plain("431 Request Header Fields Too Large", "too long\n") } else { None };
    }
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else {
        return plain("400 Bad Request", "not text\n");
    };
    let mut words = line.split_ascii_whitespace();
    let (method, target, version) = (words.next(), words.next(), words.next());
    let (Some(method), Some(target), Some(version)) = (method, target, version) else {
        return plain("400 Bad Request", "not a request\n");
    };
    if !version.starts_with("HTTP/1.") || words.next().is_some() {
        return plain("400 Bad Request", "not HTTP/1.1\n");
    }
    if !matches!(method, "GET" | "HEAD") {
        return plain("405 Method Not Allowed\r\nAllow: GET, HEAD", "only GET and HEAD\n");
    }
    let body = method == "GET";
    match target.split('?').next().unwrap_or_default() {
        "/metrics" => {
            let text = Arc::clone(&page.lock().unwrap_or_else(PoisonError::into_inner));
            Some(message("200 OK", CONTENT_TYPE, &text, body))
        }
        "/" => Some(message("200 OK", "text/plain; charset=utf-8", "quell: see /metrics\n", body)),
        _ => Some(message("404 Not Found", "text/plain; charset=utf-8", "see /metrics\n", body)),
    }
}

fn message(status: &str, kind: &str, text: &str, body: bool) -> Vec<u8> {
    let length = text.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    (head + if body { text } else { "" }).into_bytes()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn answered(request: &str) -> Option<String> {
        let page: Page = Arc::new(Mutex::new("# EOF\n".into()));
        answer(request.as_bytes(), &page).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn each_request_has_its_answer() {
        let cases = [
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n"),
            ("GET /metrics?a=b HTTP/1.0\n\n", "HTTP/1.1 200 OK\r\n"),
            ("GET /other HTTP/1.1\r\n\r\n", "HTTP/1.1 404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405"),
            ("GET /metrics\r\n\r\n", "HTTP/1.1 400"),
            ("GET / SMTP a\r\n\r\n", "HTTP/1.1 400"),
            ("\r\n\r\n", "HTTP/1.1 400"),
        ];
        for (request, start) in cases {
            assert!(answered(request).is_some_and(|text| text.starts_with(start)), "{request:?}");
        }
        let text = answered("GET /metrics HTTP/1.1\r\n\r\n").unwrap_or_default();
        assert!(
            text.contains(&format!("Content-Type: {CONTENT_TYPE}\r\nContent-Length: 6\r\n"))
                && text.ends_with("# EOF\n")
        );
        let head = answered("HEAD /metrics HTTP/1.1\r\n\r\n").unwrap_or_default();
        assert!(head.contains("Content-Length: 6") && head.ends_with("\r\n\r\n"));
    }

    #[test]
    fn what_is_not_whole_waits_and_what_is_too_long_does_not() {
        assert_eq!(answered("GET /metrics HTTP/1.1\r\n"), None);
        assert!(answered(&"x".repeat(LONGEST_HEAD + 1)).is_some_and(|text| text.starts_with("HTTP/1.1 431")));
    }
}
