//! Plots for the terminal: ratatui draws them into a buffer, which is printed as plain text.

use quell_recording::Nanos;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Widget};

/// A series of points, with its entry in the legend.
#[derive(Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, in the units of the axes.
    pub points: Vec<(f64, f64)>,
    /// Whether a line joins the points; otherwise they are dots.
    pub line: bool,
}

/// Maximum number of steps of a linear axis.
const MOST_STEPS: f64 = 5.0;

/// An axis: its range, and labels at equal distances from one end to the other.
#[derive(Debug)]
pub struct Scale {
    bounds: [f64; 2],
    labels: Vec<String>,
}

impl Scale {
    /// A linear axis from zero, with a label at each multiple of a round step.
    pub fn linear(high: f64, label: impl Fn(f64) -> String) -> Self {
        let high = if high > 0.0 && high.is_finite() { high } else { 1.0 };
        let rough = high / MOST_STEPS;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|digit| digit * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * power);
        let steps = (high / step).ceil().clamp(1.0, MOST_STEPS) as u32;
        let labels = (0..=steps).map(|i| label(step * f64::from(i))).collect();
        Self { bounds: [0.0, step * f64::from(steps)], labels }
    }

    /// A linear axis of whole numbers from zero.
    pub fn whole(high: u32) -> Self {
        Self::linear(f64::from(high).max(MOST_STEPS), |value| format!("{value:.0}"))
    }

    /// A logarithmic axis in whole steps, each with its label.
    pub fn log(low: f64, high: f64, label: impl Fn(f64) -> String) -> Self {
        let (low, high) = (low.floor(), high.ceil().max(low.floor() + 1.0));
        // Labels are at equal distances and at both ends, so their step must divide the range.
        let range = (high - low) as usize;
        let step = (range.div_ceil(6)..=range).find(|step| range.is_multiple_of(*step)).unwrap_or(1);
        let steps = range / step;
        let labels = (0..=steps).map(|i| label(low + (i * step) as f64)).collect();
        Self { bounds: [low, low + (steps * step) as f64], labels }
    }
}

/// The label of a decade on a logarithmic axis of durations: `1us`.
pub fn decade(log10_ns: f64) -> String {
    time(10f64.powf(log10_ns))
}

/// The label of a time.
pub fn time(ns: f64) -> String {
    if ns == 0.0 {
        return "0".to_owned();
    }
    Nanos::from_nanos_f64(ns.round()).map_or_else(String::new, |time| time.to_string())
}

/// Draws a chart of `width` columns as text.
pub fn chart(title: &str, width: u16, height: u16, x: &Scale, y: &Scale, series: &[Series]) -> String {
    let axis = |scale: &Scale| Axis::default().bounds(scale.bounds).labels(scale.labels.clone());
    // Without colour, a different marker distinguishes the second line from the first.
    let markers = [(Marker::Braille, '⠤'), (Marker::Dot, '•')];
    let datasets = series.iter().enumerate().map(|(index, one)| {
        let kind = if one.line { GraphType::Line } else { GraphType::Scatter };
        let marker = markers[index.min(1)].0;
        Dataset::default().marker(marker).graph_type(kind).data(&one.points)
    });
    let names = series.iter().enumerate().filter(|(_, one)| !one.name.is_empty());
    let legend: String = names.map(|(i, one)| format!("   {} {}", markers[i.min(1)].1, one.name)).collect();
    let chart = Chart::new(datasets.collect())
        .block(Block::new().title(format!("{title}{legend}")))
        .x_axis(axis(x))
        .y_axis(axis(y));
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    chart.render(area, &mut buffer);
    text_of(&buffer)
}

/// A bar chart of counts: label, value, bar.
pub fn bars(title: &str, width: u16, rows: &[(String, u64)]) -> String {
    let most = rows.iter().map(|(_, value)| *value).max().unwrap_or(0).max(1);
    // Counts span decades; the length of a bar is logarithmic, so that the tail is visible.
    let share = |value: u64| ((value as f64) + 1.0).ln() / ((most as f64) + 1.0).ln();
    let bars = rows.iter().map(|(label, value)| (label.clone(), value.to_string(), share(*value)));
    bar_rows(title, width, &bars.collect::<Vec<_>>())
}

/// A bar chart of times in ns; the length of a bar is linear.
pub fn time_bars(title: &str, width: u16, rows: &[(String, u64)]) -> String {
    let most = rows.iter().map(|(_, ns)| *ns).max().unwrap_or(0).max(1);
    let row = |(label, ns): &(String, u64)| {
        (label.clone(), Nanos::from_nanos(*ns).to_string(), *ns as f64 / most as f64)
    };
    bar_rows(title, width, &rows.iter().map(row).collect::<Vec<_>>())
}

/// A bar chart from labels, values and lengths of bars between 0 and 1.
fn bar_rows(title: &str, width: u16, rows: &[(String, String, f64)]) -> String {
    let label_width = rows.iter().map(|(label, ..)| Line::raw(label).width()).max().unwrap_or(0);
    let value_width = rows.iter().map(|(_, value, _)| value.len()).max().unwrap_or(0);
    let room = (width as usize).saturating_sub(label_width + value_width + 4).max(8);
    let mut text = format!("{title}\n");
    for (label, value, share) in rows {
        let eighths = (share * room as f64 * 8.0).round() as usize;
        let partial = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        let bar = "█".repeat(eighths / 8) + partial;
        // Padding counts characters, but wide characters take two columns on a terminal.
        let indent = " ".repeat(label_width.saturating_sub(Line::raw(label).width()));
        let line = format!("  {indent}{label} {value:>value_width$} {bar}");
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn text_of(buffer: &Buffer) -> String {
    let area = buffer.area;
    let row = |y: u16| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..area.height).map(|y| row(y).trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_data_and_odd_ranges_draw_an_empty_plot() {
        let flat = Scale::linear(0.0, |v| v.to_string());
        let log = Scale::log(2.0, 2.0, decade);
        assert!(chart("t", 40, 6, &flat, &log, &[]).starts_with('t'));
        assert_eq!(bars("t", 40, &[]), "t\n");
    }

    #[test]
    fn linear_axes_have_round_labels_and_hold_their_data() {
        for (high, labels) in [
            (1.0, "0 0.2 0.4 0.6 0.8 1"),
            (7.0, "0 2 4 6 8"),
            (60.0, "0 20 40 60"),
            (1457.2, "0 500 1000 1500"),
        ] {
            let scale = Scale::linear(high, |value| ((value * 1e6).round() / 1e6).to_string());
            assert_eq!(scale.labels.join(" "), labels);
            assert!(scale.bounds[1] >= high);
        }
        assert_eq!(Scale::whole(7).labels, ["0", "2", "4", "6", "8"]);
        assert_eq!(Scale::whole(3).labels, ["0", "1", "2", "3", "4", "5"]);
        for high in [f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, 1e300] {
            assert!(Scale::linear(high, |value| value.to_string()).labels.len() <= 6);
        }
    }
}
