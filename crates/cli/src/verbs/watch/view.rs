//! The user's choices of what to see, and the effect of each key.

use quell_analysis::attribution::Class;
use quell_analysis::live::SourceNow;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::args::SortBy;
use crate::printer::one_line;

/// Maximum length of a filter, in characters.
const LONGEST_FILTER: usize = 64;

/// What to do after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing has changed.
    Stay,
    /// Redraw.
    Draw,
    /// End the run.
    Quit,
}

/// The user's choices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Order of the sources.
    pub sort: SortBy,
    /// Whether the order is reversed.
    pub reversed: bool,
    /// Show only sources that contain this text.
    pub filter: String,
    /// Whether the user is typing the filter.
    pub typing: bool,
    /// Whether the display is paused.
    pub paused: bool,
    /// Whether all CPUs are in one row.
    pub together: bool,
    /// Whether the help is shown.
    pub help: bool,
    /// Number of sources above the first visible one.
    pub scrolled: usize,
}

impl View {
    /// The choices on the command line.
    pub fn new(sort: SortBy, filter: &str) -> Self {
        Self { sort, filter: one_line(filter), ..Self::default() }
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Then {
        if key.kind == KeyEventKind::Release {
            return Then::Stay;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if matches!(key.code, KeyCode::Char('c' | 'd')) { Then::Quit } else { Then::Stay };
        }
        if self.typing {
            return self.type_filter(key.code);
        }
        if self.help {
            self.help = false;
            return if key.code == KeyCode::Char('q') { Then::Quit } else { Then::Draw };
        }
        self.command(key.code)
    }

    fn type_filter(&mut self, code: KeyCode) -> Then {
        self.scrolled = 0;
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) if self.filter.chars().count() < LONGEST_FILTER => {
                self.filter += &one_line(&letter.to_string());
            }
            _ => return Then::Stay,
        }
        Then::Draw
    }

    fn command(&mut self, code: KeyCode) -> Then {
        match code {
            KeyCode::Char('q') => return Then::Quit,
            // The first Esc only clears the filter, so that one Esc too many does not end the run.
            KeyCode::Esc if self.filter.is_empty() => return Then::Quit,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char(' ' | 'p') => self.paused = !self.paused,
            KeyCode::Char('s') => self.sort = next(self.sort),
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('c') => self.together = !self.together,
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Down | KeyCode::Char('j') => self.scrolled += 1,
            KeyCode::Up | KeyCode::Char('k') => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown => self.scrolled += 10,
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(10),
            KeyCode::Home => self.scrolled = 0,
            _ => return Then::Stay,
        }
        Then::Draw
    }

    /// The sources that pass the filter, in order; quell's own come last.
    pub fn sources<'a>(&self, all: &'a [SourceNow]) -> Vec<&'a SourceNow> {
        let wanted = self.filter.to_lowercase();
        let has = |text: &str| one_line(text).to_lowercase().contains(&wanted);
        let passes = |row: &&SourceNow| has(&row.source) || row.detail.as_deref().is_some_and(has);
        let mut rows: Vec<&SourceNow> = all.iter().filter(passes).collect();
        rows.sort_by(|a, b| {
            let figure = |row: &SourceNow| match self.sort {
                SortBy::Time => (row.now.time_ns, row.since_start.time_ns),
                SortBy::Count => (row.now.count, row.since_start.count),
                SortBy::Max => (row.now.max_ns, row.since_start.max_ns),
                SortBy::Name => (0, 0),
            };
            let order = figure(b).cmp(&figure(a)).then_with(|| a.source.cmp(&b.source));
            let order = if self.reversed { order.reverse() } else { order };
            (a.class == Class::Own).cmp(&(b.class == Class::Own)).then(order)
        });
        rows
    }

    /// A description of the order.
    pub fn order(&self) -> String {
        format!("{}{}", word(self.sort), if self.reversed { " reversed" } else { "" })
    }
}

fn word(sort: SortBy) -> &'static str {
    match sort {
        SortBy::Time => "time",
        SortBy::Count => "count",
        SortBy::Max => "max",
        SortBy::Name => "name",
    }
}

fn next(sort: SortBy) -> SortBy {
    match sort {
        SortBy::Time => SortBy::Count,
        SortBy::Count => SortBy::Max,
        SortBy::Max => SortBy::Name,
        SortBy::Name => SortBy::Time,
    }
}
