//! What was found, for people and for programs.

use std::{fmt, fs, path::Path};

use serde_json::{Value, json};

use crate::{Failure, machine::Machine};

/// One figure beside its rival.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// What was measured.
    pub(crate) figure: String,
    /// What we showed.
    pub(crate) ours: Amount,
    /// More about it, for a person.
    pub(crate) note: String,
    /// Who is beside it, and what that one showed.
    pub(crate) rival: Option<(String, Amount)>,
    /// What has to hold.
    pub(crate) must: Must,
}

/// A quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Amount {
    /// Numbers a second.
    Speed(f64),
    /// Milliseconds.
    Millis(f64),
    /// Microseconds of CPU for each number.
    Cpu(f64),
    /// MiB.
    Memory(f64),
}

/// What has to hold of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Must {
    /// At least so many times the rival's.
    Reach(f64),
    /// At most so many times the rival's.
    StayWithin(f64),
    /// At most this.
    StayBelow(Amount),
    /// Nothing: it is stated.
    Nothing,
}

impl Line {
    /// Ours as a multiple of the rival's.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let (_, rival) = self.rival.as_ref()?;
        (rival.value() > 0.0).then(|| self.ours.value() / rival.value())
    }

    /// Whether it holds; none where nothing has to.
    pub(crate) fn holds(&self) -> Option<bool> {
        match self.must {
            Must::Reach(times) => Some(self.ratio().is_some_and(|ratio| ratio >= times)),
            Must::StayWithin(times) => Some(self.ratio().is_some_and(|ratio| ratio <= times)),
            Must::StayBelow(most) => Some(self.ours.value() <= most.value()),
            Must::Nothing => None,
        }
    }
}

impl Amount {
    fn value(self) -> f64 {
        match self {
            Self::Speed(value) | Self::Millis(value) | Self::Cpu(value) | Self::Memory(value) => value,
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Speed(_) => "numbers/s",
            Self::Millis(_) => "ms",
            Self::Cpu(_) => "µs CPU/number",
            Self::Memory(_) => "MiB",
        }
    }

    fn json(self) -> Value {
        json!({"value": self.value(), "unit": self.unit()})
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = if matches!(self, Self::Millis(_)) { 2 } else { 0 };
        write!(f, "{:.places$} {}", self.value(), self.unit())
    }
}

impl fmt::Display for Must {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reach(times) => write!(f, "≥ {times} ×"),
            Self::StayWithin(times) => write!(f, "≤ {times} ×"),
            Self::StayBelow(Amount::Memory(most)) => write!(f, "≤ {most} MiB"),
            Self::StayBelow(Amount::Millis(most)) => write!(f, "≤ {most} ms"),
            Self::StayBelow(most) => write!(f, "≤ {most}"),
            Self::Nothing => f.write_str("stated"),
        }
    }
}

/// Everything that a run found.
#[derive(Debug)]
pub(crate) struct Report {
    /// The figures.
    pub(crate) lines: Vec<Line>,
    /// The figures that could not be measured, and why.
    pub(crate) failed: Vec<(String, String)>,
    /// On what.
    pub(crate) machine: Machine,
    /// How, in a sentence.
    pub(crate) manner: String,
    /// Whether the sizes are too small to judge by.
    pub(crate) quick: bool,
}

impl Report {
    /// The figures that do not hold.
    pub(crate) fn missed(&self) -> usize {
        if self.quick { 0 } else { self.lines.iter().filter(|line| line.holds() == Some(false)).count() }
    }

    fn verdict(&self, line: &Line) -> &'static str {
        match line.holds() {
            _ if self.quick => "not judged",
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "–",
        }
    }

    /// As a Markdown table, with what is needed to read it.
    pub(crate) fn markdown(&self) -> String {
        let mut text = "| figure | ours | beside it | ratio | must reach | holds |\n|---|---|---|---|---|---|\n".to_owned();
        for line in &self.lines {
            let note = if line.note.is_empty() { String::new() } else { format!(" ({})", line.note) };
            let rival = line.rival.as_ref().map_or_else(|| "–".to_owned(), |(name, amount)| format!("{name}: {amount}"));
            let ratio = line.ratio().map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
            let (figure, ours, must, holds) = (&line.figure, line.ours, line.must, self.verdict(line));
            text.push_str(&format!("| {figure} | {ours}{note} | {rival} | {ratio} | {must} | {holds} |\n"));
        }
        for (figure, why) in &self.failed {
            text.push_str(&format!("\nCould not be measured: {figure}: {why}\n"));
        }
        text.push_str(&format!("\n{}\n\n{}", self.manner, self.machine.markdown()));
        text
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let line = |line: &Line| {
            json!({
                "figure": line.figure,
                "ours": line.ours.json(),
                "note": line.note,
                "rival": line.rival.as_ref().map(|(name, amount)| json!({"name": name, "shown": amount.json()})),
                "ratio": line.ratio(),
                "must": line.must.to_string(),
                "holds": line.holds().filter(|_| !self.quick),
            })
        };
        json!({
            "quick": self.quick,
            "figures": self.lines.iter().map(line).collect::<Vec<_>>(),
            "failed": self.failed.iter().map(|(figure, why)| json!({"figure": figure, "why": why})).collect::<Vec<_>>(),
            "machine": self.machine.json(),
            "manner": self.manner,
        })
    }

    /// Puts the table into a document, between its marks; what people wrote around them stays.
    pub(crate) fn write(&self, file: &Path) -> Result<(), Failure> {
        let old = fs::read_to_string(file).unwrap_or_else(|_| format!("{HEADING}{BEGIN}\n{END}\n"));
        let new = between_marks(&old, &self.markdown()).ok_or_else(|| format!("{} has no {BEGIN} and {END}", file.display()))?;
        Ok(fs::write(file, new)?)
    }
}

const BEGIN: &str = "<!-- measured: begin -->";
const END: &str = "<!-- measured: end -->";
const HEADING: &str = "# Benchmarks\n\nRead the ratios: the figures themselves say as much about the machine.\n\n";

fn between_marks(old: &str, table: &str) -> Option<String> {
    let (before, rest) = old.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}\n{END}{after}", table.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ours: f64, rival: f64, must: Must) -> Line {
        let rival = Some(("naive".to_owned(), Amount::Speed(rival)));
        Line { figure: "hot".into(), ours: Amount::Speed(ours), note: String::new(), rival, must }
    }

    #[test]
    fn a_figure_holds_or_does_not() {
        assert_eq!(line(15.0, 1.0, Must::Reach(15.0)).holds(), Some(true));
        assert_eq!(line(14.9, 1.0, Must::Reach(15.0)).holds(), Some(false));
        assert_eq!(line(3.1, 1.0, Must::StayWithin(3.0)).holds(), Some(false));
        assert_eq!(line(15.0, 0.0, Must::Reach(1.0)).holds(), Some(false));
        assert_eq!(line(64.0, 1.0, Must::StayBelow(Amount::Memory(64.0))).holds(), Some(true));
        assert_eq!(line(1.0, 1.0, Must::Nothing).holds(), None);
    }

    #[test]
    fn the_prose_around_the_table_stays() {
        let old = format!("before {BEGIN} old {END} after");
        assert_eq!(between_marks(&old, "new\n").unwrap(), format!("before {BEGIN}\nnew\n{END} after"));
        assert_eq!(between_marks("no marks", "new"), None);
    }
}
