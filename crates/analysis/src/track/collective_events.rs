//! Collectives of a location: when its part begins, and when it is complete.

use quell_recording::mpi::Run;

use super::Watch;
use super::collectives::{CollectiveId, Part};
use super::engine::Engine;
use super::event_reader::{CollectiveEnd, CollectivePart, OperationId};
use super::place::Request;

impl<R: Run + ?Sized, W: Watch + ?Sized> Engine<'_, R, W> {
    pub(super) fn begin_collective(&mut self, location: u32) {
        let place = &mut self.places[location as usize];
        if let Some(call) = &mut place.call {
            call.begun = Some(place.now);
        }
    }

    pub(super) fn post_collective(
        &mut self,
        location: u32,
        operation: OperationId,
        part: Option<CollectivePart>,
    ) {
        let place = &self.places[location as usize];
        let (now, accumulated) = (place.now, place.ledger.accumulated.clone());
        // The operation is only known from an end; the first end defines it for all.
        let request = match part {
            Some(part) => {
                let (id, part) = self.enter_collective(location, part, None, now, &accumulated);
                Request::Entered(id, part)
            }
            None => Request::Begun(now, accumulated),
        };
        self.requests.insert(operation, request);
    }

    pub(super) fn collective(
        &mut self,
        location: u32,
        operation: Option<OperationId>,
        part: Option<CollectivePart>,
        ends: &CollectiveEnd,
    ) {
        let posted = operation.and_then(|operation| self.requests.remove(&operation));
        let place = &mut self.places[location as usize];
        let Some(call) = &mut place.call else { return };
        let blocking_since = call.begun.take().unwrap_or(call.entered);
        let (id, place_in_it, blocking) = match (posted, part) {
            (Some(Request::Entered(id, place_in_it)), _) => {
                self.collectives.name(id, ends);
                (id, place_in_it, false)
            }
            (_, None) => return,
            (Some(Request::Begun(at, accumulated)), Some(part)) => {
                let (id, place_in_it) = self.enter_collective(location, part, Some(ends), at, &accumulated);
                (id, place_in_it, false)
            }
            (_, Some(part)) => {
                let accumulated = place.ledger.accumulated.clone();
                let (id, place_in_it) =
                    self.enter_collective(location, part, Some(ends), blocking_since, &accumulated);
                (id, place_in_it, true)
            }
        };
        if let Some(call) = &mut self.places[location as usize].call {
            if blocking {
                call.blocking = Some((id, place_in_it));
            } else {
                call.collectives.push((id, place_in_it));
            }
        }
        self.collectives.carries(id, place_in_it, ends.sent.max(ends.received));
    }

    /// The location enters a collective; returns the collective and the index of its part.
    fn enter_collective(
        &mut self,
        location: u32,
        part: CollectivePart,
        ends: Option<&CollectiveEnd>,
        entered: i64,
        accumulated: &[i64],
    ) -> (CollectiveId, usize) {
        let expected = self.expected.get(part.comm as usize).copied().unwrap_or(0);
        let key = (part.comm, part.number);
        let part = Part { location, place: part.place, entered, left: None, bytes: 0 };
        let (id, part, waiting) = self.collectives.enter(key, expected, part, ends, accumulated);
        for location in waiting {
            self.wake(Some(location));
        }
        (id, part)
    }
}
