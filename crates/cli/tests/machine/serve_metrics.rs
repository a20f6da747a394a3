//! `serve-metrics` on the kernel that runs these tests, with requests as from Prometheus, and with hostile ones.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::node::{self, Offline, last_cpu};
use crate::support::tools::{has_two_cpus, is_root};
use crate::support::{Guard, quell, run};
use quell_testing::{machine, skip};

/// Starts the server; returns it and its address, or reports the skipped test if this user may not record the kernel.
fn served(more: &[&str]) -> Option<(Guard, String)> {
    let interval: &[&str] = if more.contains(&"--interval") { &[] } else { &["--interval", "200ms"] };
    let args = [&["serve-metrics", "--listen", "127.0.0.1:0"], interval, more].concat();
    let child =
        quell(Path::new("/")).args(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut child = Guard(child);
    let mut printed = String::new();
    for line in BufReader::new(child.0.stderr.take().unwrap()).lines().map(Result::unwrap) {
        if let Some((_, address)) = line.split_once("http://") {
            return Some((child, address.strip_suffix("/metrics").unwrap().to_owned()));
        }
        printed += &line;
    }
    // SAFETY: the call has no conditions.
    let must = unsafe { libc::geteuid() } == 0 && Path::new("/sys/kernel/btf/vmlinux").exists();
    assert!(!must, "{printed}");
    skip(printed);
    None
}

fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn metrics(address: &str) -> String {
    let answer = ask(address, "GET /metrics HTTP/1.1\r\nHost: quell\r\n\r\n");
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let kind = "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.lines().any(|line| line == kind), "{head}");
    assert!(text.ends_with("# EOF\n"));
    text.to_owned()
}

fn samples(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let of = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    let all: Vec<(String, f64)> = lines.map(of).collect();
    let count = all.len();
    let all: BTreeMap<String, f64> = all.into_iter().collect();
    assert_eq!(all.len(), count, "a series appears twice");
    all
}

/// Requests the page until all expected metrics are present.
fn until(address: &str, wanted: impl Fn(&BTreeMap<String, f64>) -> bool) -> String {
    let start = Instant::now();
    loop {
        let text = metrics(address);
        if wanted(&samples(&text)) {
            return text;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{text}");
    }
}

fn end(mut child: Guard, signal: i32) {
    // SAFETY: the child has not been waited for, so the id is its own.
    unsafe { libc::kill(child.0.id() as i32, signal) };
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
}

#[test]
fn counters_come_and_never_go_down() {
    let _machine = machine();
    let Some((child, address)) = served(&["--cpus", "0"]) else { return };
    let tick = r#"quell_noise_seconds_total{cpu="0",source="tick"}"#;
    let observed = r#"quell_observed_seconds_total{cpu="0"}"#;
    let first =
        samples(&until(&address, |all| all.get(tick).is_some_and(|ns| *ns > 0.0) && all[observed] > 0.3));
    let text = until(&address, |all| all[observed] > first[observed] + 0.3);
    let second = samples(&text);
    for (name, value) in &first {
        assert!(second.get(name).is_some_and(|now| now >= value), "{name} {value} {:?}", second.get(name));
    }
    assert!(second[tick] < second[observed], "{text}");
    let buckets = second.keys().filter(|name| name.contains(r#"_bucket{kind="tick""#)).count();
    assert_eq!(buckets, 20, "{text}");
    parsed_by_prometheus(&text);
    end(child, libc::SIGTERM);
}

/// How often a process's first thread has been given a CPU.
fn turns(child: &Guard) -> u64 {
    let id = child.0.id();
    let text = fs_err::read_to_string(format!("/proc/{id}/task/{id}/schedstat")).unwrap_or_default();
    text.split_whitespace().nth(2).and_then(|turns| turns.parse().ok()).unwrap_or(0)
}

#[test]
fn a_cpu_that_was_offline_within_an_interval_was_not_observed_then() {
    if !has_two_cpus() || !is_root() {
        return;
    }
    let _machine = machine();
    let cpu = last_cpu();
    let Some((child, address)) = served(&["--cpus", &format!("0,{cpu}"), "--interval", "2s"]) else { return };
    let observed =
        |all: &BTreeMap<String, f64>, cpu| all[&format!("quell_observed_seconds_total{{cpu=\"{cpu}\"}}")];
    let Some(offline) = Offline::make(cpu) else {
        return quell_testing::skip_for_hardware("the CPU cannot go offline");
    };
    let (before, off_ns) = (turns(&child), node::monotonic_ns());
    node::until("a look at the CPUs", || turns(&child) > before + 10);
    let off_ns = node::monotonic_ns() - off_ns;
    offline.end();
    let now = samples(&metrics(&address));
    let is_over =
        |all: &BTreeMap<String, f64>| observed(all, 0) > observed(&now, 0) && observed(all, cpu) > 0.0;
    let all = samples(&until(&address, is_over));
    assert!(observed(&all, cpu) <= observed(&all, 0) - 0.99 * off_ns as f64 / 1e9, "{off_ns} {all:?}");
    end(child, libc::SIGTERM);
}

/// Checks the text with the parser of the format's authors.
fn parsed_by_prometheus(text: &str) {
    let script = "import sys\nfrom prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n\
        for f in parse(sys.stdin.read()):\n  print(f.name, f.type, f.unit, len(f.samples))";
    // The folder where `./x test` installs the Python packages of tests.
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.x/venv/bin/python");
    let program = if venv.exists() { venv } else { "python3".into() };
    let mut python = Command::new(program);
    python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = python.spawn() else { return skip("there is no Python") };
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    if printed.contains("ModuleNotFoundError") {
        return skip("Python has no module prometheus_client");
    }
    assert!(output.status.success(), "{printed}\n{text}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("quell_noise_seconds counter seconds"), "{printed}");
    assert!(printed.contains("quell_noise_duration_seconds histogram seconds"), "{printed}");
}

#[test]
fn silent_slow_and_wrong_clients_do_not_keep_others_waiting() {
    let _machine = machine();
    let Some((child, address)) = served(&["--cpus", "0"]) else { return };
    let mut silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&address).unwrap()).collect();
    for (at, stream) in silent.iter_mut().enumerate() {
        // The server has already dropped some of these connections, to make room for new ones.
        let _ = stream.write_all(if at % 2 == 0 { b"GET /metr" } else { &[b'x'; 9_000] });
    }
    assert!(samples(&metrics(&address)).contains_key(r#"quell_lost_events_total{table="intervals"}"#));
    for (request, status) in [
        ("PUT /metrics HTTP/1.1\r\n\r\n", "405"),
        ("GET /x HTTP/1.1\r\n\r\n", "404"),
        ("\0\u{ff}\n\n", "400"),
    ] {
        assert!(ask(&address, request).starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}");
    }
    // Clients that do not read are dropped, too.
    for stream in &mut silent {
        let _ = stream.write_all(b"ics HTTP/1.1\r\n\r\n");
    }
    metrics(&address);
    drop(silent);
    end(child, libc::SIGINT);
}

#[test]
fn a_probe_adds_detours() {
    let _machine = machine();
    let Some((child, address)) = served(&["--cpus", "0", "--probe"]) else { return };
    let text =
        until(&address, |all| all.get(r#"quell_detours_total{cpu="0"}"#).is_some_and(|count| *count > 0.0));
    assert!(text.contains(r#"_bucket{kind="detour",le="1e-06"}"#), "{text}");
    parsed_by_prometheus(&text);
    end(child, libc::SIGTERM);
}

#[test]
fn what_cannot_be_served_is_refused() {
    let _machine = machine();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let cases: [(&[&str], i32, &str); 4] = [
        (&["--listen", &address], 1, "cannot listen on 127.0.0.1:"),
        (&["--listen", "somewhere"], 2, "--listen"),
        (&["--interval", "1ms"], 2, "--interval 1ms is out of range"),
        (&["--cpus", "9999"], 2, "9999"),
    ];
    for (more, code, says) in cases {
        let output = run(Path::new("/"), &[&["serve-metrics"], more].concat());
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{printed}");
        assert!(printed.contains(says), "{printed}");
    }
    // SAFETY: the call has no conditions.
    if unsafe { libc::geteuid() } != 0 {
        return skip("only root can become a user without privileges");
    }
    let output =
        quell(Path::new("/")).args(["serve-metrics", "--listen", "127.0.0.1:0"]).uid(65_534).output();
    let Ok(output) = output else {
        return skip("others may not run the program from here");
    };
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("CAP_BPF") || printed.contains("root"), "{printed}");
}
