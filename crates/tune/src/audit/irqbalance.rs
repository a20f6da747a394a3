//! Which CPUs irqbalance leaves alone, according to the file of its environment.

use quell_recording::{Cpu, format_cpu_list, parse_cpu_list};

use super::look::Verdict;
use crate::masks::parse_mask;

/// Whether the file's list of banned CPUs, or its mask, has all the compute CPUs.
pub fn bans(text: &str, compute: Result<&[Cpu], &str>) -> (Verdict, String) {
    // A list goes before a mask.
    let list = value(text, "IRQBALANCE_BANNED_CPULIST");
    let set = list.or_else(|| value(text, "IRQBALANCE_BANNED_CPUS"));
    let Some(set) = set else { return (Verdict::Not, "bans no CPU".into()) };
    let banned = if list.is_some() { parse_cpu_list(set).ok() } else { parse_mask(set).ok() };
    let Some(banned) = banned else {
        return (Verdict::Unseen, format!("bans `{set}`, which is neither a list of CPUs nor a mask"));
    };
    let shown = format_cpu_list(&banned);
    match compute {
        Err(why) => {
            (Verdict::Unseen, format!("bans CPUs {shown}, and the compute CPUs are not known: {why}"))
        }
        Ok(compute) if compute.iter().all(|cpu| banned.contains(cpu)) => {
            (Verdict::Done, format!("bans CPUs {shown}"))
        }
        Ok(compute) => {
            let compute = format_cpu_list(compute);
            (Verdict::Not, format!("bans CPUs {shown}, which are not all of the compute CPUs {compute}"))
        }
    }
}

/// The last value of a variable, without quotes; none if it is empty.
fn value<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let of_line = |line: &'t str| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        let value = line.strip_prefix(name)?.strip_prefix('=')?;
        Some(value.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']).trim())
    };
    text.lines().filter_map(of_line).next_back().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;

    #[test]
    fn a_list_or_a_mask_has_the_compute_cpus() {
        let compute = parse_cpu_list("2-3").unwrap();
        for (text, expected) in [
            ("IRQBALANCE_BANNED_CPULIST=2-3", Verdict::Done),
            ("IRQBALANCE_BANNED_CPULIST=\"1-7\" # all", Verdict::Done),
            ("  export IRQBALANCE_BANNED_CPULIST='2,3'\n", Verdict::Done),
            ("IRQBALANCE_BANNED_CPULIST=2", Verdict::Not),
            ("IRQBALANCE_BANNED_CPULIST=2-3\nIRQBALANCE_BANNED_CPULIST=9", Verdict::Not),
            ("IRQBALANCE_BANNED_CPUS=c", Verdict::Done),
            ("IRQBALANCE_BANNED_CPUS=\"00000000,0000000c\"", Verdict::Done),
            ("IRQBALANCE_BANNED_CPUS=4", Verdict::Not),
            // irqbalance reads the mask only without a list.
            ("IRQBALANCE_BANNED_CPUS=c\nIRQBALANCE_BANNED_CPULIST=9", Verdict::Not),
            ("IRQBALANCE_BANNED_CPUS=c\nIRQBALANCE_BANNED_CPULIST=", Verdict::Done),
            ("IRQBALANCE_BANNED_CPULIST=$(nproc)", Verdict::Unseen),
            ("#IRQBALANCE_BANNED_CPULIST=2-3", Verdict::Not),
            ("IRQBALANCE_ONESHOT=", Verdict::Not),
        ] {
            assert_eq!(bans(text, Ok(&compute)).0, expected, "{text}");
        }
        assert_eq!(bans("IRQBALANCE_BANNED_CPULIST=2-3", Err("why")).0, Verdict::Unseen);
    }
}
