//! All formats in one table, from which `convert --list`, its help, its error messages and the reference are made.

use schemars::JsonSchema;
use serde::Serialize;

/// A description of a format for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct About {
    /// Its name.
    pub name: &'static str,
    /// The tool that it belongs to, and what produces it.
    pub tool: &'static str,
    /// Whether `convert` reads it, as a recording or, for networks, as a network.
    pub read: bool,
    /// Its name for `--to`; `None` if it cannot be written.
    pub written: Option<&'static str>,
    /// File extensions that select it; empty if it needs `--to`.
    pub extensions: &'static [&'static str],
    /// What a recording made from it holds, or what is written.
    pub holds: &'static str,
    /// What a recording can hold, or a reader can expect, that the format cannot store.
    pub lacks: &'static str,
    /// The source of its definition.
    pub form: &'static str,
}

const fn read(
    name: &'static str,
    tool: &'static str,
    holds: &'static str,
    lacks: &'static str,
    form: &'static str,
) -> About {
    About { name, tool, read: true, written: None, extensions: &[], holds, lacks, form }
}

impl About {
    const fn also_to(self, word: &'static str, extensions: &'static [&'static str]) -> Self {
        Self { written: Some(word), extensions, ..self }
    }

    const fn only_to(self, word: &'static str, extensions: &'static [&'static str]) -> Self {
        Self { read: false, written: Some(word), extensions, ..self }
    }
}

/// All formats: first those that quell reads and writes, then benchmarks, histograms, traces of the kernel, and formats that are only written.
pub const FORMATS: &[About] = &[
    read(
        "CSV",
        "quell; spreadsheets, pandas",
        "detours, quanta, the kernel's intervals or histograms, by its header",
        "when a CPU's span ends, the clock, the host, the threads of a command",
        "quell's own: `cpu,start_ns,duration_ns,own`; `method,cpu,start_ns,duration_ns,work`; `cpu,start_ns,duration_ns,net_ns,source,\
         pid,victim,detail,cause`; `cpu,thread,kind,from_ns,to_ns,count`",
    )
    .also_to("csv", &["csv"]),
    read(
        "netgauge selfish, fwq, ftq",
        "netgauge -x noise -e selfish|fwq|ftq",
        "detours of one CPU, or its quanta",
        "the CPU, the clock, the wall-clock time; of quanta when each began",
        "files that netgauge wrote (spcl/netgauge f3ef494)",
    )
    .also_to("netgauge", &[]),
    read(
        "netgauge LogGP",
        "netgauge -x loggp -o FILE",
        "a network for `--net`: the last row, and a range of sizes for each row",
        "S, which it does not measure, and O, which it does not tell from G; the hosts",
        "netgauge's source (spcl/netgauge f3ef494, ptrn_loggp.c)",
    ),
    read(
        "vpsum",
        "IBM's vpsum; quell bench fwq",
        "the phases of a rank, or of several in a folder",
        "the time in the operation, the steps of work, fractions of a us, the kernel's intervals",
        "\"OS jitter mitigation techniques\", IBM developerWorks",
    )
    .also_to("vpsum", &["vpsum"]),
    read(
        "PSNAP",
        "LANL's PSNAP",
        "how often a quantum took how many us, by rank",
        "the order of quanta, when they were, the time in the operation, the kernel's intervals",
        "\"OS jitter mitigation techniques\", IBM developerWorks",
    )
    .also_to("psnap", &["psnap"]),
    read(
        "HdrHistogram log",
        "jHiccup, HdrHistogram",
        "how long detours were, or what a histogram counts, to three digits",
        "order and starts; the unit, which is taken for ns; encodings V0 and V1, and real numbers",
        "the log format 1.3 and the encoding V2 of HdrHistogram, with its crate as a witness",
    )
    .also_to("hdrhistogram", &["hlog"]),
    read("LLNL fwq", "LLNL/system-noise fwq-th", "fwq quanta of one thread", "when each began", "a file of fwq-th (commit 9f94b12)"),
    read("Minnich ftq", "rminnich/ftq", "ftq quanta of one thread", "nothing", "a file of ftq.linux (commit d55fd5b)"),
    read("sysjitter", "cns-sysjitter --raw", "detours of one core", "the clock, the wall-clock time", "a file of sysjitter (6e275a6)"),
    read(
        "detour list",
        "a plain detour loop: `mono_ns duration_ns`",
        "detours, on CLOCK_MONOTONIC",
        "the CPU, the threshold",
        "a file of such a program",
    ),
    read(
        "oslat",
        "oslat (rt-tests): its text, and --json",
        "a histogram of gaps for each core",
        "order and starts; what is shorter than its first bucket, 1 us without `-W`",
        "files of rt-tests 2.4, 2.6 and 2.10, and the source of 2.4",
    ),
    read(
        "cyclictest",
        "cyclictest (rt-tests): -h, --histfile, -v, --json",
        "a histogram of latencies for each thread",
        "order and starts; in text the CPUs",
        "files of rt-tests 2.4",
    ),
    read(
        "rtla hist",
        "rtla osnoise hist, rtla timerlat hist",
        "a histogram for each CPU and context",
        "order and starts; how wide a row is, beyond what its numbers tell",
        "Linux, tools/tracing/rtla/src and Documentation/tools/rtla",
    ),
    read(
        "rtla top",
        "rtla osnoise top, rtla hwnoise, rtla timerlat top",
        "how many, the shortest and the longest, for each CPU and context",
        "order and starts, and all lengths between the shortest and the longest",
        "Linux, tools/tracing/rtla/src",
    ),
    read(
        "ftrace text",
        "the kernel's trace and trace_pipe, trace-cmd report, rtla -t",
        "the kernel's intervals, from irq_vectors, irq, nmi, sched_switch and osnoise events; detours, from sample_threshold; ftq quanta or \
         latencies, from the tracers osnoise and timerlat",
        "page faults and stolen time; fractions of a us; the clock",
        "traces of Linux 6.18; Linux, include/trace/events and Documentation/trace",
    ),
    read(
        "trace.dat",
        "trace-cmd record, versions 6 and 7, packed by zstd, zlib or not at all",
        "as ftrace text, in ns",
        "page faults and stolen time; more than one instance; 32-bit kernels were not tried",
        "trace-cmd.dat.v6(5), trace-cmd.dat.v7(5), and files of trace-cmd 3.1.6",
    ),
    read(
        "perf script",
        "perf script, perf sched script",
        "the kernel's intervals, as of ftrace text",
        "page faults and stolen time; without --ns fractions of a us; perf.data itself is refused",
        "files of perf 6.1",
    ),
    read(
        "tracepoint list",
        "a plain dump of tracepoints: `mono_ns kind id aux comm`",
        "the kernel's intervals on one CPU, on CLOCK_MONOTONIC",
        "the CPU; switches and faults",
        "a file of such a program",
    ),
    read(
        "LogGOPSim noise",
        "LogGOPSim --noise-trace",
        "the detours of one CPU, as netgauge's selfish file, which it reads",
        "the CPU, the clock, the wall-clock time, quell's own detours",
        "LogGOPSim's reader (commit 76451de)",
    )
    .only_to("loggopsim", &[]),
    read(
        "Perfetto",
        "ui.perfetto.dev, trace_processor",
        "detours, quanta and the kernel's intervals on one clock",
        "the tables' further columns; histograms",
        "Perfetto's protos",
    )
    .only_to("perfetto", &["pftrace", "perfetto-trace"]),
    read(
        "Chrome JSON",
        "chrome://tracing, ui.perfetto.dev, speedscope",
        "detours, quanta and the kernel's intervals as complete events",
        "who was the victim, the spans of CPUs; histograms",
        "\"Trace Event Format\" (Google, 2016)",
    )
    .only_to("chrome", &["trace.json"]),
    read(
        "OTF2",
        "Vampir, Score-P, otf2-print",
        "an archive: a location for each CPU, with detours, quanta and the kernel's intervals as regions",
        "details, causes, net times, victims; threads of a command; histograms",
        "the OTF2 library",
    )
    .only_to("otf2", &["otf2"]),
    read(
        "OpenMetrics",
        "Prometheus",
        "sums by CPU and source, and how long they lasted, as `serve-metrics` tells them",
        "single detours and intervals; histograms",
        "the OpenMetrics specification 1.0.0",
    )
    .only_to("openmetrics", &["prom"]),
];

/// The formats that can be read, in one line.
pub fn read_names() -> String {
    let names: Vec<&str> = FORMATS.iter().filter(|format| format.read).map(|format| format.name).collect();
    listed(&names)
}

/// The formats that can be written, by their names for `--to`, in one line.
pub fn written_names() -> String {
    let names: Vec<&str> = FORMATS.iter().filter_map(|format| format.written).collect();
    listed(&names)
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The format with this name for `--to`.
pub fn written(word: &str) -> Option<&'static About> {
    FORMATS.iter().find(|format| format.written == Some(word))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_endings_are_of_one_format_each() {
        // A format can be given by its display name.
        let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        let words: Vec<&str> = FORMATS.iter().filter_map(|format| format.written).collect();
        let ends: Vec<&str> = FORMATS.iter().flat_map(|format| format.extensions).copied().collect();
        for all in [names, words, ends] {
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
        }
        assert!(FORMATS.iter().all(|format| format.read || format.written.is_some()));
        for format in crate::formats::Format::ALL {
            assert!(written(format.word()).is_some(), "{format:?}");
        }
        assert!(read_names().starts_with("CSV, ") && written_names().ends_with(" and openmetrics"));
    }
}
