//! Values to write: text with placeholders for CPUs and for a value that the user sets.

use std::fmt;

use serde::Deserialize;

/// Some of a node's CPUs, by role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// All that are online.
    #[default]
    All,
    /// Those on which a job computes.
    Compute,
    /// Those that are left to the system.
    Housekeeping,
    /// The first hardware thread of each core.
    FirstThreads,
    /// Of each core of the compute CPUs, all hardware threads except the first; the compute CPUs themselves where no core has two.
    SecondThreads,
}

impl Part {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Compute => "compute",
            Self::Housekeeping => "housekeeping",
            Self::FirstThreads => "first-threads",
            Self::SecondThreads => "second-threads",
        }
    }
}

/// Text with `${PART}` for a CPU list, `${PART:mask}` for a mask, and `${value}` for what the user sets with `--set ID=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Want(Vec<Token>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Text(String),
    List(Part),
    Mask(Part),
    Value,
}

/// Values for the placeholders of a [`Want`].
pub trait Fills {
    /// The CPUs of a part, as a list in the kernel's format: `0,2-5`.
    fn list(&self, part: Part) -> Result<String, String>;
    /// The CPUs of a part, as a mask in the kernel's format: `3c`, or `1,00000000`.
    fn mask(&self, part: Part) -> Result<String, String>;
    /// The value that the user set.
    fn value(&self) -> Result<String, String>;
}

impl Want {
    /// Fills in the placeholders.
    ///
    /// # Errors
    /// The placeholder that cannot be filled in, and why.
    pub fn fill(&self, with: &impl Fills) -> Result<String, String> {
        self.0
            .iter()
            .map(|piece| match piece {
                Token::Text(text) => Ok(text.clone()),
                Token::List(part) => with.list(*part),
                Token::Mask(part) => with.mask(*part),
                Token::Value => with.value(),
            })
            .collect()
    }

    /// Whether it depends on which CPUs compute.
    pub fn needs_parts(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Token::List(_) | Token::Mask(_)))
    }

    /// Whether it has the CPUs of this part.
    pub fn has(&self, part: Part) -> bool {
        self.0.iter().any(|piece| matches!(piece, Token::List(one) | Token::Mask(one) if *one == part))
    }

    /// Whether the user must set a value.
    pub fn needs_value(&self) -> bool {
        self.0.contains(&Token::Value)
    }
}

impl TryFrom<String> for Want {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            if !before.is_empty() {
                pieces.push(Token::Text(before.to_owned()));
            }
            let (name, after) =
                after.split_once('}').ok_or_else(|| format!("`${{` without `}}` in `{text}`"))?;
            pieces.push(
                Token::named(name)
                    .ok_or_else(|| format!("`${{{name}}}` in `{text}` is not a known variable"))?,
            );
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Token::Text(rest.to_owned()));
        }
        Ok(Self(pieces))
    }
}

impl Token {
    fn named(name: &str) -> Option<Self> {
        if name == "value" {
            return Some(Self::Value);
        }
        let (part, form) = name.split_once(':').map_or((name, None), |(part, form)| (part, Some(form)));
        let parts = [Part::All, Part::Compute, Part::Housekeeping, Part::FirstThreads, Part::SecondThreads];
        let part = parts.into_iter().find(|one| one.word() == part)?;
        match form {
            None => Some(Self::List(part)),
            Some("mask") => Some(Self::Mask(part)),
            Some(_) => None,
        }
    }
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Token::Text(text) => f.write_str(text),
            Token::List(part) => write!(f, "${{{}}}", part.word()),
            Token::Mask(part) => write!(f, "${{{}:mask}}", part.word()),
            Token::Value => f.write_str("${value}"),
        })
    }
}
