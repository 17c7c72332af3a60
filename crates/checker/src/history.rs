//! The history of a run: what every client asked, when, and what it was told.
//!
//! An attempt is two lines. The first is flushed *before* the request is sent, so that a program that is
//! killed can't have asked for anything its file does not name; the second follows when it was answered.

use std::{
    collections::HashMap,
    fmt,
    io::{self, BufRead, Write},
};

use serde::{Deserialize, Serialize};

/// What a client knows at the end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was answered with numbers.
    Ok,
    /// It was refused for certain: it used no number.
    Fail,
    /// Nobody knows: a time-out, a reset, a 5xx, or no answer. It used its numbers or none.
    Info,
}

/// A number as a client was told it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The integer.
    pub value: i64,
    /// The text on the document.
    pub number: String,
    /// The period it belongs to.
    pub period: String,
    /// The part of the series it belongs to.
    pub part: i16,
}

/// The beginning of an attempt: all that is known before the request is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// Names the attempt; no two of a history share it.
    pub id: u64,
    /// Who asks. A client asks one thing at a time.
    pub client: u64,
    /// Which try with this key it is.
    pub attempt: u32,
    /// The tenant it asks for.
    pub tenant: String,
    /// The series it asks for.
    pub series: String,
    /// The period it expects; for whoever reads the file, the answer's own period is what counts.
    pub period: String,
    /// The idempotency key.
    pub key: String,
    /// The document, where the request names exactly one. Two keys for one document get one number.
    pub document_ref: Option<String>,
    /// When it was about to be sent, in microseconds. One clock for all clients of a run.
    pub invoked: i64,
    /// The gateway it is sent to.
    pub gateway: String,
    /// The epoch that the client believes in.
    pub epoch: i64,
}

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Which attempt.
    pub id: u64,
    /// When the answer was there, or the client gave up, in microseconds of the same clock.
    pub completed: i64,
    /// How it ended.
    pub outcome: Outcome,
    /// The numbers answered, in the answer's order.
    pub numbers: Vec<Answered>,
    /// A hash of the answer's body.
    pub body_hash: Option<String>,
}

/// One attempt of a client, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Names the attempt; no two of a history share it.
    pub id: u64,
    /// Who asked. A client asks one thing at a time.
    pub client: u64,
    /// Which try with this key it was.
    pub attempt: u32,
    /// The tenant it asked for.
    pub tenant: String,
    /// The series it asked for.
    pub series: String,
    /// The period it expected.
    pub period: String,
    /// The idempotency key.
    pub key: String,
    /// The document, where the request named exactly one.
    pub document_ref: Option<String>,
    /// When it was about to be sent, in microseconds.
    pub invoked: i64,
    /// When it ended for the client; none where nobody saw it end.
    pub completed: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// The numbers answered, in the answer's order.
    pub numbers: Vec<Answered>,
    /// A hash of the answer's body.
    pub body_hash: Option<String>,
    /// The gateway it was sent to.
    pub gateway: String,
    /// The epoch that the client believed in.
    pub epoch: i64,
}

impl From<Begun> for Attempt {
    /// Until its end is known, an attempt may have done anything.
    fn from(begun: Begun) -> Self {
        Self {
            id: begun.id,
            client: begun.client,
            attempt: begun.attempt,
            tenant: begun.tenant,
            series: begun.series,
            period: begun.period,
            key: begun.key,
            document_ref: begun.document_ref,
            invoked: begun.invoked,
            completed: None,
            outcome: Outcome::Info,
            numbers: Vec::new(),
            body_hash: None,
            gateway: begun.gateway,
            epoch: begun.epoch,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Written<'a> {
    Begun(&'a Begun),
    Ended(&'a Ended),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Begun(Begun),
    Ended(Ended),
}

/// Writes a history, a JSON line at a time. One file per program: a second one would tear the lines of the first.
#[derive(Debug)]
pub struct Recorder<W> {
    out: W,
}

impl<W: Write> Recorder<W> {
    /// Writes to this.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Says that an attempt begins. The request may be sent once this has returned, and not before.
    pub fn begin(&mut self, begun: &Begun) -> io::Result<()> {
        self.write(&Written::Begun(begun))
    }

    /// Says how an attempt ended.
    pub fn end(&mut self, ended: &Ended) -> io::Result<()> {
        self.write(&Written::Ended(ended))
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn write(&mut self, line: &Written<'_>) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.out.write_all(&bytes)?;
        self.out.flush()
    }
}

/// Why a history can't be believed.
#[derive(Debug)]
pub enum HistoryError {
    /// It can't be read.
    Read(io::Error),
    /// A line is no line of a history.
    Line {
        /// Which, counted from one.
        line: usize,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// An attempt begins a second time.
    BegunTwice(u64),
    /// An attempt ends that never began.
    NeverBegun(u64),
    /// An attempt ends a second time.
    EndedTwice(u64),
    /// An attempt ends before it begins: the clock is not one to order anything by.
    Backwards(u64),
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "the history can't be read: {error}"),
            Self::Line { line, error } => write!(f, "line {line} of the history: {error}"),
            Self::BegunTwice(id) => write!(f, "attempt {id} begins twice"),
            Self::NeverBegun(id) => write!(f, "attempt {id} ends but never began"),
            Self::EndedTwice(id) => write!(f, "attempt {id} ends twice"),
            Self::Backwards(id) => write!(f, "attempt {id} ends before it begins"),
        }
    }
}

impl std::error::Error for HistoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Line { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Reads a history back and joins the ends to their beginnings, in the order of the beginnings.
///
/// The program may have been killed while it wrote its last line: what is left of that is passed over.
/// Nothing else is, since a history with a hole in it would make a ghost of every key in the hole.
pub fn read_history(mut from: impl BufRead) -> Result<Vec<Attempt>, HistoryError> {
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut places = HashMap::new();
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        if from.read_until(b'\n', &mut bytes).map_err(HistoryError::Read)? == 0 {
            break;
        }
        let torn = !bytes.ends_with(b"\n");
        match serde_json::from_slice(&bytes) {
            Ok(Line::Begun(begun)) => {
                if places.insert(begun.id, attempts.len()).is_some() {
                    return Err(HistoryError::BegunTwice(begun.id));
                }
                attempts.push(begun.into());
            }
            Ok(Line::Ended(ended)) => {
                let place = places.get(&ended.id).ok_or(HistoryError::NeverBegun(ended.id))?;
                join(&mut attempts[*place], ended)?;
            }
            Err(_) if torn => {}
            Err(error) => return Err(HistoryError::Line { line: number, error }),
        }
    }
    Ok(attempts)
}

fn join(attempt: &mut Attempt, ended: Ended) -> Result<(), HistoryError> {
    if attempt.completed.is_some() {
        return Err(HistoryError::EndedTwice(ended.id));
    }
    if ended.completed < attempt.invoked {
        return Err(HistoryError::Backwards(ended.id));
    }
    attempt.completed = Some(ended.completed);
    attempt.outcome = ended.outcome;
    attempt.numbers = ended.numbers;
    attempt.body_hash = ended.body_hash;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use super::*;

    fn begun(id: u64) -> Begun {
        Begun {
            id,
            client: 1,
            attempt: 1,
            tenant: "tenant".into(),
            series: "invoices".into(),
            period: "2026".into(),
            key: format!("Schlüssel {id}\n"),
            document_ref: None,
            invoked: 10,
            gateway: "one".into(),
            epoch: 1,
        }
    }

    fn ended(id: u64) -> Ended {
        let number = Answered { value: 7, number: "№ 7".into(), period: "2026".into(), part: 0 };
        Ended { id, completed: 20, outcome: Outcome::Ok, numbers: vec![number], body_hash: Some("abc".into()) }
    }

    fn two_attempts() -> Vec<u8> {
        let mut recorder = Recorder::new(Vec::new());
        recorder.begin(&begun(1)).unwrap();
        recorder.begin(&begun(2)).unwrap();
        recorder.end(&ended(2)).unwrap();
        recorder.into_inner()
    }

    #[test]
    fn what_was_written_is_read() {
        let attempts = read_history(&two_attempts()[..]).unwrap();
        let second = Attempt {
            completed: Some(20),
            outcome: Outcome::Ok,
            numbers: ended(2).numbers,
            body_hash: Some("abc".into()),
            ..begun(2).into()
        };
        assert_eq!(attempts, [begun(1).into(), second]);
        assert_eq!((attempts[0].outcome, attempts[0].completed), (Outcome::Info, None), "begun and never ended");
    }

    #[test]
    fn a_line_is_out_before_the_request_is_sent() {
        /// Counts what has been flushed.
        struct Disk(Rc<RefCell<(Vec<u8>, usize)>>);
        impl Write for Disk {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.borrow_mut().0.write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                let mut disk = self.0.borrow_mut();
                disk.1 = disk.0.len();
                Ok(())
            }
        }
        let disk = Rc::new(RefCell::new((Vec::new(), 0)));
        let mut recorder = Recorder::new(io::BufWriter::new(Disk(disk.clone())));
        recorder.begin(&begun(1)).unwrap();
        let (written, flushed) = disk.borrow().clone();
        assert_eq!(read_history(&written[..flushed]).unwrap().len(), 1);
    }

    #[test]
    fn wherever_the_last_line_is_torn_the_others_stand() {
        let whole = two_attempts();
        let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        for end in last..whole.len() - 1 {
            let attempts = read_history(&whole[..end]).unwrap();
            assert_eq!(attempts, [begun(1).into(), begun(2).into()], "cut at byte {end}");
        }
        let only_the_newline_is_missing = read_history(&whole[..whole.len() - 1]).unwrap();
        assert_eq!(only_the_newline_is_missing[1].outcome, Outcome::Ok);
        assert_eq!(read_history(&whole[..5]).unwrap(), []);
        assert_eq!(read_history(&b""[..]).unwrap(), []);
    }

    #[test]
    fn nothing_else_is_passed_over() {
        let whole = String::from_utf8(two_attempts()).unwrap();
        let lines: Vec<_> = whole.lines().collect();
        let read = |lines: &[&str]| read_history((lines.join("\n") + "\n").as_bytes()).unwrap_err();
        let torn = &lines[1][..lines[1].len() / 2];
        assert!(matches!(read(&[lines[0], torn, lines[2]]), HistoryError::Line { line: 2, .. }));
        assert!(matches!(read(&[lines[0], lines[1], torn]), HistoryError::Line { line: 3, .. }), "a whole line of rubbish");
        assert!(matches!(read(&[lines[0], "", lines[1]]), HistoryError::Line { line: 2, .. }));
        assert!(matches!(read(&[lines[0], lines[0]]), HistoryError::BegunTwice(1)));
        assert!(matches!(read(&[lines[0], lines[2]]), HistoryError::NeverBegun(2)));
        assert!(matches!(read(&[lines[1], lines[2], lines[2]]), HistoryError::EndedTwice(2)));
        let early = lines[2].replace("\"completed\":20", "\"completed\":9");
        assert!(matches!(read(&[lines[1], &early]), HistoryError::Backwards(2)));
    }
}
