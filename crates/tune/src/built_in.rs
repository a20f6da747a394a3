//! The files of quell's own catalogue, and the boot options that they set.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;

include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// The part of a catalogue file that says which boot option a mitigation sets.
#[derive(Deserialize)]
struct Touches {
    #[serde(default)]
    knob: Vec<Touched>,
}

#[derive(Deserialize)]
struct Touched {
    kind: String,
    option: Option<String>,
}

/// The boot options that quell's own mitigations set.
pub fn boot_options() -> &'static BTreeSet<String> {
    static OPTIONS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let knobs = FILES.iter().filter_map(|(_, text)| Some(toml::from_str::<Touches>(text).ok()?.knob));
        knobs.flatten().filter(|knob| knob.kind == "boot").filter_map(|knob| knob.option).collect()
    });
    &OPTIONS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Catalogue, Knob};

    #[test]
    fn boot_options_are_those_of_the_catalogue() {
        let catalogue = Catalogue::built_in();
        let knobs = catalogue.iter().flat_map(|mitigation| &mitigation.knob);
        let option = |knob: &Knob| if let Knob::Boot(boot) = knob { Some(boot.option.clone()) } else { None };
        assert_eq!(*boot_options(), knobs.filter_map(option).collect());
    }
}
