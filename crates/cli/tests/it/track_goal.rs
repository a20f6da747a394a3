//! `quell track --goal`: schedules of archives, and the messages about them.

use std::path::Path;

use crate::support;
use crate::support::{run, transcript};
use quell_otf2::Writer;
use quell_recording::mpi::{BLOCKING, Comm, Definitions, Event, Location, Operation, Region, UNKNOWN, What};

/// An archive of a ring with an all-reduce after each of two rounds: 1 ms of work, of which 0.1 ms is noise. `odd` receives before it sends.
fn archive(folder: &Path, ranks: u32, odd: Option<u32>) {
    let region = |name: &str, mpi| Region { name: name.into(), site: None, mpi };
    let location = |rank| Location {
        id: u64::from(rank),
        name: format!("rank {rank}"),
        rank,
        thread: 0,
        host: "node".into(),
    };
    let definitions = Definitions {
        regions: vec![region("main", false), region("MPI_Sendrecv", true), region("MPI_Allreduce", true)],
        comms: vec![Comm { name: "MPI_COMM_WORLD".into(), members: (0..ranks).collect(), remote: None }],
        locations: (0..ranks).map(location).collect(),
        sources: vec!["tick".into()],
        span_ns: [0, 3_000_000],
    };
    let mut writer = Writer::create(folder, &definitions).unwrap();
    for rank in 0..ranks {
        let mut event = |time_ns, what| writer.event(rank as usize, Event { time_ns, what }).unwrap();
        event(0, What::Enter(0));
        for round in 1..=2 {
            let now = round * 1_000_000;
            event(now, What::Noise { source: 0, total_ns: round * 100_000 });
            event(now, What::Enter(1));
            let (to, from) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
            let send = What::Send { comm: 0, to, tag: 3, bytes: 8, request: BLOCKING };
            let receive = What::Recv { comm: 0, from, tag: 3, bytes: 8, request: BLOCKING };
            let both = if odd == Some(rank) { [receive, send] } else { [send, receive] };
            both.into_iter().for_each(|what| event(now, what));
            event(now, What::Leave(1));
            event(now, What::Enter(2));
            event(now, What::CollectiveBegin);
            let operation = Operation::Allreduce;
            let (root, request) = (UNKNOWN, BLOCKING);
            event(now, What::Collective { operation, comm: 0, root, sent: 8, received: 8, request });
            event(now, What::Leave(2));
        }
        event(3_000_000, What::Leave(0));
    }
    writer.finish().unwrap();
}

#[test]
fn an_archive_becomes_a_schedule_that_is_simulated() {
    let dir = tempfile::tempdir().unwrap();
    archive(&dir.path().join("run"), 4, None);
    let printed = transcript(dir.path(), &["track", "run", "--goal", "run.goal"]);
    assert!(
        printed.starts_with("exit 0") && printed.contains("next: quell simulate run.goal --noise"),
        "{printed}"
    );
    let text = fs_err::read_to_string(dir.path().join("run.goal")).unwrap();
    assert!(text.contains("calc 900000") && text.contains("send 8b to 1 tag 0"), "{text}");
    let check = run(dir.path(), &["goal", "check", "run.goal"]);
    assert!(check.status.success(), "{check:?}");
    for (file, ranks) in [("same.bin", "4"), ("more.bin", "1Ki")] {
        let printed = transcript(dir.path(), &["track", "run", "--goal", file, "--extrapolate", ranks]);
        assert!(printed.starts_with("exit 0") && printed.contains("messages on a 4 grid"), "{printed}");
        let simulated = support::json(dir.path(), &["simulate", file, "--json"]);
        assert!(simulated.is_object());
    }
}

#[test]
fn refusals_name_the_rank_and_the_file() {
    let dir = tempfile::tempdir().unwrap();
    archive(&dir.path().join("odd"), 4, Some(2));
    fs_err::write(dir.path().join("there.goal"), "").unwrap();
    let cases: [(&[&str], &str, &str); 4] = [
        (&["--goal", "run.txt"], "exit 2", "name it NAME.goal or NAME.bin"),
        (&["--goal", "there.goal"], "exit 1", "exists already"),
        (&["--goal", "big.goal", "--extrapolate", "64"], "exit 1", "rank 2, operation 1"),
        (&["--extrapolate", "64"], "exit 2", "--goal"),
    ];
    for (more, exit, words) in cases {
        let printed = transcript(dir.path(), &[&["track", "odd"], more].concat());
        assert!(printed.starts_with(exit) && printed.contains(words), "{printed}");
    }
    assert!(!dir.path().join("big.goal").exists());
}
