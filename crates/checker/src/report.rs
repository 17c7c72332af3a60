//! The answer to a run: right, wrong, or nothing learnt.

use std::fmt;

use serde::Serialize;

use crate::finding::Finding;

/// What a run has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything held, and every fault met work in flight.
    Right,
    /// Something did not hold.
    Wrong,
    /// Everything held, but a fault met nothing that it could have broken.
    Unknown,
}

/// What became of the attempts whose outcome the client never learnt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resolved {
    /// Their key has its numbers.
    pub happened: usize,
    /// Their key has none.
    pub did_not: usize,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What must not be, and is.
    pub findings: Vec<Finding>,
    /// What became of the attempts whose outcome the client never learnt.
    pub resolved_info: Resolved,
    /// Each fault, in the order given, with the number of attempts that were in flight when it struck.
    pub coverage: Vec<(String, usize)>,
    /// All of it in a word.
    pub verdict: Verdict,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict {
            Verdict::Right => writeln!(f, "right: everything held")?,
            Verdict::Wrong => writeln!(f, "wrong; findings: {}", self.findings.len())?,
            Verdict::Unknown => writeln!(f, "unknown: everything held, but a fault met no attempt in flight")?,
        }
        for finding in &self.findings {
            writeln!(f, "  {finding}")?;
        }
        let Resolved { happened, did_not } = self.resolved_info;
        writeln!(f, "  of the attempts without a known outcome {happened} happened and {did_not} did not")?;
        for (fault, met) in &self.coverage {
            writeln!(f, "  {fault} met {met} attempts in flight")?;
        }
        Ok(())
    }
}
