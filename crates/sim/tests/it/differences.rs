//! Plays the examples of `docs/reference/loggops.md` under all rules, and compares the results with the page.
//!
//! An example is a `goal` block and the next `text` block, whose lines are `net`, `noise` if there is any, `--compat`,
//! `physical`, and `call` if it differs from `physical`.

use std::path::Path;
use std::sync::Arc;

use quell_recording::{Cpu, Detour, Nanos, Span, Trace};
use quell_sim::ProgressClock;
use quell_sim::goal::{Findings, read_text};
use quell_sim::loggops::{Network, Noise, PerByte, Place, RankClocks, Rules, Run, WindowNoise, run};

/// Number of examples on the page.
const EXAMPLES: usize = 15;

struct Example {
    title: String,
    goal: String,
    facts: String,
}

impl Example {
    /// The rest of the line that begins with `name`.
    fn fact(&self, name: &str) -> Option<&str> {
        self.facts.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
    }

    fn net(&self) -> Network {
        let text = self.fact("net").unwrap();
        let value = |name: &str| {
            let field = text.split_whitespace().find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
            field.unwrap_or_else(|| panic!("{}: no {name}", self.title))
        };
        let whole = |name: &str| value(name).parse::<u64>().unwrap();
        let per_byte = |name: &str| {
            PerByte::from_femtoseconds((value(name).parse::<f64>().unwrap() * 1e6).round() as u64)
        };
        Network {
            latency: whole("L"),
            overhead: whole("o"),
            gap: whole("g"),
            gap_per_byte: per_byte("G"),
            overhead_per_byte: per_byte("O"),
            eager_limit: whole("S"),
        }
    }

    /// Noise in which both ranks begin at the same place in the same trace.
    fn noise(&self, rules: Rules) -> Noise {
        let Some(text) = self.fact("noise") else { return Noise::None };
        let (detours, offset) = text.split_once(" from ").unwrap();
        let offset = offset.parse().unwrap();
        let pair =
            |text: &str| text.split_once('+').map(|pair| (pair.0.parse().unwrap(), pair.1.parse().unwrap()));
        let detours: Vec<(u64, u64)> = detours.split_whitespace().map(|text| pair(text).unwrap()).collect();
        if rules == Rules::Compatible {
            return Noise::Window(WindowNoise::new(&detours, vec![offset; 2]).unwrap());
        }
        let end = detours.last().map(|last| Nanos::from_nanos(last.0 + last.1)).unwrap();
        let detour = |&(start, duration): &(u64, u64)| Detour {
            start: Nanos::from_nanos(start),
            duration: Nanos::from_nanos(duration),
            own: false,
        };
        let trace = Trace {
            cpu: Cpu(0),
            span: Span { start: Nanos::ZERO, end },
            detours: detours.iter().map(detour).collect(),
        };
        let clock = Arc::new(ProgressClock::new(&trace).unwrap());
        Noise::Clocks(RankClocks::new(vec![clock], vec![Place { clock: 0, offset }; 2]).unwrap())
    }

    /// Times of both ranks in the notation of the page, or `error`.
    fn play(&self, rules: Rules) -> String {
        let program = read_text(self.goal.as_bytes(), &mut Findings::default()).unwrap();
        let noise = self.noise(rules);
        let options = Run {
            net: self.net(),
            ranges: &[],
            levels: &[],
            rules,
            noise: &noise,
            threads: 1,
            progress: quell_sim::loggops::NO_PROGRESS,
        };
        match run(&program, &options) {
            Ok(outcome) if outcome.stuck.is_none() => {
                outcome.finish.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
            }
            _ => "error".to_owned(),
        }
    }
}

fn examples(page: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    for section in page.split("\n### ").skip(1) {
        let mut rest = section;
        while let Some((_, after)) = rest.split_once("```goal\n") {
            let (goal, after) = after.split_once("```").unwrap();
            let (_, after) = after.split_once("```text\n").unwrap();
            let (facts, after) = after.split_once("```").unwrap();
            let title = section.lines().next().unwrap().to_owned();
            examples.push(Example { title, goal: goal.to_owned(), facts: facts.to_owned() });
            rest = after;
        }
    }
    examples
}

#[test]
fn the_page_shows_what_both_rules_give() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/loggops.md");
    let examples = examples(&fs_err::read_to_string(page).unwrap());
    assert_eq!(examples.len(), EXAMPLES);
    for example in &examples {
        let names = [(Rules::Compatible, "--compat"), (Rules::Physical, "physical"), (Rules::Call, "call")];
        for (rules, name) in names {
            // Without a line of its own, progress in the call gives what the physical rules give.
            let fact = example.fact(name).or_else(|| example.fact("physical"));
            assert_eq!(Some(&*example.play(rules)), fact, "{}: {name}", example.title);
        }
    }
}
