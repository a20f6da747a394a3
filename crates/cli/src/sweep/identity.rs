//! The identity of a dataset: the plan, the files that it names, and the version of quell.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Context;

/// `_sweep.json`: datasets with equal identities are equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Identity {
    /// Always `quell.sweep-plan/1`.
    pub schema: String,
    /// The version of quell that computes the points.
    pub quell: String,
    /// The verb that computes the points.
    pub verb: String,
    /// The name that the plan gives itself.
    pub name: Option<String>,
    /// Number of points.
    pub points: u64,
    /// Number of points per file; the last file may have fewer.
    pub points_a_file: u64,
    /// Number of files of the whole dataset.
    pub files: u64,
    /// The axes in the plan's order; later axes change faster.
    pub axes: Vec<AxisText>,
    /// The files that the plan names, each with a SHA-256 that identifies it: of its content or, for a recording, of its manifest and the
    /// lengths of its tables.
    pub inputs: BTreeMap<String, String>,
    /// The SHA-256 of all other fields.
    pub hash: String,
}

/// An axis with its values, in the syntax of the verb's options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AxisText {
    /// Name of the axis.
    pub axis: String,
    /// Its values, each a list of arguments.
    pub values: Vec<Vec<String>>,
}

/// The schema's name and version.
const SCHEMA: &str = "quell.sweep-plan/1";

impl Identity {
    /// The identity of a verb's plan.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn new(verb: &str, context: &Context) -> anyhow::Result<Self> {
        let plan = &context.plan;
        let words = |axis: &quell_analysis::sweep::Axis| AxisText {
            axis: axis.kind.name.to_owned(),
            values: axis.values.iter().map(|value| value.words.clone()).collect(),
        };
        let mut this = Self {
            schema: SCHEMA.to_owned(),
            quell: env!("CARGO_PKG_VERSION").to_owned(),
            verb: verb.to_owned(),
            name: plan.name.clone(),
            points: plan.points(),
            points_a_file: plan.points_a_chunk(),
            files: plan.chunks(),
            axes: plan.axes.iter().map(words).collect(),
            inputs: inputs(context)?,
            hash: String::new(),
        };
        this.hash = hex(&Sha256::digest(serde_json::to_vec(&this)?));
        Ok(this)
    }

    /// A sentence for each difference from `other`; empty if they are equal.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut all = Vec::new();
        let mut differ = |what: &str, here: &str, there: &str| {
            if here != there {
                all.push(format!("{what} differs: {here} here, {there} there"));
            }
        };
        differ("the version of quell", &self.quell, &other.quell);
        differ("the verb", &self.verb, &other.verb);
        let name = |this: &Self| this.name.clone().unwrap_or_else(|| "none".to_owned());
        differ("the name", &name(self), &name(other));
        for axis in self
            .axes
            .iter()
            .chain(&other.axes)
            .map(|axis| &axis.axis)
            .collect::<std::collections::BTreeSet<_>>()
        {
            differ(axis, &self.shown(axis), &other.shown(axis));
        }
        differ("points a file", &self.points_a_file.to_string(), &other.points_a_file.to_string());
        for (path, hash) in &self.inputs {
            if other.inputs.get(path).is_some_and(|there| there != hash) {
                all.push(format!("{path} has changed"));
            }
        }
        if all.is_empty() && self != other {
            all.push("its _sweep.json was changed".to_owned());
        }
        all
    }

    /// An axis's values, shortened.
    fn shown(&self, name: &str) -> String {
        let Some(axis) = self.axes.iter().find(|axis| axis.axis == name) else {
            return "not given".to_owned();
        };
        let values = axis.values.iter().map(|words| words.join("+"));
        let text: String = values.take(8).collect::<Vec<_>>().join(",");
        let short: String = text.chars().take(60).collect();
        let more = if short.len() < text.len() || axis.values.len() > 8 { "…" } else { "" };
        let count = axis.values.len();
        format!("[{short}{more}] ({count} value{})", if count == 1 { "" } else { "s" })
    }
}

fn inputs(context: &Context) -> anyhow::Result<BTreeMap<String, String>> {
    let mut inputs = BTreeMap::new();
    for axis in &context.plan.axes {
        let words = axis.values.iter().flat_map(|value| &value.words);
        for (path, _) in words.filter_map(|word| axis.kind.paths.within(word)) {
            if !inputs.contains_key(path) {
                let hash = hash_file(&context.path(path)).with_context(|| {
                    let line = axis.line.map(|line| format!("line {line}: ")).unwrap_or_default();
                    format!("{line}{}", axis.kind.name)
                })?;
                inputs.insert(path.to_owned(), hash);
            }
        }
    }
    Ok(inputs)
}

fn hash_file(path: &Path) -> anyhow::Result<String> {
    let mut hasher = Sha256::new();
    if path.is_dir() {
        hasher.update(fs_err::read(path.join("manifest.json"))?);
        let mut tables = Vec::new();
        for entry in fs_err::read_dir(path)? {
            let entry = entry?;
            tables.push(format!("{} {}", entry.file_name().to_string_lossy(), entry.metadata()?.len()));
        }
        tables.retain(|table| table.contains(".parquet ") || table.contains(".arrow "));
        tables.sort();
        hasher.update(tables.join("\n"));
    } else {
        io::copy(&mut fs_err::File::open(path)?, &mut HashWriter(&mut hasher))?;
    }
    Ok(hex(&hasher.finalize()))
}

/// Lets a hasher be written to.
struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
