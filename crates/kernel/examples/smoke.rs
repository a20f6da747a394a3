use quell_kernel::*;
use quell_recording::Cpu;
use std::collections::BTreeMap;
fn main() {
    let follow = std::env::args().nth(1).is_some();
    let t0 = std::time::Instant::now();
    let mut r = match Recorder::start(Plan { cpus: vec![Cpu(1)], follow }) {
        Ok(r) => r,
        Err(e) => {
            println!("{e}");
            return;
        }
    };
    println!("started in {:?} {:?}", t0.elapsed(), r.facts());
    let _c = count_cost().unwrap();
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    r.set_zero(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64);
    let mut child = None;
    if follow {
        let cmd: Vec<String> = std::env::args().skip(1).collect();
        r.container().unwrap().serve().unwrap();
        let c = std::process::Command::new("sh")
            .args(["-c", &format!("sleep 0.3; {}", cmd.join(" "))])
            .spawn()
            .unwrap();
        r.follow(c.id()).unwrap();
        child = Some(c);
    }
    let (mut i, mut th) = (vec![], vec![]);
    for _ in 0..30 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        r.drain(&mut i, &mut th);
    }
    if let Some(mut c) = child {
        println!("living {:?}", r.living(0).len());
        c.kill();
    }
    let mut m: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    for (_, x) in &i {
        let e = m
            .entry(format!(
                "{} [{}] <{}> v{}",
                x.source,
                x.detail.as_deref().unwrap_or(""),
                x.cause.as_deref().unwrap_or(""),
                x.victim
            ))
            .or_default();
        e.0 += 1;
        e.1 += x.net.as_nanos();
        e.2 += x.duration.as_nanos();
    }
    for (k, v) in m {
        println!("{k:60} {:6} {:10} {:10} mean {}", v.0, v.1, v.2, v.1 / v.0);
    }
    for (c, t) in th.iter().take(30) {
        println!("{c} {t:?}");
    }
    println!("lost {}", r.lost());
    let (mut a, mut b) = (0, 0);
    for c in r.cost() {
        println!("{:24} {:8} {:5} ns", c.name, c.runs, c.ns / c.runs);
        a += c.runs;
        b += c.ns;
    }
    println!("mean {} ns over {a}", b / a.max(1));
}
