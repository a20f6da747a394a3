//! What a location does together with others.

use quell_recording::mpi::{Operation, Run, UNKNOWN};

use super::Watch;
use super::collectives::{CollectiveId, Part};
use super::engine::Engine;
use super::place::Request;
use crate::warning::track::UndefinedName;

impl<R: Run + ?Sized, W: Watch + ?Sized> Engine<'_, R, W> {
    pub(super) fn post_collective(&mut self, location: u32, comm: u32, request: u64) {
        self.open_call(location);
        let place = &mut self.places[location as usize];
        let (now, accumulated) = (place.now, place.ledger.accumulated.clone());
        if comm == UNKNOWN {
            place.requests.insert(request, Request::Begun(now, accumulated));
            return;
        }
        // What it is comes with its end; the first to end says it for all.
        if let Some((id, part)) = self.enter_collective(location, None, (comm, UNKNOWN), now, &accumulated) {
            self.places[location as usize].requests.insert(request, Request::Entered(id, part));
        }
    }

    pub(super) fn collective(
        &mut self,
        location: u32,
        operation: Operation,
        (comm, root): (u32, u32),
        request: u64,
    ) {
        self.open_call(location);
        let known = self.take_request(location, request);
        let place = &mut self.places[location as usize];
        let Some(call) = &mut place.call else { return };
        call.found = true;
        let entered = call.begun.take().unwrap_or(call.entered);
        match known {
            Some(Request::Entered(id, part)) => {
                self.collectives.name(id, operation, root);
                self.completes(location, (id, part));
            }
            Some(Request::Begun(at, accumulated)) => {
                if let Some(met) =
                    self.enter_collective(location, Some(operation), (comm, root), at, &accumulated)
                {
                    self.completes(location, met);
                }
            }
            _ => {
                let accumulated = place.ledger.accumulated.clone();
                let met =
                    self.enter_collective(location, Some(operation), (comm, root), entered, &accumulated);
                if let Some(call) = &mut self.places[location as usize].call {
                    call.blocking = met;
                }
            }
        }
    }

    pub(super) fn completes(&mut self, location: u32, part: (CollectiveId, usize)) {
        if let Some(call) = &mut self.places[location as usize].call {
            call.collectives.push(part);
        }
    }

    pub(super) fn enter_collective(
        &mut self,
        location: u32,
        operation: Option<Operation>,
        (comm, root): (u32, u32),
        entered: i64,
        accumulated: &[i64],
    ) -> Option<(CollectiveId, usize)> {
        let rank = self.places[location as usize].rank;
        // Between two groups a root is a rank of the other one, or none: it tells nobody who waits for whom.
        let two = self.definitions.comms.get(comm as usize).is_some_and(|comm| comm.remote.is_some());
        let root = if two { UNKNOWN } else { root };
        let place = self.groups.get(comm as usize).and_then(|group| match &group.places {
            Some(places) => places.get(&rank).copied(),
            None => (self.definitions.comms[comm as usize].members.len() > rank as usize).then_some(rank),
        });
        let (Some(place), Some(group)) = (place, self.groups.get(comm as usize)) else {
            self.undefined(location, UndefinedName::Communicator);
            return None;
        };
        // Threads of a rank call collectives in one order.
        let number = self.numbers.entry((rank, comm)).or_default();
        *number += 1;
        let number = *number - 1;
        let part = Part { location, place, entered, left: None };
        let expected = group.expected;
        let (id, part, waiting) =
            self.collectives.enter((comm, number), (operation, expected), (part, root), accumulated);
        for location in waiting {
            self.wake(Some(location));
        }
        Some((id, part))
    }
}
