//! The live screen, drawn only from the board and the user's choices.

use quell_analysis::attribution::Class;
use quell_analysis::live::{Frame, SourceNow};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table, Wrap};

use super::columns::{self, Column, fit};
use super::display_state::{Board, CpuRow};
use super::view::View;
use super::{panes, plain};
use crate::printer::one_line;

/// The percentages of a CPU above which noise is highlighted as notable, and as too much.
const SOME_NOISE: f64 = 0.1;
const MUCH_NOISE: f64 = 1.0;

const HELP: [&str; 12] = [
    "q Esc Ctrl-C   quit",
    "p Space        pause: the display stops, measuring continues",
    "s              sort by time, count, max, name",
    "r              reverse the order",
    "/              filter the sources; Enter keeps, Esc clears",
    "c              CPUs one by one, or all together",
    "↑ ↓ PgUp PgDn  scroll the sources",
    "",
    "since, ever    since the start; the rest is the last interval",
    "kernel %       interrupts, softirqs, hypervisor",
    "tasks %        other tasks on the CPU",
    "any key        closes this",
];

/// Colours, or none.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    colours: bool,
}

impl Palette {
    /// With colours, unless NO_COLOR is set (no-color.org).
    pub fn from_environment() -> Self {
        Self { colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    }

    /// For tests.
    #[cfg(test)]
    pub fn plain() -> Self {
        Self { colours: false }
    }

    fn colour(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    fn head(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn noise(self, percent: f64) -> Style {
        match percent {
            MUCH_NOISE.. => self.colour(Color::Red),
            SOME_NOISE.. => self.colour(Color::Yellow),
            _ => Style::new(),
        }
    }

    fn class(self, class: Class) -> Style {
        match class {
            Class::Type2 => self.colour(Color::Magenta),
            Class::Hypervisor => self.colour(Color::Red),
            Class::Unattributed => self.colour(Color::Yellow),
            Class::Own => Style::new().add_modifier(Modifier::DIM),
            Class::Type1 | Class::Interrupt => self.colour(Color::Cyan),
        }
    }
}

/// Draws the screen. The scroll position is limited to the existing sources.
pub fn draw(area: &mut ratatui::Frame, board: &Board, view: &mut View, palette: Palette) {
    let whole = area.area();
    area.render_widget(header(board, view, whole.width), Rect { height: whole.height.min(1), ..whole });
    match &board.frame {
        Some(frame) => body(area, frame, board, view, palette),
        None => {
            let wait = Rect { y: 1, height: whole.height.saturating_sub(1), ..whole };
            area.render_widget(Paragraph::new("\n the first interval is being measured …"), wait);
        }
    }
    if view.help {
        help(area);
    }
}

fn header(board: &Board, view: &View, width: u16) -> Paragraph<'static> {
    let mut parts = vec!["quell watch".to_owned()];
    if view.paused {
        parts.push("PAUSED".into());
    }
    parts.extend(board.frame.as_ref().map(panes::moment));
    parts.push(format!("by {}", view.order()));
    // A list of CPUs may be long, so it is placed where it can be cut off.
    parts.push(one_line(&board.title));
    let text = format!(" {}", parts.join(" · "));
    // The bar extends to the edge.
    let bar = format!("{text:<width$}", width = usize::from(width));
    Paragraph::new(bar).style(Style::new().add_modifier(Modifier::REVERSED))
}

fn body(area: &mut ratatui::Frame, frame: &Frame, board: &Board, view: &mut View, palette: Palette) {
    let whole = area.area();
    let cost = panes::packed(" quell itself: ", &panes::overhead(frame), usize::from(whole.width));
    let (height, cpus) = (whole.height, if view.together { 1 } else { frame.cpus.len() as u16 });
    let passive = frame.passive;
    let log_lines = if passive { 0 } else { (height / 5).max(2) + 1 };
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(cpus.min((height / 4).max(2)) + 1),
        Constraint::Min(3),
        Constraint::Length(log_lines),
        Constraint::Length(cost.len() as u16),
        Constraint::Length(1),
    ]);
    let [_, cpu_area, source_area, log_area, cost_area, key_area] = rows.areas(whole);
    cpu_table(area, cpu_area, frame, view, palette);
    sources(area, source_area, frame, view, palette);
    log(area, log_area, board, palette);
    let cost: Vec<Line> = cost.into_iter().map(Line::raw).collect();
    area.render_widget(Paragraph::new(cost).style(Style::new().add_modifier(Modifier::DIM)), cost_area);
    area.render_widget(keys(view, key_area.width), key_area);
}

fn cpu_table(area: &mut ratatui::Frame, place: Rect, frame: &Frame, view: &View, palette: Palette) {
    let mut rows: Vec<CpuRow> = match view.together {
        true => vec![CpuRow::together(&frame.cpus)],
        false => frame.cpus.iter().map(CpuRow::from_cpu).collect(),
    };
    let room = usize::from(place.height.saturating_sub(1));
    if rows.len() > room {
        // The noisiest CPUs come first, and the last line sums up all.
        rows.sort_by(|a, b| b.noise().total_cmp(&a.noise()));
        rows.truncate(room.saturating_sub(1));
        rows.sort_by_key(|row| row.figures.cpu);
        rows.push(CpuRow::together(&frame.cpus));
    }
    let columns = fit(&columns::cpus(frame.passive), place.width);
    table(area, place, &columns, rows.iter().map(|row| (row, palette.noise(row.noise()))), palette);
}

fn sources(area: &mut ratatui::Frame, place: Rect, frame: &Frame, view: &mut View, palette: Palette) {
    let Some(all) = &frame.sources else {
        let text = format!("\n {}", plain::unknown(frame.sources_unknown_because.as_deref()));
        return area.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), place);
    };
    let rows = view.sources(all);
    let place = Rect { y: place.y + 1, height: place.height.saturating_sub(1), ..place };
    let room = usize::from(place.height.saturating_sub(1));
    view.scrolled = view.scrolled.min(rows.len().saturating_sub(room));
    let shown = rows.into_iter().skip(view.scrolled).map(|row| (row, row_style(row, palette)));
    let columns = fit(&columns::sources(frame.passive), place.width);
    table(area, place, &columns, shown, palette);
}

/// Sources without events in the interval are dimmed.
fn row_style(row: &SourceNow, palette: Palette) -> Style {
    if row.now.count == 0 { Style::new().add_modifier(Modifier::DIM) } else { palette.class(row.class) }
}

fn table<'a, R: 'a>(
    area: &mut ratatui::Frame,
    place: Rect,
    columns: &[Column<R>],
    rows: impl Iterator<Item = (&'a R, Style)>,
    palette: Palette,
) {
    let aligned = |column: &Column<R>, text: String| {
        let line = Line::raw(text);
        if column.words { line } else { line.right_aligned() }
    };
    let cells = |(row, style): (&R, Style)| {
        Row::new(columns.iter().map(|c| aligned(c, (c.cell)(row, c.width))).collect::<Vec<_>>()).style(style)
    };
    let heads = columns.iter().map(|column| aligned(column, column.head.into()));
    let widths = columns.iter().map(|column| Constraint::Length(column.width));
    let rows = rows.take(usize::from(place.height)).map(cells);
    let table = Table::new(rows, widths).header(Row::new(heads.collect::<Vec<_>>()).style(palette.head()));
    area.render_widget(table.column_spacing(1), place);
}

fn log(area: &mut ratatui::Frame, place: Rect, board: &Board, palette: Palette) {
    let room = usize::from(place.height.saturating_sub(1));
    let newest = board.log.iter().rev().take(room).map(|one| Line::raw(panes::longest(one)));
    let mut lines = vec![Line::styled(" LONGER THAN ANY BEFORE ON ITS CPU (newest first)", palette.head())];
    lines.extend(newest);
    area.render_widget(Paragraph::new(lines), place);
}

fn keys(view: &View, width: u16) -> Line<'static> {
    if view.typing {
        return Line::raw(format!(" filter: {}▏  Enter keeps, Esc clears", view.filter));
    }
    let filter = if view.filter.is_empty() { String::new() } else { format!(" · filter: {}", view.filter) };
    let all = "q quit  p pause  s sort  r reverse  / filter  c CPUs  ? help";
    let text = if usize::from(width) > all.len() + filter.chars().count() { all } else { "q quit  ? help" };
    Line::raw(format!(" {text}{filter}"))
}

fn help(area: &mut ratatui::Frame) {
    let whole = area.area();
    let width = 64.min(whole.width);
    let height = (HELP.len() as u16 + 2).min(whole.height);
    let (x, y) = ((whole.width - width) / 2, (whole.height - height) / 2);
    let place = Rect { x, y, width, height };
    area.render_widget(Clear, place);
    let lines: Vec<Line> = HELP.iter().map(|&line| Line::raw(line)).collect();
    area.render_widget(Paragraph::new(lines).block(Block::bordered().title(" keys ")), place);
}
