//! What a watch of a run sees.

use std::convert::Infallible;

use quell_recording::mpi::{BLOCKING, Operation, Region, UNKNOWN, What};

use super::archives::Made;
use super::both::{free, posted, received, run, send};
use super::goals::{finish, made};
use crate::track::{Ended, Given, RegionExit, Watch, goal, track, track_again};

/// A call: its location, region, times, cause, and for the lane of all noise what it had before and after, amplified and absorbed.
type Call = (u32, u32, [i64; 2], Option<(u32, i64)>, [i64; 4]);

#[derive(Default)]
struct Seen {
    calls: Vec<Call>,
    regions: Vec<RegionExit>,
    events: Vec<u64>,
}

impl Watch for Seen {
    fn wanted(&self) -> bool {
        true
    }

    fn ended(&mut self, call: &Ended<'_>) {
        let noise = [call.before_ns, call.after_ns, call.amplified_ns, call.absorbed_ns].map(|ns| ns[0]);
        self.calls.push((call.location, call.region, [call.entered_ns, call.left_ns], call.cause, noise));
    }

    fn stayed(&mut self, region: &RegionExit) {
        self.regions.push(*region);
    }

    fn progress(&mut self, events: u64) {
        self.events.push(events);
    }
}

fn watch(made: &Made) -> Seen {
    let given = Given::default();
    let Ok(reading) = track(|| Ok::<_, Infallible>(made.clone()), &given, &mut ());
    let mut seen = Seen::default();
    track_again(&mut made.clone(), &given, reading.learned, &mut seen);
    seen
}

#[test]
fn a_call_tells_what_it_waited_for_and_what_that_did() {
    // The example of Nataraj et al. 2007, Fig. 2b.
    let mut made = Made::new(2, &["tick"]);
    made.noise(0, 1990, 30).sends(0, [1990, 1991], 1, 0);
    made.noise(1, 1000, 100).receives(1, [1000, 2000], 0, 0);
    let seen = watch(&made);
    assert_eq!(
        seen.calls,
        [(0, 1, [1990, 1991], None, [30, 30, 0, 0]), (1, 2, [1000, 2000], Some((0, 1990)), [100, 30, 0, 70]),]
    );
}

#[test]
fn the_last_to_enter_a_collective_has_no_cause() {
    let mut made = Made::new(2, &["tick"]);
    made.collective(0, [100, 230], Operation::Barrier, UNKNOWN);
    made.noise(1, 200, 60).collective(1, [200, 230], Operation::Barrier, UNKNOWN);
    let mut calls = watch(&made).calls;
    calls.sort_by_key(|call| call.0);
    assert_eq!(
        calls,
        [(0, 3, [100, 230], Some((1, 200)), [0, 60, 60, 0]), (1, 3, [200, 230], None, [60, 60, 0, 0])]
    );
}

#[test]
fn a_region_around_one_communication_alone_is_the_call() {
    let mut run = run(2);
    let wrapper = run.definitions.regions.len() as u32;
    run.definitions.regions.push(Region { name: "my receive".to_owned(), ..Region::default() });
    run.noise(0, 1000, 300).at(0, 1000, What::Enter(1)).at(0, 1000, send(1, 0)).at(0, 1000, What::Leave(1));
    run.at(1, 100, What::Enter(wrapper)).at(1, 1000, received(0, 0, BLOCKING)).at(
        1,
        1000,
        What::Leave(wrapper),
    );
    run.at(1, 1000, What::Leave(0));
    let seen = watch(&run);
    let receive = (1, wrapper, [100, 1000], Some((0, 1000)), [0, 300, 300, 0]);
    assert!(seen.calls.contains(&receive), "{:?}", seen.calls);
    let main = |location, left_ns| RegionExit { location, region: 0, entered_ns: 0, left_ns };
    let of = |location| seen.regions.iter().filter(move |exit| exit.location == location).collect::<Vec<_>>();
    assert_eq!((of(0), of(1)), (vec![&main(0, 1000)], vec![&main(1, 1000)]));
    let compensated: Vec<i64> = run.clone().track().ranks.iter().map(|rank| rank.compensated_ns).collect();
    assert_eq!(compensated, [700, 700]);
    assert_eq!(finish(&made(&mut run, None).unwrap().schedule, free()), [700, 700]);
}

#[test]
fn inner_regions_are_seen_first_and_calls_are_no_regions() {
    let mut made = Made::new(1, &["tick"]);
    let inner = made.definitions.regions.len() as u32;
    made.definitions.regions.push(Region { name: "inner".to_owned(), ..Region::default() });
    made.at(0, 0, What::Enter(0)).at(0, 10, What::Enter(inner)).at(0, 20, What::Enter(3));
    made.at(0, 30, What::Leave(3)).at(0, 40, What::Leave(inner)).at(0, 50, What::Leave(0));
    let exits: Vec<_> =
        watch(&made).regions.iter().map(|exit| (exit.region, exit.entered_ns, exit.left_ns)).collect();
    assert_eq!(exits, [(inner, 10, 40), (0, 0, 50)]);
}

#[test]
fn progress_rises_to_the_number_of_events_without_noise() {
    let mut made = Made::new(2, &["tick"]);
    for at in 0..50 {
        made.noise(0, 10 * at, at).at(0, 10 * at, What::Enter(0)).at(0, 10 * at + 5, What::Leave(0));
        made.at(1, 10 * at, What::Enter(0)).at(1, 10 * at + 5, What::Leave(0));
    }
    let mut of_goal = Vec::new();
    goal(&mut made.clone(), None, &quell_sim::loggops::Network::default().into(), &mut |events| {
        of_goal.push(events);
    })
    .unwrap();
    for events in [watch(&made).events, of_goal] {
        assert!(events.is_sorted_by(|one, next| one < next), "{events:?}");
        assert_eq!(events.last(), Some(&200));
        assert!(events.len() > 10);
    }
}

#[test]
fn each_posted_receive_has_its_own_end() {
    // Of three receives on one channel the last that was posted ends first: with the third message.
    let mut run = run(2);
    run.calls(0, 1000, "MPI_Send", &[send(1, 0)]).calls(0, 2000, "MPI_Send", &[send(1, 0)]);
    run.noise(0, 3000, 500).calls(0, 3000, "MPI_Send", &[send(1, 0)]);
    for (from, request) in [(UNKNOWN, 1), (UNKNOWN, 2), (0, 3)] {
        run.calls(1, 0, "MPI_Irecv", &[posted(from, 0, request)]);
    }
    run.waits(1, [0, 3000], "MPI_Wait", &[received(0, 0, 3)]);
    for request in [2, 1] {
        run.calls(1, 3000, "MPI_Wait", &[received(0, 0, request)]);
    }
    let tracked = run.clone().track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    let compensated: Vec<i64> = tracked.ranks.iter().map(|rank| rank.compensated_ns).collect();
    assert_eq!(compensated, [2500, 2500]);
    assert_eq!(finish(&made(&mut run, None).unwrap().schedule, free()), [2500, 2500]);
}

#[test]
fn a_region_that_ends_around_an_open_call_is_seen_and_the_call_is_not() {
    let mut made = Made::new(1, &["tick"]);
    made.at(0, 0, What::Enter(0)).at(0, 10, What::Enter(3)).at(0, 40, What::Leave(0));
    let exits: Vec<_> =
        watch(&made).regions.iter().map(|exit| (exit.region, exit.entered_ns, exit.left_ns)).collect();
    assert_eq!(exits, [(0, 0, 40)]);
}
