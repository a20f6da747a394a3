//! CPUs for an interrupt or a kernel thread: near those that it has now.

use quell_recording::Cpu;

/// The CPUs of a part among those that it has now; else those of the part on the same NUMA nodes; else all of the part. What serves one node
/// serves it from there: kswapd, and the interrupts of a card.
pub fn near(now: &[Cpu], part: &[Cpu], numa: &[(u32, Vec<Cpu>)]) -> Vec<Cpu> {
    let among = |cpus: &[Cpu]| part.iter().copied().filter(|cpu| cpus.contains(cpu)).collect::<Vec<_>>();
    let kept = among(now);
    if !kept.is_empty() {
        return kept;
    }
    let nodes = numa.iter().filter(|(_, node)| node.iter().any(|cpu| now.contains(cpu)));
    let of_nodes: Vec<Cpu> = nodes.flat_map(|(_, node)| node.iter().copied()).collect();
    let kept = among(&of_nodes);
    if kept.is_empty() { part.to_vec() } else { kept }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;
    use quell_recording::{format_cpu_list, parse_cpu_list};

    #[test]
    fn what_runs_on_a_node_stays_there() {
        let list = |text: &str| parse_cpu_list(text).unwrap();
        let numa = [(0, list("0-3")), (1, list("4-7")), (2, list("8-11"))];
        for (now, wanted) in [
            ("0-11", "0,1,4"),
            ("0-3", "0-1"),
            ("0,2", "0"),
            ("3", "0-1"),
            ("5-7", "4"),
            ("3,7", "0-1,4"),
            // The node keeps no CPU for the system.
            ("8-11", "0-1,4"),
            // Only offline CPUs.
            ("12", "0-1,4"),
        ] {
            let found = near(&list(now), &list("0-1,4"), &numa);
            assert_eq!(format_cpu_list(&found), format_cpu_list(&list(wanted)), "{now}");
        }
    }
}
