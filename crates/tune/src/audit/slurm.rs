//! Whether Slurm reserves cores of this node for the system, according to slurm.conf.

use super::look::Verdict;

/// The cores that slurm.conf reserves on a host; none is known if the file does not name the host, or leaves it to another file.
pub fn reserved(text: &str, host: &str) -> (Verdict, String) {
    let text = text.replace("\\\n", " ");
    let lines = || text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut default = None;
    let mut found = None;
    for line in lines() {
        let words: Vec<(String, &str)> = line
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .map(|(key, value)| (key.to_ascii_lowercase(), value))
            .collect();
        let Some((_, names)) = words.iter().find(|(key, _)| key == "nodename") else { continue };
        let cores = words.iter().find_map(|(key, value)| cores(key, value));
        if names.eq_ignore_ascii_case("default") {
            default = cores.or(default);
            continue;
        }
        let short = host.split('.').next().unwrap_or(host);
        let hostnames = words.iter().filter(|(key, _)| key == "nodehostname").map(|(_, value)| *value);
        let is_here = |names: &str| names_host(names, host) || names_host(names, short);
        if std::iter::once(*names).chain(hostnames).any(is_here) {
            found = Some(cores.or_else(|| default.clone()));
        }
    }
    let includes = lines().any(|line| {
        line.split_whitespace().next().is_some_and(|first| first.eq_ignore_ascii_case("include"))
    });
    match found {
        Some(Some(Some(set))) => (Verdict::Done, format!("has {set} for {host}")),
        Some(_) if includes => {
            (Verdict::Unseen, format!("includes other files, which may reserve cores of {host}"))
        }
        None if includes => (Verdict::Unseen, format!("includes other files, one of which may name {host}")),
        Some(_) => (Verdict::Not, format!("reserves no core of {host} for the system")),
        None => (Verdict::Unseen, format!("names no node {host}")),
    }
}

/// The cores that a word reserves; the inner none for no cores. Another word says nothing about them. 0 cores are none; the list 0 is CPU 0.
fn cores(key: &str, value: &str) -> Option<Option<String>> {
    match (key, value) {
        ("cpuspeclist", "") | ("corespeccount", "" | "0") => Some(None),
        ("cpuspeclist", _) => Some(Some(format!("CpuSpecList={value}"))),
        ("corespeccount", _) => Some(Some(format!("CoreSpecCount={value}"))),
        _ => None,
    }
}

/// Whether a list of names has a host: `a1,b[1-4,07-12]`.
fn names_host(names: &str, host: &str) -> bool {
    let mut depth = 0;
    let outside = |c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    };
    names.split(outside).any(|name| fits(name, host))
}

/// Whether a name with ranges in brackets stands for a host. Zeros before the first number of a range are before each of its numbers.
fn fits(name: &str, host: &str) -> bool {
    let Some((before, rest)) = name.split_once('[') else { return name == host };
    let Some((ranges, after)) = rest.split_once(']') else { return false };
    let Some(host) = host.strip_prefix(before) else { return false };
    let digits = host.bytes().take_while(u8::is_ascii_digit).count();
    (1..=digits).any(|digits| {
        let (number, rest) = host.split_at(digits);
        ranges.split(',').any(|range| in_range(range, number)) && fits(after, rest)
    })
}

fn in_range(range: &str, text: &str) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let numbers = || Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?, text.parse::<u64>().ok()?));
    let width = first.len();
    numbers().is_some_and(|(first, last, number)| {
        (first..=last).contains(&number) && format!("{number:0width$}") == text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_names_has_its_hosts_and_no_others() {
        for (names, host, expected) in [
            ("node7", "node7", true),
            ("node7", "node70", false),
            ("a,node[1-4,7],b", "node7", true),
            ("a,node[1-4,7],b", "node5", false),
            ("a,node[1-4,7],b", "b", true),
            ("node[001-128]", "node012", true),
            ("node[001-128]", "node12", false),
            ("node[1-12]", "node012", false),
            ("r[1-2]n[1-12]", "r2n11", true),
            ("r[1-2]n[1-12]", "r3n1", false),
            ("node[1-4]-ib", "node2-ib", true),
            ("node[1-", "node1", false),
            ("node[]", "node", false),
            ("", "node1", false),
        ] {
            assert_eq!(names_host(names, host), expected, "{names} {host}");
        }
    }

    #[test]
    fn only_this_nodes_cores_count() {
        let here = "NodeName=n[1-4] CPUs=64";
        for (text, expected) in [
            (format!("{here} CpuSpecList=0,32"), Verdict::Done),
            (format!("{here} \\\n  CoreSpecCount=1"), Verdict::Done),
            (format!("{here} CoreSpecCount=0"), Verdict::Not),
            (format!("{here}\nNodeName=gpu1 CpuSpecList=0"), Verdict::Not),
            (format!("NodeName=DEFAULT CoreSpecCount=2\n{here}"), Verdict::Done),
            (format!("NodeName=DEFAULT CoreSpecCount=2\n{here} CoreSpecCount=0"), Verdict::Not),
            (format!("{here}\nNodeName=DEFAULT CoreSpecCount=2"), Verdict::Not),
            (format!("# {here} CoreSpecCount=2"), Verdict::Unseen),
            ("NodeName=gpu1 CpuSpecList=0".into(), Verdict::Unseen),
            ("NodeName=x NodeHostname=n3 CpuSpecList=0".into(), Verdict::Done),
            (format!("{here}\nInclude nodes.conf"), Verdict::Unseen),
            (format!("{here} CpuSpecList=0\ninclude other.conf"), Verdict::Done),
            ("include /etc/slurm/nodes.conf".into(), Verdict::Unseen),
            ("\u{1b}[2J nan".into(), Verdict::Unseen),
        ] {
            for host in ["n3", "n3.cluster.example"] {
                assert_eq!(reserved(&text, host).0, expected, "{text}");
            }
        }
    }
}
