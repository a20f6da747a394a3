//! Files and pages as trace-cmd.dat.v6(5), trace-cmd.dat.v7(5) and the kernel's ring_buffer.h describe them, made by hand.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use super::super::{Key, Names, What};
use super::*;
use crate::formats::content::Imported;
use crate::{HistogramKind, Source};

fn number(value: u64, size: usize, big: bool) -> Vec<u8> {
    let bytes = value.to_be_bytes()[8 - size..].to_vec();
    if big { bytes } else { bytes.into_iter().rev().collect() }
}

/// The first word of an entry of a page: 5 bits for its kind, and 27 for the time since the one before.
fn entry(kind: u32, delta: u32, big: bool) -> u32 {
    if big { kind << 27 | delta } else { delta << 5 | kind }
}

/// A page: the time, the length with the flags, and the entries.
fn page(time: u64, flags: u64, words: &[u32], big: bool) -> Vec<u8> {
    let commit = words.len() as u64 * 4 + flags;
    let words = words.iter().flat_map(|word| number((*word).into(), 4, big)).collect();
    [number(time, 8, big), number(commit, 8, big), words].concat()
}

type Found = (u64, Vec<(u64, usize)>);

/// The number of lost events, and each event's time and length; 0 where events were lost.
fn events_in(data: &[u8], size: usize, layout: pages::Layout, big: bool) -> Result<Found, String> {
    let mut found = Vec::new();
    let mut each = |time: u64, event: &[u8]| {
        found.push((time, event.len()));
        Ok(())
    };
    let lost = pages::each(Bytes { all: data, at: 0, big }, size as u32, layout, &mut each)?;
    Ok((lost, found))
}

#[test]
fn each_entry_of_a_page_moves_the_clock_by_what_the_kernel_says() {
    for big in [false, true] {
        let entry = |kind, delta| entry(kind, delta, big);
        let high = 1u64 << 60;
        let words = [
            [entry(1, 3), 0xffff].as_slice(),      // one word
            &[entry(30, 5), 1, entry(2, 0), 0, 0], // more time, then two words
            &[entry(29, 7), 8, 0],                 // padding of one more word
            &[entry(0, 2), 4 + 6, 0, 0],           // six bytes, in two words
            &[entry(31, 9), 2, entry(1, 1), 0],    // another time, whose upper bits are those of the page
            &[entry(29, 0), entry(1, 1), 0],       // the rest is empty
        ]
        .concat();
        let data = page(high + 1_000, 0, &words, big);
        let later = high + 1_003 + 5 + (1 << 27);
        let expected = [(high + 1_003, 4), (later, 8), (later + 7 + 2, 8), (high + 9 + (2 << 27) + 1, 4)];
        assert_eq!(events_in(&data, data.len(), pages::Layout::default(), big), Ok((0, expected.to_vec())));
    }
}

#[test]
fn lost_events_are_as_many_as_the_page_states() {
    let (missed, stored) = (1 << 31, 1 << 30);
    let lost = |flags, behind: &[u8]| {
        let data = [page(5, flags, &[entry(1, 0, false), 0], false), behind.to_vec()].concat();
        let (lost, events) = events_in(&data, data.len(), pages::Layout::default(), false).unwrap();
        // The loss comes before the event.
        let lengths: Vec<usize> = events.iter().map(|event| event.1).collect();
        assert_eq!(lengths, if flags & missed != 0 { vec![0, 4] } else { vec![4] });
        lost
    };
    let seven = number(7, 8, false);
    assert_eq!((lost(0, &seven), lost(0, &[])), (0, 0));
    assert_eq!((lost(stored, &seven), lost(stored, &[])), (0, 0));
    assert_eq!(lost(missed, &seven), 1);
    assert_eq!((lost(missed | stored, &seven), lost(missed | stored, &[])), (7, 1));
    // Each page adds its own.
    let one = [page(5, missed | stored, &[entry(1, 0, false), 0], false), seven].concat();
    let two = [one.clone(), one.clone()].concat();
    let found = events_in(&two, one.len(), pages::Layout::default(), false).unwrap();
    assert_eq!(found, (14, vec![(5, 0), (5, 4), (5, 0), (5, 4)]));
}

#[test]
fn a_page_that_contradicts_itself_is_refused() {
    let read = |words: &[u32], size: usize| {
        events_in(&page(5, 0, words, false), size, pages::Layout::default(), false)
    };
    let entry = |kind, delta| entry(kind, delta, false);
    assert!(read(&[entry(0, 0), 3], 24).unwrap_err().contains("shorter than its own length"));
    assert_eq!(read(&[entry(0, 0), 4], 24), Ok((0, vec![(5, 0)])));
    assert!(read(&[entry(1, 0)], 24).unwrap_err().contains("cut off"), "its word is missing");
    assert!(read(&[entry(1, 0), 0], 23).unwrap_err().contains("pages of 23 bytes"));
    let mut long = page(5, 0, &[entry(1, 0), 0], false);
    long[8] += 1;
    assert!(events_in(&long, 24, pages::Layout::default(), false).unwrap_err().contains("longer than pages"));
}

fn header_page(commit: (u32, u32), data: u32) -> String {
    format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:{};\tsize:{};\tsigned:1;\n\
         \tfield: char data;\toffset:{data};\tsize:4080;\tsigned:1;\n",
        commit.0, commit.1
    )
}

#[test]
fn the_head_of_a_page_lies_as_the_file_states() {
    // As a kernel of 32 bits has it.
    let layout = pages::Layout::read(&header_page((8, 4), 12)).unwrap();
    let words = [entry(1, 3, false), 0].map(|word| number(word.into(), 4, false)).concat();
    let data = [number(100, 8, false), number(8, 4, false), words].concat();
    assert_eq!(events_in(&data, data.len(), layout, false), Ok((0, vec![(103, 4)])));
    for (commit, data, good) in [
        ((8, 8), 64, true),
        ((8, 8), 65, false),
        ((64, 4), 16, true),
        ((65, 4), 16, false),
        ((8, 2), 16, false),
    ] {
        assert_eq!(pages::Layout::read(&header_page(commit, data)).is_ok(), good, "{commit:?} {data}");
    }
}

/// A format as in the kernel's `events/GROUP/EVENT/format`.
fn format_of(name: &str, id: u16, fields: &[(&str, usize, usize)]) -> String {
    let common = ("unsigned short common_type", 0, 2);
    let field = |(declared, at, size): &(&str, usize, usize)| {
        format!("\tfield:{declared};\toffset:{at};\tsize:{size};\tsigned:0;\n")
    };
    let fields: String = [common].iter().chain(fields).map(field).collect();
    format!("name: {name}\nID: {id}\nformat:\n{fields}\nprint fmt: \"\"\n")
}

/// Decodes an event with 8 bytes in front of its fields.
fn decoded(name: &str, fields: &[(&str, usize, usize)], data: &[Vec<u8>]) -> Result<What, String> {
    let mut formats = Formats::default();
    formats.add("any", &format_of(name, 300, fields)).unwrap();
    let event = [number(300, 8, false), data.concat()].concat();
    let (found, what) = formats.what(Bytes { all: &event, at: 0, big: false }, &mut Names::default())?;
    assert_eq!(found, name);
    Ok(what)
}

#[test]
fn each_event_is_what_its_fields_say() {
    let n = |value: u64, size| number(value, size, false);
    let text = |text: &str, size: usize| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(size, 0);
        bytes
    };
    let elsewhere = |at: u64, length: u64| n(length << 16 | at, 4);
    let span = [("u64 start", 8, 8), ("u64 duration", 16, 8)];
    let tick_vector = [("int vector", 8, 4)];
    let ended = |source, pid| What::Ended { source, pid, start: 70_000, net: 900 };
    let irq = |name: &str| Source::Irq(name.into());
    let late = |kind| What::Late { kind, ns: 4_321 };
    let timerlat = [("unsigned int context", 8, 4), ("u64 timer_latency", 16, 8)];
    let latency = |context| vec![n(context, 8), n(4_321, 8)];
    for (name, fields, data, expected) in [
        (
            "irq_handler_entry",
            [("int irq", 8, 4), ("__data_loc char[] name", 12, 4)].as_slice(),
            vec![n(33, 4), elsewhere(16, 5), text("eth0", 8)],
            What::Enter(Key::Irq(33), irq("eth0")),
        ),
        (
            "irq_handler_entry",
            &[("int irq", 8, 4), ("__data_loc char[] name", 12, 4)],
            vec![n(11, 4), elsewhere(16, 11), text("arch_timer", 12)],
            What::Enter(Key::Irq(11), Source::Tick),
        ),
        ("irq_handler_exit", &[("int irq", 8, 4)], vec![n(33, 4)], What::Exit(Key::Irq(33))),
        (
            "softirq_entry",
            &[("unsigned int vec", 8, 4)],
            vec![n(3, 4)],
            What::Enter(Key::Softirq(3), Source::Softirq("NET_RX".into())),
        ),
        ("softirq_exit", &[("unsigned int vec", 8, 4)], vec![n(3, 4)], What::Exit(Key::Softirq(3))),
        ("ipi_entry", &[], vec![], What::Enter(Key::Ipi, Source::Ipi("unnamed".into()))),
        ("ipi_exit", &[], vec![], What::Exit(Key::Ipi)),
        (
            "sched_switch",
            &[("pid_t next_pid", 8, 4), ("char next_comm[16]", 12, 16)],
            vec![n(812, 4), text("kworker/3:1", 16)],
            What::Switch { pid: 812, comm: "kworker/3:1".into() },
        ),
        (
            "nmi_handler",
            &[("s64 delta_ns", 8, 8)],
            vec![n(55, 8)],
            What::Took { source: Source::Nmi, ns: 55 },
        ),
        (
            "nmi_handler",
            &[("s64 delta_ns", 8, 8)],
            vec![n(u64::MAX, 8)],
            What::Took { source: Source::Nmi, ns: 0 },
        ),
        (
            "sample_threshold",
            &span,
            vec![n(70_000, 8), n(900, 8)],
            What::Gap { start: 70_000, duration: 900 },
        ),
        ("nmi_noise", &span, vec![n(70_000, 8), n(900, 8)], ended(Source::Nmi, 0)),
        (
            "thread_noise",
            &[span[0], span[1], ("char comm[16]", 24, 16), ("pid_t pid", 40, 4)],
            vec![n(70_000, 8), n(900, 8), text("rcu_preempt", 16), n(17, 4)],
            ended(Source::Task("rcu_preempt".into()), 17),
        ),
        (
            "irq_noise",
            &[span[0], span[1], ("__data_loc char[] desc", 24, 4), ("int vector", 28, 4)],
            vec![n(70_000, 8), n(900, 8), elsewhere(32, 4), n(30, 4), text("ahci", 4)],
            ended(irq("ahci"), 0),
        ),
        (
            "softirq_noise",
            &[span[0], span[1], ("int vector", 24, 4)],
            vec![n(70_000, 8), n(900, 8), n(1, 4)],
            ended(Source::Softirq("TIMER".into()), 0),
        ),
        (
            "osnoise",
            &[("u64 noise", 8, 8), ("u64 runtime", 16, 8)],
            vec![n(7, 8), n(1_000, 8)],
            What::Period { watched: 1_000_000, noise: 7_000 },
        ),
        ("timerlat", &timerlat, latency(0), late(HistogramKind::IrqLatency)),
        ("timerlat", &timerlat, latency(1), late(HistogramKind::ThreadLatency)),
        ("timerlat", &timerlat, latency(2), late(HistogramKind::UserLatency)),
        ("local_timer_entry", &tick_vector, vec![n(236, 4)], What::Enter(Key::Vector(236), Source::Tick)),
        ("local_timer_exit", &tick_vector, vec![n(236, 4)], What::Exit(Key::Vector(236))),
        (
            "reschedule_entry",
            &tick_vector,
            vec![n(253, 4)],
            What::Enter(Key::Vector(253), Source::Ipi("reschedule".into())),
        ),
        ("sys_exit", &tick_vector, vec![n(1, 4)], What::Other),
    ] {
        assert_eq!(decoded(name, fields, &data), Ok(expected), "{name}");
    }
    let error = decoded("irq_handler_exit", &[("int other", 8, 4)], &[n(1, 4)]).unwrap_err();
    assert!(error.contains("irq_handler_exit: it has no field `irq`"), "{error}");
    let unknown = Formats::default();
    let found = unknown.what(Bytes { all: &[9, 9], at: 0, big: false }, &mut Names::default());
    assert_eq!(found, Ok(("of no known format", What::Other)));
}

const VECTOR: [(&str, usize, usize); 1] = [("int vector", 8, 4)];

/// The timer's interrupt from 1,000 to 1,500, and what the page says of lost events.
fn tick_page(lost: u64) -> Vec<u8> {
    let flags = if lost > 0 { 3 << 30 } else { 0 };
    let words = [entry(3, 0, false), 1, 0, 236, entry(3, 500, false), 2, 0, 236];
    [page(1_000, flags, &words, false), number(lost, 8, false)].concat()
}

fn sized(text: &str) -> Vec<u8> {
    [number(text.len() as u64, 8, false), text.as_bytes().to_vec()].concat()
}

fn formats_of_a_group(name: &str, texts: &[String]) -> Vec<u8> {
    let texts: Vec<u8> = texts.iter().flat_map(|text| sized(text)).collect();
    let count = |count: usize| number(count as u64, 4, false);
    [count(1), format!("{name}\0").into_bytes(), count(usize::from(!texts.is_empty()) * 2), texts].concat()
}

fn option(id: u16, data: &[u8]) -> Vec<u8> {
    [number(id.into(), 2, false), number(data.len() as u64, 4, false), data.to_vec()].concat()
}

/// A file of version 6 with one CPU. Each name is one of another instance, whose events are the same part of the file.
fn version_6(options: &[Vec<u8>], instances: &[String], lost: u64) -> Vec<u8> {
    let data = tick_page(lost);
    let build = |description: usize, at: usize| {
        let ticks = ["local_timer_entry", "local_timer_exit"];
        let ticks: Vec<String> =
            ticks.iter().zip(1..).map(|(name, id)| format_of(name, id, &VECTOR)).collect();
        let instance = |name: &String| {
            option(3, &[number(description as u64, 8, false), format!("{name}\0").into_bytes()].concat())
        };
        [
            MAGIC.to_vec(),
            b"6\0\0\x08".to_vec(),
            number(data.len() as u64, 4, false),
            b"header_page\0".to_vec(),
            sized(&header_page((8, 8), 16)),
            b"header_event\0".to_vec(),
            sized("any"),
            number(0, 4, false),
            formats_of_a_group("irq_vectors", &ticks),
            vec![0; 4 + 4 + 8],
            number(1, 4, false),
            b"options  \0".to_vec(),
            options.concat(),
            instances.iter().flat_map(instance).collect(),
            number(0, 2, false),
            b"flyrecord\0".to_vec(),
            number(at as u64, 8, false),
            number(data.len() as u64, 8, false),
        ]
        .concat()
    };
    let head = build(0, 0).len();
    [build(head - 10 - 16, head), data].concat()
}

fn read_file(file: &[u8]) -> Result<Imported, String> {
    read(file)?.finish(Path::new("in"))
}

#[test]
fn a_file_of_version_6_is_read_with_its_options() {
    let options = [
        option(2, b"CPU: 0\nentries: 9\noverrun: 5\n"),
        option(2, b"CPU: 1\noverrun: 7\n"),
        option(4, b"local global [mono] boot\n\0"),
        option(5, b"Linux here 6.1\0"),
    ];
    for (of_pages, lost) in [(0, 12), (3, 12), (20, 20)] {
        let found = read_file(&version_6(&options, &["other".into()], of_pages)).unwrap().recording;
        let interval = &found.intervals[0].intervals[0];
        assert_eq!((&interval.source, interval.duration.as_nanos()), (&Source::Tick, 500));
        assert_eq!(found.manifest.kernel.as_deref(), Some("Linux here 6.1"));
        assert_eq!(found.manifest.zero_monotonic_ns, Some(1_000));
        let warnings = &found.manifest.warnings;
        assert!(warnings.contains(&Warning::EventsLost { events: lost }), "{warnings:?}");
        assert!(warnings.contains(&Warning::InstancesLeftOut { instances: vec!["other".into()] }));
    }
    let plain = read_file(&version_6(&[option(4, b"[local] mono")], &[], 0)).unwrap().recording;
    assert_eq!(plain.manifest.zero_monotonic_ns, None);
    assert!(plain.manifest.warnings.is_empty(), "{:?}", plain.manifest.warnings);
    for clock in ["[counter]", "x86-tsc"] {
        let error = read_file(&version_6(&[option(4, clock.as_bytes())], &[], 0)).unwrap_err();
        assert!(error.contains("counts no ns"), "{error}");
    }
}

#[test]
fn a_file_of_version_6_has_at_most_64_instances() {
    let file = |count: usize| version_6(&[], &vec!["i".to_owned(); count], 0);
    let found = read_file(&file(64)).unwrap().recording;
    assert_eq!(found.manifest.warnings, [Warning::InstancesLeftOut { instances: vec!["i".into(); 64] }]);
    assert!(read_file(&file(65)).unwrap_err().contains("more than 64 instances"));
}

/// A file of version 7 with these numbers of instances and of sections of options.
fn version_7(buffers: usize, sections: usize, twice: bool) -> Vec<u8> {
    let mut file = [MAGIC, b"7\0\0\x08"].concat();
    file.extend(number(64, 4, false));
    file.extend(b"none\0\0");
    let first = file.len();
    file.extend([0; 8]);
    let data = tick_page(0);
    let data_at = file.len();
    file.extend(&data);
    let mut section = |id: u16, data: &[u8]| {
        let at = file.len() as u64;
        file.extend([number(id.into(), 2, false), vec![0; 6], sized_bytes(data)].concat());
        number(at, 8, false)
    };
    let header = [b"header_page\0".to_vec(), sized(&header_page((8, 8), 16))].concat();
    let header = section(16, &[header, b"header_event\0".to_vec(), sized("any")].concat());
    let enter = [number(1, 4, false), sized(&format_of("local_timer_entry", 1, &VECTOR))].concat();
    let enter = section(17, &enter);
    let exit = [
        number(1, 4, false),
        b"irq_vectors\0".to_vec(),
        number(1, 4, false),
        sized(&format_of("local_timer_exit", 2, &VECTOR)),
    ];
    let exit = section(18, &exit.concat());
    let buffer_at = section(3, &[]);
    let buffer = [
        buffer_at,
        b"b\0mono\0".to_vec(),
        number(data.len() as u64, 4, false),
        number(1, 4, false),
        number(0, 4, false),
        number(data_at as u64, 8, false),
        number(data.len() as u64, 8, false),
    ];
    let mut options = [option(16, &header), option(17, &enter), option(18, &exit)].concat();
    if twice {
        options.extend(option(17, &enter));
    }
    (0..buffers).for_each(|_| options.extend(option(3, &buffer.concat())));
    // The last section ends without a pointer to another one.
    let mut next = section(0, &options);
    for _ in 1..sections {
        next = section(0, &option(0, &next));
    }
    file[first..first + 8].copy_from_slice(&next);
    file
}

fn sized_bytes(data: &[u8]) -> Vec<u8> {
    [number(data.len() as u64, 8, false), data.to_vec()].concat()
}

#[test]
fn a_file_of_version_7_is_read_section_by_section() {
    let read = |file: &[u8]| read_file(file).map(|found| found.recording);
    for sections in [1, 64] {
        let found = read(&version_7(1, sections, false)).unwrap();
        let interval = &found.intervals[0].intervals[0];
        assert_eq!((&interval.source, interval.duration.as_nanos()), (&Source::Tick, 500));
    }
    assert!(read(&version_7(1, 65, false)).unwrap_err().contains("point at themselves"));
    assert!(read(&version_7(64, 1, false)).is_ok());
    assert!(read(&version_7(65, 1, false)).unwrap_err().contains("more than 64 instances"));
    assert!(read(&version_7(1, 1, true)).unwrap_err().contains("section 17 twice"));
    assert!(read(&version_7(0, 1, false)).unwrap_err().contains("holds no events"));
}
