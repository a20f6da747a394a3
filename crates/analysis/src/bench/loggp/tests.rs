#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;

use proptest::prelude::*;
use quell_recording::rank_file::RankFile;
use quell_sim::loggops::{Level, Network, PerByte, SizeRange};

use super::check;
use super::preset::Preset;
use super::{Document, KindName, analyse};

/// A file of rank 0, as stored on disk.
#[derive(Default)]
struct Written(Vec<u8>);

impl Written {
    fn block(&mut self, kind: &[u8; 4], payload: &[u8]) {
        self.0.extend(kind);
        self.0.extend([0; 4]);
        self.0.extend((payload.len() as u64).to_le_bytes());
        self.0.extend(payload);
    }

    fn facts(&mut self, text: &str) {
        self.block(b"FACT", text.as_bytes());
    }

    fn row(&mut self, values: &[f64]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| (value.round() as u64).to_le_bytes()).collect();
        self.block(b"ROWS", &bytes);
    }
}

/// The file that `mpi/bench/loggp.c` would write for a network with these times by size: half a round trip, interval, send, receive.
fn file_of(times: impl Fn(u64) -> [f64; 4], eager_limit: u64, noise: impl Fn(u64) -> f64) -> RankFile {
    let mut file = Written::default();
    file.facts("quell-rank 1\nrank 0\nhost a\nmpi Some MPI\nunix_ns 5\n");
    let mut sample = 0;
    for round in 0..5 {
        file.facts("series loggp inter\ncolumns round bytes trips trips_ns burst_ns paced_ns delays_ns sends_ns receives_ns\n");
        file.facts("messages 32\nlate_messages 8\npartner 1\npartner_host b\n");
        for bytes in (0..=16).flat_map(|power| [1u64 << power, 3 << power]).filter(|bytes| *bytes <= 65536) {
            let [half, interval, send, receive] = times(bytes);
            for _ in 0..5 {
                sample += 1;
                let more = noise(sample);
                let (trip, delays) = (2.0 * half, 31.0 * 2.0 * half);
                let burst = trip + 31.0 * interval + more;
                let paced = trip + 31.0 * send + delays + more;
                let late = [8.0 * send + more, 8.0 * receive + more];
                let (round, bytes) = (round as f64, bytes as f64);
                file.row(&[round, bytes, 16.0, 16.0 * trip + more, burst, paced, delays, late[0], late[1]]);
            }
        }
        file.facts("series loggp inter threshold\ncolumns round bytes send_ns late_ns\n");
        for bytes in [1, eager_limit, eager_limit + 1, 1 << 20] {
            let waited = if bytes > eager_limit { 4e6 } else { 500.0 };
            file.row(&[round as f64, bytes as f64, waited, 4e6]);
        }
    }
    file.facts("ended well\n");
    RankFile::parse(&file.0).unwrap()
}

/// The times that the simulator computes with these parameters.
fn times_of(net: &Network) -> impl Fn(u64) -> [f64; 4] + '_ {
    move |bytes| {
        let (beyond, overhead) = ((bytes - 1) as f64, net.overhead as f64);
        let on_wire = beyond * net.gap_per_byte.as_nanos();
        let cpu = overhead + beyond * net.overhead_per_byte.as_nanos();
        let latency = net.latency as f64;
        // A rendezvous has a request and an answer before its data.
        let before = if bytes > net.eager_limit { 2.0 * (overhead + latency) } else { 0.0 };
        let half = before + 2.0 * overhead + latency + on_wire;
        [half, before + net.gap as f64 + on_wire, cpu, cpu]
    }
}

fn near(what: &str, found: f64, expected: f64) {
    assert!((found - expected).abs() <= 0.03 * expected + 2.0, "{what}: {found} is not {expected}");
}

fn check_against(document: &Document, net: &Network) {
    let [kind] = &document.kinds[..] else { panic!("one kind") };
    assert_eq!((kind.kind, kind.partner, kind.rounds), (KindName::Inter, 1, 5));
    assert_eq!(kind.hosts, ["a", "b"]);
    let found = &kind.parameters;
    near("L", found.latency_ns.value, net.latency as f64);
    near("o", found.overhead_ns.value, net.overhead as f64);
    near("o_s", found.send_overhead_ns.value, net.overhead as f64);
    near("g", found.gap_ns.value, net.gap as f64);
    let (rate, expected) = (found.gap_per_byte_ns.value, net.gap_per_byte.as_nanos());
    assert!((rate - expected).abs() <= 0.02 * expected + 0.001, "G: {rate} is not {expected}");
    assert_eq!(kind.eager_limit_bytes.value, net.eager_limit as f64);
    for range in &kind.ranges {
        assert!(range.worst_residual_percent <= 8.0 && range.latency_ns.low <= range.latency_ns.high);
    }
}

fn net(latency: u64, overhead: u64, gap: u64, picoseconds: u64, eager_limit: u64) -> Network {
    Network {
        latency,
        overhead,
        gap,
        gap_per_byte: PerByte::from_femtoseconds(1000 * picoseconds),
        overhead_per_byte: PerByte::from_femtoseconds(100 * picoseconds),
        eager_limit,
    }
}

#[test]
fn known_parameters_come_back() {
    let net = net(1200, 400, 900, 80, 65536);
    let document = analyse(&[file_of(times_of(&net), net.eager_limit, |_| 0.0)]).unwrap();
    check_against(&document, &net);
    assert_eq!(document.kinds[0].ranges.len(), 1);
    assert!(document.warnings.is_empty(), "{:?}", document.warnings);
}

#[test]
fn noise_of_some_samples_changes_nothing() {
    let net = net(1200, 400, 900, 80, 65536);
    let noise = |sample: u64| if sample.is_multiple_of(3) { 250_000.0 } else { 0.0 };
    check_against(&analyse(&[file_of(times_of(&net), net.eager_limit, noise)]).unwrap(), &net);
}

#[test]
fn another_protocol_is_another_range() {
    let small = net(300, 50, 100, 500, 1024);
    let large = net(2000, 600, 1500, 50, 1024);
    let times = |bytes: u64| times_of(if bytes <= 1024 { &small } else { &large })(bytes);
    let document = analyse(&[file_of(times, 1024, |_| 0.0)]).unwrap();
    let kind = &document.kinds[0];
    let [first, second] = &kind.ranges[..] else { panic!("{:?}", kind.ranges) };
    assert_eq!((first.from_bytes, first.to_bytes, second.from_bytes), (1, 1024, 1536));
    let [latency, overhead] = [second.latency_ns.value, second.overhead_ns.value];
    near("3·L + 4·o", 3.0 * latency + 4.0 * overhead, 8400.0);
    near("2·(L + o) + g", 2.0 * (latency + overhead) + second.gap_ns.value, 6700.0);
    near("netgauge's g", second.interval_fit.gap_ns, 6700.0);
    let preset = Preset::from_document(&document, kind, "2026-11-21");
    let found = |bytes| SizeRange::find(&preset.ranges, bytes);
    assert_eq!((found(1024), found(1025)), (Some(&preset.ranges[0]), Some(&preset.ranges[1])));
    assert_eq!(found(1 << 30), None);
}

#[test]
fn what_is_simulated_is_what_was_measured() {
    let cases = [
        (net(1200, 400, 900, 80, 65536), 1024),
        (net(0, 90, 90, 500, 256), 1),
        (net(1200, 400, 900, 80, 256), 1024),
    ];
    for (net, bytes) in cases {
        let [half, interval, ..] = times_of(&net)(bytes);
        near("ping-pong", check::pingpong((net, &[]), bytes, 10).unwrap(), 20.0 * half);
        let answer = (2 * net.overhead + net.latency) as f64;
        near("scatter", check::scatter((net, &[]), bytes, 10, 1).unwrap(), 9.0 * interval + half + answer);
    }
}

#[test]
fn what_holds_no_times_is_refused() {
    assert!(analyse(&[]).unwrap_err().contains("rank 0"));
    let mut file = Written::default();
    file.facts("quell-rank 1\nrank 0\n");
    assert!(analyse(&[RankFile::parse(&file.0).unwrap()]).unwrap_err().contains("no messages"));
}

const PRESET: &str = "L_ns = 1\no_ns = 2\ng_ns = 3.4\nG_ns_per_byte = 0.5\nO_ns_per_byte = 0\nS_bytes = 4\n";

#[test]
fn presets_are_read_and_refused_with_a_reason() {
    let preset = Preset::from_toml(PRESET).unwrap();
    assert_eq!((preset.net.latency, preset.net.gap, preset.net.eager_limit), (1, 3, 4));
    let range = "[[range]]\nfrom_bytes = 1\nto_bytes = 8\nL_ns = 1\no_ns = 2\ng_ns = 3\nG_ns_per_byte = 0.5\nO_ns_per_byte = 0\n";
    let near = |ranks: u32| format!("[[level]]\nranks = {ranks}\n{PRESET}");
    for (text, reason) in [
        (PRESET.replace("L_ns = 1\n", ""), "L_ns"),
        (PRESET.replace("L_ns = 1\n", "L_ns = -1\n"), "below 0"),
        (PRESET.replace("0.5", "nan"), "not a number"),
        (PRESET.replace("0.5", "1e10"), "more than"),
        (PRESET.replace("L_ns = 1\n", "L_ns = inf\n"), "more than"),
        (PRESET.replace("S_bytes = 4", "S_bytes = 9223372036854775807"), "more than"),
        (PRESET.replace("S_bytes = 4", "S_bytes = -4"), "S_bytes"),
        (PRESET.replace("S_bytes", "s_bytes"), "s_bytes"),
        (format!("{PRESET}{range}{range}"), "range 2"),
        (format!("{PRESET}{}", range.replace("to_bytes = 8", "to_bytes = 0")), "range 1"),
        ("L_ns".into(), "expected"),
        (format!("{PRESET}{}", near(1)), "2 or more ranks"),
        (format!("{PRESET}{}{}", near(4), near(4)), "whole groups of 4"),
        (format!("{PRESET}{}{}", near(4), near(6)), "whole groups of 4"),
        (format!("{PRESET}{}", near(4).replace("L_ns = ", "L_ns = -")), "level 1: L_ns"),
        (format!("{PRESET}{}", near(4).replace("S_bytes = 4\n", "")), "S_bytes"),
        ((1..10).fold(PRESET.into(), |text, level| text + &near(1 << level)), "9 levels"),
    ] {
        let error = Preset::from_toml(&text).unwrap_err();
        assert!(error.contains(reason), "{error} ≠ {reason}");
    }
    let preset = Preset::from_toml(&format!("{PRESET}{range}")).unwrap();
    assert_eq!(SizeRange::find(&preset.ranges, 0), preset.ranges.first());
    let text = format!("{PRESET}{}{}", near(4), range.replace("[[range]]", "[[level.range]]"));
    let [level] = &Preset::from_toml(&text).unwrap().levels[..] else { panic!("one level") };
    assert_eq!((level.ranks, level.network, &level.ranges), (4, preset.net, &preset.ranges));
}

proptest! {
    #[test]
    fn any_parameters_of_a_network_come_back(
        latency in 0u64..50_000, overhead in 50u64..3_000, more in 0u64..10_000, picoseconds in 1u64..2_000,
    ) {
        let net = net(latency, overhead, overhead + more, picoseconds, 65536);
        check_against(&analyse(&[file_of(times_of(&net), net.eager_limit, |_| 0.0)]).unwrap(), &net);
    }

    #[test]
    fn a_preset_is_read_as_it_was_written(
        times in prop::array::uniform3(0u64..1 << 50), fs in 0u64..1 << 40, eager_limit in 0u64..1 << 62, source: String,
        ranges in prop::collection::vec((1u64..1000, 0u64..1 << 40), 0..5), levels in prop::collection::vec(2u32..9, 0..4),
    ) {
        let net = Network {
            latency: times[0], overhead: times[1], gap: times[2], eager_limit,
            gap_per_byte: PerByte::from_femtoseconds(fs), overhead_per_byte: PerByte::default(),
        };
        let mut from_bytes = 1;
        let mut preset = Preset { net, ranges: vec![], levels: vec![], source, hosts: vec!["a\"b".into()], date: "2026-11-21".into() };
        for (length, latency) in ranges {
            let network = Network { latency, ..net };
            preset.ranges.push(SizeRange { from_bytes, to_bytes: from_bytes + length, network });
            from_bytes += length + 1;
        }
        let mut ranks = 1;
        for (number, more) in levels.into_iter().enumerate() {
            ranks *= more;
            let ranges = preset.ranges[..number.min(preset.ranges.len())].to_vec();
            preset.levels.push(Level { ranks, network: Network { gap: u64::from(ranks), ..net }, ranges });
        }
        prop_assert_eq!(Preset::from_toml(&preset.to_toml().unwrap()), Ok(preset));
    }

    #[test]
    fn any_rows_end_in_a_document_or_a_reason(
        rows in prop::collection::vec(prop::array::uniform9(any::<u64>()), 0..40), messages: u64, small in 0u64..4,
    ) {
        let mut facts = String::from("series loggp intra\ncolumns round bytes trips trips_ns burst_ns paced_ns delays_ns sends_ns receives_ns\n");
        writeln!(facts, "messages {messages}\nlate_messages 8").unwrap();
        let mut file = Written::default();
        file.facts("quell-rank 1\nrank 0\n");
        file.facts(&facts);
        for row in rows {
            let row = row.map(|value| value >> (small * 20));
            let bytes: Vec<u8> = row.iter().flat_map(|value| value.to_le_bytes()).collect();
            file.block(b"ROWS", &bytes);
        }
        let _ = analyse(&[RankFile::parse(&file.0).unwrap()]);
    }
}
