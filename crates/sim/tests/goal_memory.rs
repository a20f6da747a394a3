//! No reader of schedules exceeds its memory bound, whatever a file claims.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use quell_sim::goal::{check_binary, check_text};

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system allocator with a count of the bytes in use.
struct Counted;

fn add(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: every call is passed on unchanged to the system allocator; counting does not touch the memory.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller guarantees what the system allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    // Growing counts old and new size at once, as if the data were copied.
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Allows one measurement at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Peak bytes per byte of input, in addition to buffers of fixed size.
fn per_byte(length: usize, read: impl FnOnce()) -> f64 {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    read();
    let fixed = 1 << 19;
    (PEAK.load(Ordering::Relaxed) - before).saturating_sub(fixed) as f64 / length as f64
}

/// The bound in the documentation of the module `goal`. The largest ratio measured is 10.
const BOUND: f64 = 16.0;

/// Number of lines or operations: just above a power of two, where memory that grows by doubling has just grown.
const N: u32 = 270_000;

#[test]
fn texts_of_any_shape_stay_within_the_bound() {
    let _turn = TURN.lock().unwrap();
    let in_rank = |body: String| format!("num_ranks 1\nrank 0 {{\n{body}}}\n");
    let lines = |line: &dyn Fn(u32) -> String| (0..N).map(line).collect::<String>();
    let shapes = [
        ("equal work", in_rank(lines(&|_| "calc 1\n".into()))),
        ("work of many sizes", in_rank(lines(&|i| format!("calc {i}\n")))),
        ("labels", in_rank(lines(&|i| format!("a{i}:calc {i}\n")))),
        ("short labels", in_rank(lines(&|i| format!("{}:calc 1\n", short(i))))),
        ("repeated labels", in_rank(lines(&|_| "a:calc 1\n".into()))),
        (
            "one dependency many times",
            in_rank("a:calc 1\nb:calc 1\n".to_owned() + &"a requires b\n".repeat(N as usize)),
        ),
        (
            "a circle",
            in_rank(
                lines(&|i| format!("a{i}:calc 1\n"))
                    + &lines(&|i| format!("a{} requires a{i}\n", (i + 1) % N)),
            ),
        ),
        ("many tags", in_rank(lines(&|i| format!("send 1b to 0 tag {i}\n")))),
        ("wrong peers", in_rank(lines(&|i| format!("send 1b to {}\n", i + 1)))),
        ("ranks", format!("num_ranks {N}\n") + &lines(&|i| format!("rank {i}{{}}\n"))),
        ("many promised ranks", "num_ranks 4000000000\nrank 0 {\ncalc 1\n}\n".to_owned()),
        ("one long line", in_rank("x".repeat(3_000_000))),
    ];
    for (name, text) in shapes {
        let bytes = per_byte(text.len(), || drop(check_text(text.as_bytes())));
        println!("{name}: {bytes:.1} bytes per byte");
        assert!(bytes < BOUND, "{name}: {bytes} bytes per byte");
    }
}

/// A label of four letters, different for each number.
fn short(number: u32) -> String {
    [26 * 26 * 26, 26 * 26, 26, 1]
        .map(|place| char::from(b'a' + (number / place % 26) as u8))
        .iter()
        .collect()
}

/// The binary form of ranks with these parts, which follow one another without gaps.
fn binary(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = 4223u64.to_le_bytes().to_vec();
    bytes.extend((parts.len() as u32).to_le_bytes());
    bytes.extend([0, 0]);
    let mut at = 6 + 16 * parts.len() as u64;
    for part in parts {
        bytes.extend(at.to_le_bytes());
        at += part.len() as u64;
        bytes.extend(at.to_le_bytes());
    }
    parts.iter().for_each(|part| bytes.extend(part));
    bytes
}

/// A part with `ops` operations of work, whose sizes count from 0.
fn work(ops: u32) -> Vec<u8> {
    let mut part = [ops, ops].map(u32::to_le_bytes).concat();
    (0..ops).for_each(|op| part.extend(op.to_le_bytes()));
    for op in 0..ops {
        let mut record = [0; 39];
        record[4] = 3;
        record[9..13].copy_from_slice(&op.to_le_bytes());
        part.extend(record);
    }
    part
}

#[test]
fn binaries_of_any_shape_stay_within_the_bound() {
    let _turn = TURN.lock().unwrap();
    let with = |mut bytes: Vec<u8>, at: usize, number: u32| {
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        bytes
    };
    let one = binary(&[work(N)]);
    let shapes = [
        ("empty ranks", binary(&vec![work(0); N as usize])),
        ("small ranks", binary(&vec![work(1); N as usize])),
        ("many promised ranks", with(one.clone(), 8, u32::MAX)),
        ("many promised operations", with(one.clone(), 30, u32::MAX)),
        ("many promised dependents", with(one.clone(), 30 + 8 + 4 * N as usize + 23, u32::MAX)),
        ("work of many sizes", one),
    ];
    for (name, bytes) in shapes {
        let taken = per_byte(bytes.len(), || drop(check_binary(&bytes[..])));
        println!("{name}: {taken:.1} bytes per byte");
        assert!(taken < BOUND, "{name}: {taken} bytes per byte");
    }
}
