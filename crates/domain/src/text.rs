//! Which characters a person may put where.

/// Accepts 1 to `max` characters without control, formatting or invisible ones, and without white space
/// at either end: two texts that look the same on paper must not be two texts.
pub fn readable(raw: &str, max: usize) -> Result<(), String> {
    let count = raw.chars().count();
    if !(1..=max).contains(&count) {
        return Err(format!("must be 1 to {max} characters, not {count}"));
    }
    if let Some((place, hidden)) = raw.chars().enumerate().find(|(_, c)| hidden(*c)) {
        return Err(format!(
            "character {} (U+{:04X}) is a control or invisible character: leave it out",
            place + 1,
            hidden as u32
        ));
    }
    if raw.trim() != raw {
        return Err("must not begin or end with white space".to_owned());
    }
    Ok(())
}

/// Control characters (Cc), format characters (Cf), separators of lines, variation selectors, fillers and
/// private or unassigned tags: none of them shows on paper. From the Unicode Character Database 16.
fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
            | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_on_paper_is_accepted() {
        for good in ["order-10248", "Müller & Söhne 7", "注文 1", "a"] {
            assert_eq!(readable(good, 200), Ok(()), "{good}");
        }
    }

    #[test]
    fn what_does_not_show_is_refused_with_its_place() {
        assert!(readable("a\u{200b}b", 200).unwrap_err().contains("character 2 (U+200B)"));
        for bad in ["", " a", "a ", "a\tb", "a\0", "a\u{202e}b", "\u{feff}a", &"x".repeat(201)] {
            assert!(readable(bad, 200).is_err(), "{bad:?}");
        }
    }
}
