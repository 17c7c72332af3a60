//! Numbers for the documents in a file. Each row's key is made from the row, so a second run, or one after a
//! crash half way, issues nothing new.

use std::{path::PathBuf, time::Duration};

use api::{
    Issue, Number,
    client::{Answered, Client},
};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{Failure, address::Server, numbers::tell};

/// Issue numbers for the documents in a file; run it again and nothing new is issued.
#[derive(Args)]
pub(crate) struct IssueFile {
    #[command(flatten)]
    server: Server,
    /// The series
    #[arg(long)]
    series: String,
    /// A CSV file with a header line
    #[arg(long, value_name = "FILE")]
    from_csv: PathBuf,
    /// The column of the documents' references
    #[arg(long, value_name = "COLUMN")]
    ref_column: String,
    /// The column of the documents' dates (YYYY-MM-DD); without it all are dated today
    #[arg(long, value_name = "COLUMN")]
    date_column: Option<String>,
    /// One JSON object a row, for programs
    #[arg(long)]
    json: bool,
}

/// A document in the file.
pub(crate) struct Row {
    pub(crate) line: u64,
    pub(crate) reference: String,
    pub(crate) date: Option<String>,
}

impl IssueFile {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let file = std::fs::File::open(&self.from_csv).map_err(|e| format!("can't read {}: {e}", self.from_csv.display()))?;
        let rows = read(file, &self.ref_column, self.date_column.as_deref())?;
        let client = self.server.client()?;
        let bar = progress_bar(rows.len());
        let mut done = Tally::default();
        for row in &rows {
            let answer = issue(&client, &self.series, row).await.map_err(|why| {
                bar.abandon();
                format!(
                    "{why}; {} of {} documents have their numbers, and running this again repeats nothing",
                    done.all(),
                    rows.len()
                )
            })?;
            if self.json {
                println!("{}", json!({"document_ref": row.reference, "number": answer.body.number, "new": is_new(&answer)}));
            }
            done.add(&answer);
            bar.inc(1);
        }
        bar.finish_and_clear();
        if !self.json {
            println!("{}", done.sentence(&self.series));
        }
        Ok(())
    }
}

/// How many rows got a number, and which.
#[derive(Default)]
pub(crate) struct Tally {
    new: usize,
    known: usize,
    ends: Option<(String, String)>,
}

impl Tally {
    pub(crate) fn add(&mut self, answer: &Answered<Number>) {
        let number = &answer.body.number;
        if is_new(answer) {
            self.new += 1;
        } else {
            self.known += 1;
        }
        self.ends = Some((self.ends.take().map_or_else(|| number.clone(), |(first, _)| first), number.clone()));
    }

    fn all(&self) -> usize {
        self.new + self.known
    }

    pub(crate) fn sentence(&self, series: &str) -> String {
        let range = self.ends.as_ref().map(|(first, last)| format!(", {first} to {last}")).unwrap_or_default();
        format!("{series}: {} documents, {} new numbers, {} known already{range}", self.all(), self.new, self.known)
    }
}

/// A number that did not exist before this call.
fn is_new(answer: &Answered<Number>) -> bool {
    answer.status == 201 && !answer.replayed
}

/// The documents of a file, all read before the first number is issued: a file that is wrong at its end uses
/// nothing.
pub(crate) fn read(file: impl std::io::Read, ref_column: &str, date_column: Option<&str>) -> Result<Vec<Row>, Failure> {
    let mut csv = csv::Reader::from_reader(file);
    let headers = csv.headers()?.clone();
    let column = |name: &str| {
        let known = || headers.iter().collect::<Vec<_>>().join(", ");
        headers
            .iter()
            .position(|header| header == name)
            .ok_or_else(|| format!("there is no column {name}; there are {}", known()))
    };
    let reference = column(ref_column)?;
    let date = date_column.map(column).transpose()?;
    let mut rows = Vec::new();
    for record in csv.records() {
        let record = record?;
        let line = record.position().map_or(0, csv::Position::line);
        let field = |at: usize| record.get(at).unwrap_or_default().trim().to_owned();
        let reference = field(reference);
        if reference.is_empty() {
            return Err(format!(
                "line {line}: the column {ref_column} is empty; a document without a reference could be numbered twice"
            )
            .into());
        }
        rows.push(Row { line, reference, date: date.map(field).filter(|date| !date.is_empty()) });
    }
    Ok(rows)
}

/// The number of one document, trying again while that may help: the key makes it safe.
pub(crate) async fn issue(client: &Client, series: &str, row: &Row) -> Result<Answered<Number>, Failure> {
    let body = Issue { document_ref: Some(row.reference.clone()), document_date: row.date.clone(), ..Issue::default() };
    let key = key(series, row);
    let mut tries: u64 = 0;
    loop {
        match client.issue(series, &key, &body).await {
            Ok(answer) => return Ok(answer),
            Err(error) if error.is_passing() && tries < 20 => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(100 * tries)).await;
            }
            Err(error) => {
                return Err(format!("line {} ({}): {}", row.line, row.reference, tell(&error)).into());
            }
        }
    }
}

/// The same row has the same key, in every run and on every machine.
fn key(series: &str, row: &Row) -> String {
    let mut hash = Sha256::new();
    for part in [series, &row.reference, row.date.as_deref().unwrap_or_default()] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    digest[..16].iter().fold("file-".to_owned(), |key, byte| key + &format!("{byte:02x}"))
}

pub(crate) fn progress_bar(rows: usize) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(rows).unwrap_or(u64::MAX));
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len}  {per_sec}  {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_with_their_lines() {
        let rows = read("id,when,x\n 7 ,2026-01-02,a\n8,,\"b\nc\"\n9,2026-01-03,d\n".as_bytes(), "id", Some("when")).unwrap();
        let read: Vec<_> = rows.iter().map(|r| (r.line, r.reference.as_str(), r.date.as_deref())).collect();
        assert_eq!(read, [(2, "7", Some("2026-01-02")), (3, "8", None), (5, "9", Some("2026-01-03"))]);
    }

    #[test]
    fn a_file_that_is_wrong_is_refused_whole() {
        let fails = |text: &str| read(text.as_bytes(), "id", Some("when")).err().unwrap().to_string();
        assert!(fails("no,when\n1,2\n").contains("there are no, when"));
        assert!(fails("id,when\n1,2\n,3\n").contains("line 3"));
        assert!(fails("id,when\n1\n").contains("fields"));
    }

    #[test]
    fn rows_that_differ_have_keys_that_differ() {
        let row = |reference: &str, date: Option<&str>| Row { line: 1, reference: reference.into(), date: date.map(Into::into) };
        let one = key("s", &row("1", Some("2026-01-01")));
        assert_eq!(one, key("s", &row("1", Some("2026-01-01"))));
        for other in [key("t", &row("1", Some("2026-01-01"))), key("s", &row("2", Some("2026-01-01"))), key("s", &row("1", None))]
        {
            assert_ne!(one, other);
        }
    }
}
