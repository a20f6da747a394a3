//! Probes of messages. All times in ns.

use quell_recording::mpi::{BLOCKING, Comm, Operation, UNKNOWN, What};

use super::both::{received, run, send};
use super::waits::{accumulated, compensated};

#[test]
fn a_probe_waits_as_a_receive_does() {
    let mut run = run(2);
    run.noise(0, 1000, 300).calls(0, 1000, "MPI_Send", &[send(1, 0)]);
    run.waits(1, [100, 1010], "MPI_Probe", &[What::Probed { comm: 0, from: 0, tag: 0 }]);
    run.calls(1, 1010, "MPI_Recv", &[received(0, 0, BLOCKING)]);
    let tracked = run.track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    assert_eq!(compensated(&tracked), [700, 710]);
}

/// Rank 0 cannot go on before rank 2 has left their barrier, at 3000, so rank 1 comes to its probe first.
#[test]
fn a_probe_waits_for_a_send_that_is_read_later() {
    let mut run = run(3);
    run.definitions.comms.push(Comm { name: "even".to_owned(), members: vec![0, 2], remote: None });
    let over = What::Collective {
        operation: Operation::Barrier,
        comm: 1,
        root: UNKNOWN,
        sent: 0,
        received: 0,
        request: BLOCKING,
    };
    run.waits(0, [10, 100], "MPI_Barrier", &[over]).waits(2, [10, 3000], "MPI_Barrier", &[over]);
    run.noise(0, 1000, 500).calls(0, 1000, "MPI_Send", &[send(1, 0)]);
    run.waits(1, [200, 1010], "MPI_Probe", &[What::Probed { comm: 0, from: 0, tag: 0 }]);
    run.waits(1, [1020, 1030], "MPI_Recv", &[received(0, 0, BLOCKING)]);
    let tracked = run.track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    assert_eq!(accumulated(&tracked)[1], 500);
}

/// A probe of a message that is missing needs no warning of its own.
#[test]
fn a_message_that_is_missing_is_reported_once() {
    let mut run = run(2);
    run.waits(1, [200, 1010], "MPI_Probe", &[What::Probed { comm: 0, from: 0, tag: 0 }]);
    run.waits(1, [1020, 1030], "MPI_Recv", &[received(0, 0, BLOCKING)]);
    let tracked = run.track();
    assert_eq!(tracked.findings.receives_without_send, 1);
    assert_eq!(accumulated(&tracked)[1], 0);
}
