//! The formats of events, as the kernel describes them in `events/GROUP/EVENT/format`.

use std::collections::HashMap;

use super::super::events::{irq, noise_of, softirq, vector};
use super::super::{Key, Names, What};
use super::bytes::Bytes;
use crate::{HistogramKind, Source};

/// Maximum number of fields: each event is searched for its fields, which would take long with millions of them.
const MOST_FIELDS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Formats(HashMap<u16, Format>);

#[derive(Debug)]
struct Format {
    name: String,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: String,
    offset: usize,
    size: usize,
    /// Whether the field only holds the offset and length of the data.
    elsewhere: bool,
}

impl Formats {
    pub fn add(&mut self, system: &str, text: &str) -> Result<(), String> {
        let line = |start: &str| text.lines().find_map(|line| line.strip_prefix(start)).map(str::trim);
        let (Some(name), Some(id)) = (line("name:"), line("ID:")) else {
            return Err(format!(
                "the format of an event of {} has no name: it is damaged",
                crate::one_line(system)
            ));
        };
        let id = id.parse().map_err(|_| format!("the format of {} has no number", crate::one_line(name)))?;
        let fields = text.lines().filter_map(Field::read).take(MOST_FIELDS).collect();
        self.0.insert(id, Format { name: name.to_owned(), fields });
        Ok(())
    }

    /// Decodes an event's bytes; returns its name too.
    pub fn what(&self, event: Bytes<'_>, names: &mut Names) -> Result<(&str, What), String> {
        let id = Bytes { at: 0, ..event }.u16()?;
        let Some(format) = self.0.get(&id) else { return Ok(("of no known format", What::Other)) };
        let what = Event { format, bytes: event }.what(names);
        Ok((&format.name, what.map_err(|reason| format!("{}: {reason}", crate::one_line(&format.name)))?))
    }
}

impl Field {
    /// `field:TYPE NAME[SIZE]; offset:N; size:N; signed:N;`, with tabs between
    fn read(line: &str) -> Option<Self> {
        let rest = line.trim().strip_prefix("field:")?;
        let (declared, rest) = rest.split_once(';')?;
        let number = |name: &str| {
            let (_, rest) = rest.split_once(name)?;
            rest.split(';').next()?.trim().parse().ok()
        };
        let name = declared.split_whitespace().last()?;
        let name = name.split('[').next().unwrap_or(name);
        Some(Self {
            name: name.to_owned(),
            offset: number("offset:")?,
            size: number("size:")?,
            elsewhere: declared.starts_with("__data_loc"),
        })
    }
}

struct Event<'a> {
    format: &'a Format,
    bytes: Bytes<'a>,
}

impl Event<'_> {
    fn field(&self, name: &str) -> Result<&Field, String> {
        let found = self.format.fields.iter().find(|field| field.name == name);
        found.ok_or_else(|| format!("it has no field `{name}`"))
    }

    fn number(&self, name: &str) -> Result<u64, String> {
        let field = self.field(name)?;
        Bytes { at: field.offset, ..self.bytes }.number(field.size)
    }

    fn small(&self, name: &str) -> Result<u32, String> {
        Ok(self.number(name)? as u32)
    }

    fn text(&self, name: &str) -> Result<String, String> {
        let field = self.field(name)?;
        let (offset, size) = match field.elsewhere {
            true => {
                let place = Bytes { at: field.offset, ..self.bytes }.u32()?;
                ((place & 0xffff) as u64, u64::from(place >> 16))
            }
            false => (field.offset as u64, field.size as u64),
        };
        let text = self.bytes.part(offset, size)?;
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn what(&self, names: &mut Names) -> Result<What, String> {
        let name = self.format.name.as_str();
        Ok(match name {
            "irq_handler_entry" => What::Enter(Key::Irq(self.small("irq")?), irq(&self.text("name")?, names)),
            "irq_handler_exit" => What::Exit(Key::Irq(self.small("irq")?)),
            "softirq_entry" => {
                let vector = self.small("vec")?;
                What::Enter(Key::Softirq(vector), softirq(vector, names))
            }
            "softirq_exit" => What::Exit(Key::Softirq(self.small("vec")?)),
            // The reason is a pointer to text in the kernel.
            "ipi_entry" => What::Enter(Key::Ipi, Source::Ipi(names.get("unnamed"))),
            "ipi_exit" => What::Exit(Key::Ipi),
            "sched_switch" => {
                What::Switch { pid: self.small("next_pid")?, comm: names.get(&self.text("next_comm")?) }
            }
            "nmi_handler" => {
                let ns = self.number("delta_ns")? as i64;
                What::Took { source: Source::Nmi, ns: ns.max(0) as u64 }
            }
            "sample_threshold" => {
                What::Gap { start: self.number("start")?, duration: self.number("duration")? }
            }
            "nmi_noise" => What::Ended {
                source: Source::Nmi,
                pid: 0,
                start: self.number("start")?,
                net: self.number("duration")?,
            },
            "thread_noise" | "softirq_noise" | "irq_noise" => {
                let (task, number) = match name {
                    "thread_noise" => (self.text("comm")?, self.small("pid")?),
                    "irq_noise" => (self.text("desc")?, self.small("vector")?),
                    _ => (String::new(), self.small("vector")?),
                };
                noise_of(name, &task, number, self.number("start")?, self.number("duration")?, names)
            }
            // The tracers' own events, in us and in ns.
            "osnoise" => What::Period {
                watched: self.number("runtime")?.saturating_mul(1_000),
                noise: self.number("noise")?.saturating_mul(1_000),
            },
            "timerlat" => {
                let kind = match self.number("context")? {
                    0 => HistogramKind::IrqLatency,
                    1 => HistogramKind::ThreadLatency,
                    _ => HistogramKind::UserLatency,
                };
                What::Late { kind, ns: self.number("timer_latency")? }
            }
            _ => {
                let of =
                    |end: &str| name.strip_suffix(end).and_then(|name| vector(name, &mut Names::default()));
                if of("_entry").is_some() {
                    let source = vector(name.trim_end_matches("_entry"), names).unwrap_or(Source::Tick);
                    What::Enter(Key::Vector(self.small("vector")?), source)
                } else if of("_exit").is_some() {
                    What::Exit(Key::Vector(self.small("vector")?))
                } else {
                    What::Other
                }
            }
        })
    }
}
