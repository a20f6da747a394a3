use super::*;

#[test]
fn a_phase_computes_and_then_waits() {
    let [start, compute, wait] = [1_000, 200, 30].map(Nanos::from_nanos);
    let phase = Phase { rank: 0, index: 0, start, work: 0, compute, wait };
    assert_eq!(
        [phase.total(), phase.computed(), phase.end()].map(Nanos::as_nanos),
        [200 + 30, 1_000 + 200, 1_000 + 200 + 30]
    );
}
