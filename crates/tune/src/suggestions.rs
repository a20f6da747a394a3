//! Suggestions for an unknown id.

/// Maximum number of suggestions.
const MOST: usize = 3;

/// An error for an unknown id, which names similar known ones.
pub fn unknown<'k>(id: &str, known: impl Iterator<Item = &'k str>) -> String {
    let id: String = quell_recording::one_line(id).chars().take(64).collect();
    let mut near: Vec<(usize, &str)> = known
        .map(|one| (strsim::levenshtein(&id, one), one))
        .filter(|(far, one)| is_near(*far, &id, one))
        .collect();
    near.sort();
    let near: Vec<String> = near.iter().take(MOST).map(|(_, one)| format!("`{one}`")).collect();
    match near.is_empty() {
        true => format!("no mitigation is named `{id}`: `quell tune audit` lists them"),
        false => format!("no mitigation is named `{id}`: did you mean {}?", near.join(", ")),
    }
}

fn is_near(far: usize, id: &str, one: &str) -> bool {
    far <= (id.len().max(one.len()) / 3).max(2) || !id.is_empty() && (one.contains(id) || id.contains(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_what_was_meant() {
        let known = ["thp", "thp-defrag", "timer-slack", "vm-stat-interval"];
        let reported = |id| unknown(id, known.into_iter());
        assert!(reported("vm-stat-intervall").ends_with("did you mean `vm-stat-interval`?"));
        assert!(reported("defrag").contains("`thp-defrag`"));
        assert!(reported("zzzzzzzz\u{1b}[2J").contains("`quell tune audit` lists them"));
    }
}
