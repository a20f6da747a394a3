use super::*;
use crate::goal::{Findings, read_text};
use crate::loggops::{NO_PROGRESS, Noise, Rules, Run, run};

/// When a receive that waits for a message is done.
fn received(net: Network, bytes: u64, rules: Rules) -> u64 {
    let text = format!(
        "num_ranks 2\nrank 0 {{\ns: send {bytes}b to 1\n}}\nrank 1 {{\nr: recv {bytes}b from 0\n}}\n"
    );
    let program = read_text(text.as_bytes(), &mut Findings::default()).unwrap();
    let noise = &Noise::None;
    let how = Run { net, ranges: &[], levels: &[], rules, noise, threads: 1, progress: NO_PROGRESS };
    run(&program, &how).unwrap().finish[1]
}

#[test]
fn a_transfer_takes_what_the_engine_says() {
    let per_byte = [0, 40_000, 1_300_000, 6_000_000].map(PerByte::from_femtoseconds);
    let pairs = per_byte.into_iter().flat_map(|gap| per_byte.map(|overhead| (gap, overhead)));
    for (gap_per_byte, overhead_per_byte) in pairs {
        // The larger sizes go by rendezvous.
        let (overhead, gap, eager_limit) = (300, 200, 4096);
        let net = Network { latency: 1700, overhead, gap, gap_per_byte, overhead_per_byte, eager_limit };
        for bytes in [0, 1, 2, 14, 4096, 4097, 1_000_003] {
            for rules in [Rules::Physical, Rules::Call] {
                assert_eq!(net.transfer_ns(bytes), received(net, bytes, rules), "{bytes} B, {net:?}");
            }
        }
    }
}

#[test]
fn the_least_overhead_is_that_of_any_size_and_level() {
    let of = |overhead| Network { overhead, ..Network::default() };
    let range = |overhead| SizeRange { from_bytes: 1, to_bytes: 8, network: of(overhead) };
    let mut named = NamedNetwork { ranges: vec![range(70)], ..of(90).into() };
    assert_eq!(named.least_overhead(), 70);
    named.levels = vec![Level { ranks: 4, network: of(60), ranges: vec![range(50)] }];
    assert_eq!(named.least_overhead(), 50);
    named.ranges = vec![range(40)];
    assert_eq!(named.least_overhead(), 40);
    assert_eq!(NamedNetwork::from(of(30)).least_overhead(), 30);
}
