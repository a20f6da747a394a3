//! The options of patterns.

use clap::Args;
use quell_recording::Nanos;
use quell_sim::pattern::Params;

use crate::Usage;
use crate::network::PerByteText;
use crate::size::{DimsText, Ranks, Size};

/// The parameters of a named pattern. Parameters that a pattern does not have are refused.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Pattern parameters (`quell goal list` says which pattern has which)")]
pub struct PatternArgs {
    /// Number of ranks, with optional suffix `Ki` or `Mi`.
    #[arg(long, value_name = "N")]
    pub ranks: Option<Ranks>,
    /// Message size, or size of each rank's part of the message, in bytes.
    #[arg(long, value_name = "SIZE")]
    pub bytes: Option<Size>,
    /// How often the whole pattern runs, one iteration after the other.
    #[arg(long, value_name = "N")]
    pub iterations: Option<Size>,
    /// Work of each rank in an iteration, for patterns that include work.
    #[arg(long, value_name = "TIME")]
    pub work: Option<Nanos>,
    /// The pattern that follows the work, for the loop `bsp`.
    #[arg(long, value_name = "NAME")]
    pub inner: Option<String>,
    /// Ranks in each direction, for patterns on a grid.
    #[arg(long, value_name = "8x8x16")]
    pub dims: Option<DimsText>,
    /// The rank that data flow from or to.
    #[arg(long, value_name = "RANK")]
    pub root: Option<u32>,
    /// Number of other ranks that a rank sends to in each round of a dissemination.
    #[arg(long, value_name = "N")]
    pub nway: Option<u32>,
    /// Segment size of a pipelined pattern, in bytes.
    #[arg(long, value_name = "SIZE")]
    pub segment_bytes: Option<Size>,
    /// Make the grid periodic: its opposite ends are neighbours.
    #[arg(long)]
    pub periodic: bool,
    /// Ranks per node, for patterns that distinguish nodes.
    #[arg(long, value_name = "N")]
    pub node_ranks: Option<Ranks>,
    /// Number of buckets in which a training step sums up its gradients.
    #[arg(long, value_name = "N")]
    pub buckets: Option<Size>,
    /// Work of the optimizer at the end of a training step.
    #[arg(long, value_name = "TIME")]
    pub optimizer: Option<Nanos>,
    /// Number of blocks of a sweep along the third dimension.
    #[arg(long, value_name = "N")]
    pub blocks: Option<Size>,
    /// Work to combine received data with local data, in ns per byte.
    #[arg(long, value_name = "NS")]
    pub reduce_per_byte: Option<PerByteText>,
}

/// A parameter that some patterns have.
pub(super) struct Parameter {
    /// The option that sets it.
    pub option: &'static str,
    /// The field of [`Params`] that `Entry::uses` lists.
    pub field: &'static str,
    /// Whether it was given.
    pub given: fn(&PatternArgs) -> bool,
    /// Its value in the syntax of the option; `None` if the pattern chooses it itself.
    pub value: fn(&Params) -> Option<String>,
    /// Copies the value into [`Params`]; called for every parameter, given or not.
    set: fn(&PatternArgs, &mut Params) -> Result<(), Usage>,
}

/// A row of [`PARAMETERS`]: the option, the fields of [`PatternArgs`] and of [`Params`], how its value is copied, and how it is written.
macro_rules! parameter {
    ($option:literal, $typed:ident, $field:ident, |$given:ident| $set:expr, |$known:ident| $value:expr) => {
        Parameter {
            option: $option,
            field: stringify!($field),
            given: |args| args.$typed.is_some(),
            value: |params| {
                let $known = &params.$field;
                $value
            },
            set: |args, params| {
                if let Some($given) = args.$typed.clone() {
                    params.$field = $set;
                }
                Ok(())
            },
        }
    };
}

/// The parameters that options set, except those that every pattern has (ranks and iterations).
pub(super) const PARAMETERS: [Parameter; 13] = [
    parameter!("--bytes", bytes, bytes, |size| size.0, |bytes| Some(bytes.to_string())),
    parameter!("--work", work, work_ns, |time| time.as_nanos(), |ns| Some(exact(*ns))),
    parameter!("--inner", inner, inner, |name| Some(name), |name| name.clone()),
    parameter!("--dims", dims, dims, |dims| dims.0, |dims| written(dims)),
    Parameter {
        option: "--periodic",
        field: "periodic",
        given: |args| args.periodic,
        value: |params| Some(params.periodic.to_string()),
        set: |args, params| {
            params.periodic = args.periodic;
            Ok(())
        },
    },
    parameter!("--root", root, root, |rank| rank, |rank| Some(rank.to_string())),
    parameter!("--nway", nway, nway, |n| n, |n| Some(n.to_string())),
    parameter!("--segment-bytes", segment_bytes, segment_bytes, |size| size.0, |bytes| Some(
        bytes.to_string()
    )),
    parameter!("--node-ranks", node_ranks, node_ranks, |ranks| ranks.0, |ranks| Some(ranks.to_string())),
    parameter!("--buckets", buckets, buckets, |n| small(n, "--buckets")?, |n| Some(n.to_string())),
    parameter!("--optimizer", optimizer, optimizer_ns, |time| time.as_nanos(), |ns| Some(exact(*ns))),
    parameter!("--blocks", blocks, blocks, |n| small(n, "--blocks")?, |n| Some(n.to_string())),
    parameter!("--reduce-per-byte", reduce_per_byte, reduce_per_byte, |rate| rate.0, |rate| {
        Some(rate.as_nanos().to_string())
    }),
];

impl PatternArgs {
    /// The pattern's parameters, with defaults for those that were not given.
    pub(super) fn params(&self) -> Result<Params, Usage> {
        let mut params = Params::default();
        // The size of a grid sets the number of ranks.
        if let Some(dims) = &self.dims {
            let ranks: u64 = dims.0.iter().fold(1, |n, &dim| u64::from(dim).saturating_mul(n));
            params.ranks = u32::try_from(ranks).unwrap_or(u32::MAX);
        }
        if let Some(ranks) = self.ranks {
            params.ranks = ranks.0;
        }
        if let Some(iterations) = self.iterations {
            params.iterations = small(iterations, "--iterations")?;
        }
        for one in &PARAMETERS {
            (one.set)(self, &mut params)?;
        }
        Ok(params)
    }
}

fn small(size: Size, option: &str) -> Result<u32, Usage> {
    u32::try_from(size.0).map_err(|_| Usage(format!("{option} {} is too many", size.0)))
}

/// A grid in the syntax of `--dims`; `None` if the pattern chooses it.
fn written(dims: &[u32]) -> Option<String> {
    (!dims.is_empty()).then(|| dims.iter().map(u32::to_string).collect::<Vec<_>>().join("x"))
}

/// A time, in the largest unit that represents it exactly, so that it parses back to the same value.
fn exact(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let unit = units.iter().find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{ns}ns"), |(unit, name)| format!("{}{name}", ns / unit))
}
