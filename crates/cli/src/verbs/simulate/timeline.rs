//! `quell simulate --timeline`: draws what some of the ranks did, for Perfetto.
//!
//! The program is simulated a second time for this, on one thread: which rank finishes last is known only after the first run, and the
//! result need not wait for the drawing.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::ops::ControlFlow;

use quell_recording::Nanos;
use quell_recording::formats::perfetto::{self, Label, Track};
use quell_request::simulate::network;
use quell_request::simulate::noise::rules;
use quell_sim::loggops::{self, Activity, Noise, Program, Rules, Run, Shape, Slice, Timeline};

use crate::args::Simulate;
use crate::printer::Printer;
use crate::progress::Step;
use quell_request::Usage;

/// Number of ranks to draw, evenly spread; with the last to finish there can be one more.
const MOST_RANKS: u32 = 64;
/// Maximum number of slices to draw, more than a browser shows with ease.
const MOST_SLICES: usize = 2_000_000;

/// Refuses, before the simulation, what cannot be drawn.
pub fn refuse(args: &Simulate) -> anyhow::Result<()> {
    let Some(output) = &args.timeline else { return Ok(()) };
    if rules(&args.options) == Rules::Compatible {
        let text =
            "a timeline needs the physical rules, and --compat uses LogGOPSim's: leave one of them out";
        return Err(Usage(text.into()).into());
    }
    if output.exists() {
        anyhow::bail!("{} exists already: choose another name, or remove it first", output.display());
    }
    Ok(())
}

/// Draws the run, if requested. `last` is the rank that finished last.
pub fn draw<P: Program>(
    program: &P,
    noise: &Noise,
    args: &Simulate,
    (name, last): (&str, u32),
    printer: Printer,
) -> anyhow::Result<()> {
    let Some(output) = &args.timeline else { return Ok(()) };
    let mut timeline = Timeline::new(Timeline::sample(program.ranks(), MOST_RANKS, &[last]), MOST_SLICES);
    {
        let events = program.totals().map(|(operations, sends)| operations.saturating_add(sends));
        let step = Step::long(printer, "timeline", events);
        let progress = |done| {
            step.reach(done);
            ControlFlow::Continue(())
        };
        let net = network(&args.options)?;
        let run = Run {
            net: net.network,
            ranges: &net.ranges,
            levels: &net.levels,
            rules: rules(&args.options),
            noise,
            threads: 1,
            progress: &progress,
        };
        loggops::run_for_timeline(program, &run, &mut timeline)?;
    }
    let drawing = Drawing::new(program, &timeline);
    quell_recording::write_output(output, |out| drawing.write(name, out))?;
    printer.status(&format!(
        "{} holds {}; open it at https://ui.perfetto.dev",
        output.display(),
        drawing.extent()
    ));
    if timeline.dropped() > 0 {
        printer.warn(&drawing.cut());
    }
    Ok(())
}

/// A timeline, and what its slices refer to.
struct Drawing<'a> {
    timeline: &'a Timeline,
    shapes: &'a [Shape],
    /// Number of ranks of the program.
    ranks: u32,
    cpus: u32,
    /// The numbers of the arrows, by message.
    arrows: HashMap<Message, u64>,
}

/// Identifies a message: the sender, the index of the send operation, and its time.
type Message = (u32, u32, u64);

impl<'a> Drawing<'a> {
    fn new<P: Program>(program: &'a P, timeline: &'a Timeline) -> Self {
        let (shapes, ranks, cpus) = (program.shapes(), program.ranks(), program.cpus());
        Self { timeline, shapes, ranks, cpus, arrows: arrows(timeline.slices()) }
    }

    /// A description of what is drawn.
    fn extent(&self) -> String {
        let (drawn, slices) = (self.timeline.ranks().len(), self.timeline.slices().len());
        let sample =
            if drawn < self.ranks as usize { ", evenly spread, the last to finish among them" } else { "" };
        format!(
            "{drawn} of {} ranks{sample}: {slices} slices, {} messages between them",
            self.ranks,
            self.arrows.len()
        )
    }

    /// A description of what is missing at the end.
    fn cut(&self) -> String {
        let end = self.timeline.slices().iter().map(|slice| slice.end).max().unwrap_or(0);
        format!(
            "a timeline holds at most {MOST_SLICES} slices: it ends at about {}, and {} later ones of its ranks are left out",
            Nanos::from_nanos(end),
            self.timeline.dropped()
        )
    }

    /// A description of the drawing and its limits.
    fn description(&self) -> String {
        let mut text = format!(
            "Simulated by quell {} under the physical rules. {}. Noise is drawn at the end of the operation \
             that it lengthened: the positions of its detours are not kept.",
            env!("CARGO_PKG_VERSION"),
            self.extent()
        );
        if self.timeline.dropped() > 0 {
            text += &format!(" Not all: {}.", self.cut());
        }
        text
    }

    fn write(&self, name: &str, out: &mut dyn Write) -> io::Result<()> {
        let mut to = perfetto::Timeline::start(out, &format!("quell simulate: {name}"), &self.description())?;
        let tracks = self.tracks(&mut to)?;
        for slice in self.timeline.slices() {
            if let Some(track) = tracks.get(&(slice.rank, slice.cpu)) {
                self.slice(&mut to, *track, slice)?;
            }
        }
        Ok(())
    }

    /// A track for each rank; if ranks have several CPUs, a track below it for each CPU that did something.
    fn tracks(&self, to: &mut perfetto::Timeline<'_>) -> io::Result<BTreeMap<(u32, u8), Track>> {
        let mut cpus: BTreeMap<u32, [bool; 256]> = BTreeMap::new();
        for slice in self.timeline.slices() {
            cpus.entry(slice.rank).or_insert([false; 256])[usize::from(slice.cpu)] = true;
        }
        let mut tracks = BTreeMap::new();
        for &rank in self.timeline.ranks() {
            let whole = to.track(None, &format!("rank {rank}"))?;
            let Some(used) = cpus.get(&rank) else { continue };
            for cpu in (0..=u8::MAX).filter(|cpu| used[usize::from(*cpu)]) {
                let track = if self.cpus > 1 { to.track(Some(whole), &format!("CPU {cpu}"))? } else { whole };
                tracks.insert((rank, cpu), track);
            }
        }
        Ok(tracks)
    }

    fn slice(&self, to: &mut perfetto::Timeline<'_>, track: Track, slice: &Slice) -> io::Result<()> {
        let arrow = |message| self.arrows.get(&message).copied();
        let (name, category, arrow_from, arrow_to) = match slice.activity {
            Activity::Send { to, sent, .. } => {
                (format!("send → {to}"), "send", arrow((slice.rank, slice.op, sent)), None)
            }
            Activity::Receive { from, sent } => {
                (format!("receive ← {from}"), "receive", None, arrow((from, slice.op, sent)))
            }
            Activity::Work => ("work".to_owned(), "work", None, None),
        };
        let shape = self.shapes.get(slice.shape as usize).filter(|_| slice.activity != Activity::Work);
        let about = shape.map(|shape| [("bytes", shape.size), ("tag", shape.tag.into())]);
        let notes = about.as_ref().map_or(&[][..], |about| about);
        let (start, end) = (Nanos::from_nanos(slice.start), Nanos::from_nanos(slice.end));
        to.begin(
            track,
            start,
            &Label { name: &name, category, notes, arrows_from: arrow_from.as_slice(), arrow_to },
        )?;
        if slice.noise > 0 {
            let struck = Nanos::from_nanos(slice.end.saturating_sub(slice.noise).max(slice.start));
            to.begin(track, struck, &Label { name: "noise", category: "noise", ..Label::default() })?;
            to.end(track, end)?;
        }
        to.end(track, end)
    }
}

/// An arrow, numbered from 1, for each message of which both ends are drawn.
fn arrows(slices: &[Slice]) -> HashMap<Message, u64> {
    let mut arrows = HashMap::new();
    let mut count = 0;
    for slice in slices {
        match slice.activity {
            Activity::Send { sent, .. } => {
                arrows.insert((slice.rank, slice.op, sent), 0);
            }
            Activity::Receive { from, sent } => {
                // The slice of a send precedes that of its message.
                if let Some(arrow) = arrows.get_mut(&(from, slice.op, sent)) {
                    count += 1;
                    *arrow = count;
                }
            }
            Activity::Work => {}
        }
    }
    arrows.retain(|_, arrow| *arrow > 0);
    arrows
}
