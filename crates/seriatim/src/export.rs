//! The numbers of a series as CSV or JSON lines, into a file or to whoever reads.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;

use crate::{Failure, address::Server, numbers::tell};

/// Write the numbers of a series as CSV or JSON lines.
#[derive(Args)]
pub(crate) struct Export {
    #[command(flatten)]
    server: Server,
    /// The series
    #[arg(long)]
    series: String,
    /// Only numbers of this period
    #[arg(long)]
    period: Option<String>,
    /// Only numbers in this state
    #[arg(long)]
    state: Option<String>,
    /// How they are written
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    format: Format,
    /// The same as --format jsonl
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Into this file, which is there only when it is whole; without it to standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Comma-separated, with a head
    Csv,
    /// One JSON object a line
    Jsonl,
}

impl Export {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match &self.output {
            None => {
                let out = io::stdout().lock();
                self.write(BufWriter::new(out)).await?;
            }
            Some(file) => {
                let part = beside(file);
                let out = File::create(&part).map_err(|e| format!("can't write {}: {e}", part.display()))?;
                match self.write(BufWriter::new(out)).await {
                    Ok(numbers) => {
                        fs::rename(&part, file).map_err(|e| format!("can't write {}: {e}", file.display()))?;
                        println!("{}: {numbers} numbers in {}", self.series, file.display());
                    }
                    Err(failure) => {
                        let _ = fs::remove_file(&part);
                        return Err(failure);
                    }
                }
            }
        }
        Ok(())
    }

    /// How many numbers were written.
    async fn write(&self, mut out: impl Write) -> Result<u64, Failure> {
        let format = if self.json || self.format == Format::Jsonl { "jsonl" } else { "csv" };
        let mut query = vec![("format", format)];
        query.extend(self.period.as_deref().map(|period| ("period", period)));
        query.extend(self.state.as_deref().map(|state| ("state", state)));
        // How many there are is not known before; a bar that only counts is drawn on a terminal and nowhere else.
        let bar = ProgressBar::no_length();
        bar.set_message("numbers");
        let mut bytes = 0_u64;
        let mut lines = 0_u64;
        let client = self.server.client()?;
        let done = client.export(&self.series, &query, |piece| {
            out.write_all(piece)?;
            bytes += u64::try_from(piece.len()).unwrap_or_default();
            lines += count_lines(piece);
            bar.set_position(lines);
            Ok::<_, Stopped>(())
        });
        let done = done.await;
        bar.finish_and_clear();
        match done {
            Ok(()) => {}
            Err(Stopped::Server(error)) if bytes > 0 => {
                return Err(format!("{}; {bytes} bytes came, which are not all; run it again", tell(&error)).into());
            }
            Err(Stopped::Server(error)) => return Err(tell(&error).into()),
            Err(Stopped::Here(error)) => return Err(format!("can't write on: {error}").into()),
        }
        out.flush()?;
        Ok(lines.saturating_sub(u64::from(format == "csv")))
    }
}

/// What ended an export.
enum Stopped {
    Server(api::client::Error),
    Here(io::Error),
}

impl From<api::client::Error> for Stopped {
    fn from(error: api::client::Error) -> Self {
        Self::Server(error)
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Here(error)
    }
}

/// A line break inside of a quoted field counts too: for a person, near enough while it runs.
fn count_lines(piece: &[u8]) -> u64 {
    u64::try_from(piece.split(|byte| *byte == b'\n').count().saturating_sub(1)).unwrap_or_default()
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    name.into()
}
