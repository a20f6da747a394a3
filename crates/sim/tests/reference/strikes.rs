//! Noise as a plain list, searched from its beginning for each piece of work.

use quell_sim::loggops::{Noise, WindowNoise};

/// (start, duration) of detours in nanoseconds, ordered by start.
pub type Detours = Vec<(u64, u64)>;

/// The noise of all ranks.
#[derive(Clone, Debug)]
pub struct Strikes {
    /// Detours, and the period with which they repeat on a progress clock.
    pub traces: Vec<(Detours, u64)>,
    /// For each rank its trace, and where in it the rank begins. LogGOPSim's rule uses only the first trace.
    pub places: Vec<(usize, u64)>,
}

impl Strikes {
    /// The delay of an operation of `length` under LogGOPSim's rule.
    pub fn window_delay(&self, rank: u32, t: u64, length: u64) -> u64 {
        let detours = &self.traces[0].0;
        let back = detours.last().unwrap().0;
        let x = t.wrapping_add(self.places[rank as usize].1) % (back - length);
        // The last detour that has begun; the first one counts as begun, and never strikes before it has.
        let begun = detours.iter().rposition(|detour| detour.0 <= x).filter(|_| x > detours[0].0);
        let rest = begun.map_or(0, |n| (detours[n].0 + detours[n].1).saturating_sub(x));
        let behind = &detours[begun.unwrap_or(0) + 1..];
        let inside: u64 =
            behind.iter().take_while(|detour| detour.0 < x + length).map(|detour| detour.1).sum();
        rest + inside
    }

    /// When `work` begun at `t` ends on the rank's progress clock.
    pub fn end_of_work(&self, rank: u32, t: u64, work: u64) -> u64 {
        let (trace, offset) = self.places[rank as usize];
        let (detours, period) = &self.traces[trace];
        let (mut now, mut left) = (t, work);
        while left > 0 {
            let place = (now + offset) % period;
            let ends = detours.iter().filter(|d| d.0 <= place && place < d.0 + d.1).map(|d| d.0 + d.1);
            if let Some(end) = ends.max() {
                now += end.min(*period) - place;
                continue;
            }
            let starts = detours.iter().filter(|d| d.1 > 0 && d.0 > place).map(|d| d.0);
            let useful = left.min(starts.min().unwrap_or(*period).min(*period) - place);
            now += useful;
            left -= useful;
        }
        now
    }

    /// The same noise for the engine, under LogGOPSim's rule.
    pub fn window_noise(&self) -> Noise {
        let offsets = self.places.iter().map(|place| place.1).collect();
        Noise::Window(WindowNoise::new(&self.traces[0].0, offsets).unwrap())
    }
}
