//! The screen at several sizes, and what keys do.

use insta::assert_snapshot;
use quell_analysis::live::{Frame, Gatherer, Overhead};
use quell_recording::{Cpu, Detour, Interval, Nanos, Source};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::display_state::Board;
use super::screen::{self, Palette};
use super::view::{Then, View};
use super::{block, summary};
use crate::args::SortBy;

/// A hostile process name: escape codes, line breaks, a change of writing direction, wide characters.
const HOSTILE: &str = "\u{1b}[2J\r\n\u{202e}日本";

fn ns(ns: u64) -> Nanos {
    Nanos::from_nanos(ns)
}

fn interval(source: Source, start: u64, duration: u64, detail: Option<&str>) -> Interval {
    let (start, duration) = (ns(start), ns(duration));
    let detail = detail.map(Into::into);
    Interval { start, duration, net: duration, source, pid: 7, victim: 0, detail, cause: None }
}

/// Two seconds of ticks, a hostile daemon on CPU 3, and unattributed time.
fn frames(cpus: &[Cpu], probed: bool, unknown: Option<String>) -> Vec<Frame> {
    let known = unknown.is_none();
    let mut gatherer = Gatherer::new(cpus, probed, unknown, 4_242);
    let second = |gatherer: &mut Gatherer, second: u64| {
        for &cpu in cpus {
            let (mut detours, mut intervals) = (Vec::new(), Vec::new());
            for i in 0..250 {
                let at = second * 1_000_000_000 + 1_000_000 + i * 3_900_000;
                detours.push((at, 6_000));
                intervals.push((cpu, interval(Source::Tick, at + 200, 5_000, Some("tick_nohz_handler"))));
                if cpu == Cpu(3) && i % 50 == 0 {
                    let length = 2_000_000 + i * 1_000 * (second + 1);
                    detours.push((at + 1_000_000, length));
                    let daemon = Source::Task(HOSTILE.into());
                    intervals
                        .push((cpu, interval(daemon, at + 1_000_100, length - 1_000, Some("\u{7}bell"))));
                }
            }
            let detour =
                |(start, duration)| (cpu, Detour { start: ns(start), duration: ns(duration), own: false });
            if probed {
                gatherer.detours(&detours.into_iter().map(detour).collect::<Vec<_>>());
            }
            if known {
                gatherer.intervals(intervals.into_iter());
            }
        }
        let cost = Overhead { bpf_percent: Some(0.05), bpf_runs_per_s: Some(2_000.0), ..Overhead::default() };
        gatherer.frame(Nanos::from_secs(second + 1), Overhead { thread_percent: 0.25, ..cost })
    };
    (0..2).map(|at| second(&mut gatherer, at)).collect()
}

fn board(frames: Vec<Frame>) -> Board {
    let mut board = Board { title: "CPUs 1,3".into(), ..Board::default() };
    frames.into_iter().for_each(|frame| board.take(frame));
    board
}

fn drawn(board: &Board, view: &mut View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|area| screen::draw(area, board, view, Palette::plain())).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    let text: String = (0..height).map(|y| line(y).trim_end().to_owned() + "\n").collect();
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\r', '\u{7}']), "{text:?}");
    text
}

#[test]
fn the_screen_fits_large_usual_and_narrow_terminals() {
    let board = board(frames(&[Cpu(1), Cpu(3)], true, None));
    assert_snapshot!("screen_100x30", drawn(&board, &mut View::default(), 100, 30));
    assert_snapshot!("screen_80x24", drawn(&board, &mut View::default(), 80, 24));
    assert_snapshot!("screen_60x20", drawn(&board, &mut View::default(), 60, 20));
}

#[test]
fn no_size_is_too_small_to_be_drawn() {
    let cpus: Vec<Cpu> = (0..200).map(Cpu).collect();
    for board in [Board::default(), board(frames(&cpus, true, None)), board(frames(&cpus, false, None))] {
        for (width, height) in [(1, 1), (5, 2), (20, 5), (60, 3), (300, 80)] {
            drawn(&board, &mut View { help: true, ..View::default() }, width, height);
        }
    }
}

#[test]
fn many_cpus_are_the_noisiest_and_all() {
    let cpus: Vec<Cpu> = (0..128).map(Cpu).collect();
    let text = drawn(&board(frames(&cpus, true, None)), &mut View::default(), 80, 24);
    let rows: Vec<&str> = text.lines().skip(2).take(6).map(|line| line[..4].trim()).collect();
    assert!(rows.contains(&"3") && rows.last() == Some(&"all"), "{text}");
}

#[test]
fn without_a_probe_or_sources_the_screen_says_so() {
    let passive = board(frames(&[Cpu(1), Cpu(3)], false, None));
    assert_snapshot!(
        "passive_80x24",
        drawn(&passive, &mut View { together: true, ..View::default() }, 80, 24)
    );
    let blind = board(frames(&[Cpu(1)], true, Some("no privilege\u{1b}[31m".into())));
    let text = drawn(&blind, &mut View::default(), 80, 24);
    assert!(text.contains("sources are unknown: no privilege\u{fffd}[31m"), "{text}");
}

#[test]
fn blocks_and_summary_are_plain_lines() {
    let frames = frames(&[Cpu(1), Cpu(3)], true, None);
    let text = block(&frames[1], &View::default()) + &summary(&frames[1]);
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\r', '\u{7}']), "{text:?}");
    assert_snapshot!("plain", text);
}

fn press(view: &mut View, code: KeyCode) -> Then {
    view.key(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn keys_change_the_view_and_nothing_else() {
    let mut view = View::default();
    assert_eq!(press(&mut view, KeyCode::Char('x')), Then::Stay);
    let orders: Vec<SortBy> = (0..4)
        .map(|_| {
            press(&mut view, KeyCode::Char('s'));
            view.sort
        })
        .collect();
    assert_eq!(orders, [SortBy::Count, SortBy::Max, SortBy::Name, SortBy::Time]);
    for (code, holds) in
        [('p', (|v: &View| v.paused) as fn(&View) -> bool), ('r', |v| v.reversed), ('c', |v| v.together)]
    {
        assert_eq!(press(&mut view, KeyCode::Char(code)), Then::Draw);
        assert!(holds(&view), "{code}");
    }
    press(&mut view, KeyCode::Char(' '));
    assert!(!view.paused);
    assert_eq!(press(&mut view, KeyCode::Char('?')), Then::Draw);
    assert!(view.help);
    assert_eq!(press(&mut view, KeyCode::Esc), Then::Draw);
    assert!(!view.help, "any key closes the help");
    for code in [KeyCode::Char('q'), KeyCode::Esc] {
        assert_eq!(press(&mut view, code), Then::Quit);
    }
}

#[test]
fn a_filter_is_typed_kept_and_cleared() {
    let mut view = View::default();
    for letter in "/qs?".chars() {
        assert_eq!(press(&mut view, KeyCode::Char(letter)), Then::Draw);
    }
    assert_eq!(
        (view.filter.as_str(), view.sort),
        ("qs?", SortBy::Time),
        "keys are letters while it is typed"
    );
    press(&mut view, KeyCode::Backspace);
    assert_eq!(press(&mut view, KeyCode::Enter), Then::Draw);
    assert_eq!((view.filter.as_str(), view.typing), ("qs", false));
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(View { typing: true, ..view.clone() }.key(ctrl_c), Then::Quit);
    assert_eq!(press(&mut view, KeyCode::Esc), Then::Draw);
    assert!(view.filter.is_empty());
    (0..500).for_each(|_| view.filter.push('x'));
    view.typing = true;
    assert_eq!(press(&mut view, KeyCode::Char('y')), Then::Stay, "a filter has an end");
}

#[test]
fn sources_are_filtered_and_sorted() {
    let frame = frames(&[Cpu(3)], true, None).remove(1);
    let all = frame.sources.unwrap();
    let names = |view: &View| view.sources(&all).iter().map(|row| row.source.clone()).collect::<Vec<_>>();
    let task = format!("task:{HOSTILE}");
    let by = |sort| View::new(sort, "");
    assert_eq!(names(&by(SortBy::Time)), [&*task, "tick", "unattributed"]);
    assert_eq!(names(&by(SortBy::Name)), [&*task, "tick", "unattributed"]);
    assert_eq!(names(&View { reversed: true, ..by(SortBy::Max) }).last(), Some(&task));
    assert_eq!(names(&View::new(SortBy::Time, "NOHZ")), ["tick"], "what it works at counts too");
    assert_eq!(names(&View::new(SortBy::Time, "日本")), [task]);
}
