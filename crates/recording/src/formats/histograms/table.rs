//! quell's own CSV of histograms: `cpu,thread,kind,from_ns,to_ns,count`.

use std::io::{self, Write};

use super::Counts;
use crate::formats::columns::Header;
use crate::formats::content::Content;
use crate::{Cpu, Histogram};

pub(in super::super) const COLUMNS: [&str; 6] = ["cpu", "thread", "kind", "from_ns", "to_ns", "count"];

pub(in super::super) fn read(text: &str) -> Result<Content, String> {
    let mut counts = Counts::default();
    Header::read(text, &COLUMNS, |row| {
        let [cpu, thread] = [row.number(0)?, row.number(1)?].map(u32::try_from);
        let (Ok(cpu), Ok(thread)) = (cpu, thread) else {
            return Err(row.wrong("a CPU or a thread has a number of more than 32 bits"));
        };
        let kind = row.text(2)?.parse().map_err(|reason: String| row.wrong(&reason))?;
        let [from, to, count] = [row.number(3)?, row.number(4)?, row.number(5)?];
        if from > to || count == 0 {
            return Err(row.wrong("no bucket ends before it begins, or counts nothing"));
        }
        counts.add((Cpu(cpu), thread, kind), from, to, count).map_err(|reason| row.wrong(&reason))
    })?;
    Ok(counts.content("CSV"))
}

pub(in super::super) fn write(histograms: &[Histogram], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))?;
    for histogram in histograms {
        for bucket in &histogram.buckets {
            let (from, to) = (bucket.from.as_nanos(), bucket.to.as_nanos());
            writeln!(
                out,
                "{},{},{},{from},{to},{}",
                histogram.cpu, bucket.thread, bucket.kind, bucket.count
            )?;
        }
    }
    Ok(())
}
