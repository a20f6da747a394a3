//! The binding of a node's ranks, in the syntax of each launcher: one rank per core, on the first hardware threads of the compute cores.
//!
//! Numbers are the kernel's, except for Open MPI 5, which counts cores in hwloc's order. MPICH's `user:` and Slurm's `map_cpu:` use
//! the kernel's.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use quell_recording::{Cpu, format_cpu_list};

use super::{Export, File, comments, skipped_section};
use crate::facts::{Facts, Parts};
use crate::masks::format_mask;
use crate::plan::Left;

/// Files for Open MPI, MPICH, srun, and for any launcher that passes a process its rank on the node.
pub fn bindings(facts: &Facts, parts: &Parts, ranks: Option<u32>) -> Export {
    let nodes = compute_cores(facts, parts);
    let cores: usize = nodes.iter().map(Vec::len).sum();
    let asked = ranks.map_or(cores, |ranks| ranks as usize);
    let seats = seats(&nodes, asked);
    let mut left = Vec::new();
    if seats.len() < asked {
        let compute = format_cpu_list(&parts.compute);
        let why = format!("the compute CPUs {compute} have room for {} ranks", seats.len());
        left.push(about(format!("{} of {asked} ranks", asked - seats.len()), why));
    }
    let making = Making { facts, parts, seats };
    let five = making.open_mpi_5();
    if five.is_none() {
        let why = "it counts cores, and some ranks are on second hardware threads; use rank-taskset.sh";
        left.push(about("rankfile for Open MPI 5".into(), why.into()));
    }
    let skipped_lines = making.head() + &skipped_section("Left out:", &left);
    let mut files = vec![making.open_mpi_4(&skipped_lines)];
    files.extend(
        five.map(|lines| File { text: skipped_lines.clone() + &lines, ..text_file("rankfile-openmpi5") }),
    );
    files.extend([making.mpich(&skipped_lines), making.srun(&skipped_lines), making.taskset(&skipped_lines)]);
    Export { files, left }
}

fn about(what: String, why: String) -> Left {
    Left { mitigation: "rankfile-affinity".into(), what, why }
}

fn text_file(name: &str) -> File {
    File { name: name.into(), mode: 0o644, text: String::new() }
}

/// The compute threads of a core, in order.
type Core = Vec<Cpu>;

/// The place of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seat {
    /// Its CPU, if it has one thread.
    cpu: Cpu,
    /// The CPUs for its threads, which no other rank uses.
    share: Vec<Cpu>,
}

/// The cores with compute CPUs, per NUMA node.
fn compute_cores(facts: &Facts, parts: &Parts) -> Vec<Vec<Core>> {
    let compute: BTreeSet<Cpu> = parts.compute.iter().copied().collect();
    let of_core =
        |core: &Core| -> Core { core.iter().copied().filter(|cpu| compute.contains(cpu)).collect() };
    let cores = |node: &[Cpu]| -> Vec<Core> {
        let here = facts.cores.iter().filter(|core| core.first().is_some_and(|cpu| node.contains(cpu)));
        here.map(of_core).filter(|core| !core.is_empty()).collect()
    };
    facts.numa.iter().map(|(_, node)| cores(node)).collect()
}

/// Places for the requested number of ranks, or for as many as there is room.
fn seats(nodes: &[Vec<Core>], ranks: usize) -> Vec<Seat> {
    let cores: usize = nodes.iter().map(Vec::len).sum();
    if ranks <= cores {
        let counts = spread(&nodes.iter().map(Vec::len).collect::<Vec<_>>(), ranks);
        return nodes.iter().zip(counts).flat_map(|(node, count)| shares(node, count)).collect();
    }
    let mut seats = Vec::new();
    // First all first hardware threads, then as many second ones as are needed, and so on.
    for thread in 0.. {
        let level: Vec<Vec<Cpu>> = nodes
            .iter()
            .map(|node| node.iter().filter_map(|core| core.get(thread).copied()).collect())
            .collect();
        let counts = spread(&level.iter().map(Vec::len).collect::<Vec<_>>(), ranks - seats.len());
        let before = seats.len();
        let taken = level.iter().zip(counts).flat_map(|(cpus, count)| cpus.iter().take(count));
        seats.extend(taken.map(|cpu| Seat { cpu: *cpu, share: vec![*cpu] }));
        if seats.len() == before || seats.len() == ranks {
            break;
        }
    }
    seats
}

/// The number of ranks on each node: the nodes take one more in turn, as long as they have room.
fn spread(rooms: &[usize], ranks: usize) -> Vec<usize> {
    let ranks = ranks.min(rooms.iter().sum());
    let mut counts = vec![0; rooms.len()];
    let mut placed = 0;
    while placed < ranks {
        for (count, room) in counts.iter_mut().zip(rooms) {
            if placed < ranks && *count < *room {
                *count += 1;
                placed += 1;
            }
        }
    }
    counts
}

/// Divides a node's cores into even runs; each rank is on the first thread of its own run.
fn shares(cores: &[Core], count: usize) -> Vec<Seat> {
    let cut = |at: usize| at * cores.len() / count;
    let run = |at: usize| cores.get(cut(at)..cut(at + 1)).unwrap_or_default();
    let seat = |cores: &[Core]| {
        let cpu = *cores.first()?.first()?;
        let mut share = cores.concat();
        share.sort_unstable();
        Some(Seat { cpu, share })
    };
    (0..count).filter_map(|at| seat(run(at))).collect()
}

struct Making<'a> {
    facts: &'a Facts,
    parts: &'a Parts,
    seats: Vec<Seat>,
}

impl Making<'_> {
    fn head(&self) -> String {
        let (compute, housekeeping) =
            (format_cpu_list(&self.parts.compute), format_cpu_list(&self.parts.housekeeping));
        comments([
            "Made by `quell tune export bindings`: one rank a core, on first hardware threads, spread over the NUMA nodes.",
            &format!(
                "For {}. CPUs that compute: {compute}; left to the system: {housekeeping}.",
                self.facts.host
            ),
        ])
    }

    /// The host's name, if a rankfile can hold it; otherwise the first host of the allocation.
    fn host(&self) -> &str {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let host = self.facts.host.as_str();
        if !host.is_empty()
            && host.starts_with(|c: char| c.is_ascii_alphanumeric())
            && host.chars().all(plain)
        {
            host
        } else {
            "+n0"
        }
    }

    fn join(&self, sep: &str, each: impl Fn(&Seat) -> String) -> String {
        self.seats.iter().map(each).collect::<Vec<_>>().join(sep)
    }

    fn slots(&self, slot: impl Fn(&Seat) -> String) -> String {
        let line = |(rank, seat)| format!("rank {rank}={} slot={}\n", self.host(), slot(seat));
        self.seats.iter().enumerate().map(line).collect()
    }

    fn open_mpi_4(&self, head: &str) -> File {
        let (host, ranks) = (if self.host() == "+n0" { "HOST" } else { self.host() }, self.seats.len());
        let command = format!(
            "  mpirun --mca rmaps_rank_file_physical 1 --host {host}:{ranks} --rankfile rankfile -np {ranks} ./job"
        );
        let note = comments([
            "",
            "Open MPI 1.7 to 4. Slots are the kernel's CPU numbers, which it takes for such only with this parameter; without it they",
            "are hwloc's cores. Open MPI 5 has no such parameter: see rankfile-openmpi5.",
            &command,
        ]);
        File {
            text: head.to_owned() + &note + &self.slots(|seat| seat.cpu.to_string()),
            ..text_file("rankfile")
        }
    }

    /// Uses hwloc's numbers of cores; none if some ranks share a core.
    fn open_mpi_5(&self) -> Option<String> {
        // hwloc counts depth first, and orders the objects of one level by their first CPU.
        let mut nodes: Vec<&Vec<Cpu>> = self.facts.numa.iter().map(|(_, node)| node).collect();
        nodes.sort_by_key(|node| node.first().copied());
        let mut cores: Vec<&Core> = self.facts.cores.iter().collect();
        cores.sort_by_key(|core| {
            let first = core.first().copied();
            (nodes.iter().position(|node| first.is_some_and(|cpu| node.contains(&cpu))), first)
        });
        let number = |seat: &Seat| cores.iter().position(|core| core.contains(&seat.cpu));
        let numbers: Option<Vec<usize>> = self.seats.iter().map(number).collect();
        let numbers = numbers?;
        if numbers.iter().collect::<BTreeSet<_>>().len() < numbers.len() {
            return None;
        }
        let note = comments([
            "",
            "Open MPI 5. Slots are hwloc's logical numbers of cores (lstopo --logical); a rank is bound to all threads of its core.",
            "Look once with --display bindings: where caches or packages are numbered unlike the NUMA nodes, hwloc may count otherwise.",
            &format!("  mpirun --map-by rankfile:file=rankfile-openmpi5 -np {} ./job", numbers.len()),
        ]);
        Some(note + &self.slots(|seat| number(seat).unwrap_or_default().to_string()))
    }

    fn mpich(&self, head: &str) -> File {
        let each = self.join(",", |seat| seat.cpu.to_string());
        let share =
            self.join(",", |seat| seat.share.iter().map(Cpu::to_string).collect::<Vec<_>>().join("+"));
        let ranks = self.seats.len();
        let text = format!(
            "{head}#\n# MPICH and what is made of it (Hydra). Ranks with one thread:\nmpiexec -bind-to user:{each} -n {ranks} ./job\n\
             \n# Ranks with several threads:\n# mpiexec -bind-to user:{share} -n {ranks} ./job\n"
        );
        File { text, ..text_file("mpich.txt") }
    }

    fn srun(&self, head: &str) -> File {
        let each = self.join(",", |seat| seat.cpu.to_string());
        let masks = self.join(",", |seat| format!("0x{}", format_mask(&seat.share, 1).replace(',', "")));
        let ranks = self.seats.len();
        let text = format!(
            "{head}#\n# Slurm, with task/affinity or task/cgroup, on a node that the job has to itself; else Slurm takes no CPU numbers.\n\
             # Ranks with one thread:\nsrun --exclusive --ntasks-per-node={ranks} --cpu-bind=map_cpu:{each} ./job\n\
             \n# Ranks with several threads:\n# srun --exclusive --ntasks-per-node={ranks} --cpu-bind=mask_cpu:{masks} ./job\n"
        );
        File { text, ..text_file("srun.txt") }
    }

    fn taskset(&self, head: &str) -> File {
        let note = comments([
            "",
            "For any launcher that binds nothing itself (--bind-to none):",
            "  mpirun --bind-to none -np N rank-taskset.sh ./job",
            "PMI_RANK counts over all nodes, so it is right on one node only, and asked last.",
        ]);
        let cases = self.seats.iter().enumerate().fold(String::new(), |mut cases, (rank, seat)| {
            let _ = writeln!(cases, "{rank}) cpus={} ;;", seat.cpu);
            cases
        });
        let ranks = self.seats.len();
        let text = format!(
            "#!/bin/sh\n{head}{note}rank=${{OMPI_COMM_WORLD_LOCAL_RANK:-${{MPI_LOCALRANKID:-${{SLURM_LOCALID:-${{PMI_RANK:-}}}}}}}}\n\
             case $rank in\n{cases}*)\n    echo \"rank-taskset.sh: rank '$rank' on this node is not one of {ranks}\" >&2\n    exit 2\n    ;;\n\
             esac\nexec taskset -c \"$cpus\" \"$@\"\n"
        );
        File { mode: 0o755, text, ..text_file("rank-taskset.sh") }
    }
}
