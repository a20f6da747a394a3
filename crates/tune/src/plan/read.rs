//! Reads a plan. The file is untrusted, and root acts on it.

use serde::Deserialize;

use super::{Plan, SCHEMA, hostile};

/// Maximum length of a plan, in bytes: a node with 8,192 CPUs and ten settings for each has 20 MiB.
const LONGEST: usize = 64 << 20;

#[derive(Deserialize)]
struct Version {
    schema: String,
}

impl Plan {
    /// Reads the output of [`Self::to_json`].
    ///
    /// # Errors
    /// What is wrong with it, and what to do.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("a plan of quell's has at most {LONGEST} bytes, and this one has more"));
        }
        let no_plan =
            |e: serde_json::Error| format!("it is not a plan (make one with `quell tune plan`): {e}");
        let version: Version = serde_json::from_str(text).map_err(no_plan)?;
        if version.schema != SCHEMA {
            let schema: String = quell_recording::one_line(&version.schema).chars().take(80).collect();
            return Err(format!(
                "it is `{schema}`, and this quell reads `{SCHEMA}`: make the plan again with this one"
            ));
        }
        let plan: Self = serde_json::from_str(text).map_err(no_plan)?;
        let hash = plan.hash_of();
        if plan.hash != hash {
            return Err(
                "it was changed after it was made (its hash differs): make it again with `quell tune \
                 plan`, with the options that you want"
                    .into(),
            );
        }
        hostile::check(&plan)?;
        Ok(plan)
    }
}
