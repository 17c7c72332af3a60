//! The load: clients that send one request after the other, each over a connection of its own.
//!
//! It shares the machine with what it measures, so it does as little as it can: one thread, requests rendered
//! once in which only digits change, and answers of which only status and length are read.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::Failure;

/// The status under which a request is counted that got no answer.
pub(crate) const NO_ANSWER: u16 = 0;
/// How long a load that was told to stop may take to get its last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(30);
/// How long a client waits after a connection was lost, so that a gateway that is gone is not asked in a loop.
const PAUSE: Duration = Duration::from_millis(50);

/// What a client sends.
pub(crate) trait Requests: Send + 'static {
    /// The next request, whole; none if there is nothing left to ask.
    fn next(&mut self) -> Option<&[u8]>;
}

/// Clients at work.
pub(crate) struct Load {
    stage: Arc<AtomicU8>,
    clients: JoinSet<Answers>,
    opened: Option<Instant>,
}

/// The answers of one status.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// All of them, also those outside the measured time.
    pub(crate) all: u64,
    /// How long each of the measured ones took, in microseconds.
    micros: Vec<u32>,
}

type Answers = BTreeMap<u16, Seen>;

/// What came of a load.
#[derive(Debug)]
pub(crate) struct Outcome {
    answers: Answers,
    measured: Duration,
}

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const ENDING: u8 = 2;

impl Load {
    /// Begins: so many clients, spread evenly over the addresses, each with requests of its own making.
    pub(crate) fn start<R: Requests>(addresses: &[SocketAddr], clients: usize, requests: impl Fn() -> R) -> Self {
        let stage = Arc::new(AtomicU8::new(WARMING));
        let mut set = JoinSet::new();
        for address in addresses.iter().cycle().take(clients) {
            set.spawn(client(*address, requests(), stage.clone()));
        }
        Self { stage, clients: set, opened: None }
    }

    /// From now on answers are measured.
    pub(crate) fn measure(&mut self) {
        self.stage.store(MEASURING, Ordering::Relaxed);
        self.opened = Some(Instant::now());
    }

    /// No further request; waits for the answers of those under way.
    pub(crate) async fn stop(self) -> Result<Outcome, Failure> {
        self.stage.store(ENDING, Ordering::Relaxed);
        let measured = self.opened.map(|opened| opened.elapsed()).unwrap_or_default();
        let answers = tokio::time::timeout(LAST_ANSWERS, gather(self.clients)).await;
        let answers = answers.map_err(|_| format!("some requests have had no answer for {} s", LAST_ANSWERS.as_secs()))?;
        Ok(Outcome { answers, measured })
    }

    /// Waits until the clients have nothing left to ask.
    pub(crate) async fn finish(self, within: Duration) -> Result<Outcome, Failure> {
        let opened = self.opened.unwrap_or_else(Instant::now);
        let answers = tokio::time::timeout(within, gather(self.clients)).await;
        let answers = answers.map_err(|_| format!("not all was asked and answered within {} s", within.as_secs()))?;
        Ok(Outcome { answers, measured: opened.elapsed() })
    }
}

async fn gather(mut clients: JoinSet<Answers>) -> Answers {
    let mut answers = Answers::new();
    while let Some(ended) = clients.join_next().await {
        for (status, seen) in ended.unwrap_or_default() {
            let sum = answers.entry(status).or_default();
            sum.all += seen.all;
            sum.micros.extend(seen.micros);
        }
    }
    for seen in answers.values_mut() {
        seen.micros.sort_unstable();
    }
    answers
}

impl Outcome {
    /// All answers of this status.
    pub(crate) fn all(&self, status: u16) -> u64 {
        self.answers.get(&status).map_or(0, |seen| seen.all)
    }

    /// All requests that did not get this status.
    pub(crate) fn other_than(&self, status: u16) -> u64 {
        self.answers.iter().filter(|(other, _)| **other != status).map(|(_, seen)| seen.all).sum()
    }

    /// Measured answers of this status a second.
    pub(crate) fn speed(&self, status: u16) -> f64 {
        let count = self.answers.get(&status).map_or(0, |seen| seen.micros.len());
        f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / self.measured.as_secs_f64()
    }

    /// The time within which this share of the answers of a status came, in milliseconds; none where none came.
    pub(crate) fn within(&self, status: u16, percent: usize) -> Option<f64> {
        let micros = &self.answers.get(&status)?.micros;
        let last = micros.len().checked_sub(1)?;
        Some(f64::from(micros[last * percent / 100]) / 1_000.0)
    }

    /// How many answers of which status, for a person.
    pub(crate) fn counts(&self) -> String {
        let count = |(status, seen): (&u16, &Seen)| match *status {
            NO_ANSWER => format!("{} without an answer", seen.all),
            status => format!("{} × {status}", seen.all),
        };
        self.answers.iter().map(count).collect::<Vec<_>>().join(", ")
    }
}

async fn client<R: Requests>(address: SocketAddr, mut requests: R, stage: Arc<AtomicU8>) -> Answers {
    let mut answers = Answers::new();
    let mut connection = None;
    let mut buffer = vec![0; 16 * 1024];
    while stage.load(Ordering::Relaxed) != ENDING {
        let open = match connection.take() {
            Some(open) => Ok(open),
            None => connect(address).await,
        };
        let Ok(mut open) = open else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Some(request) = requests.next() else { break };
        let begun = Instant::now();
        let answered = ask(&mut open, request, &mut buffer).await;
        let took = begun.elapsed();
        let seen = answers.entry(*answered.as_ref().unwrap_or(&NO_ANSWER)).or_default();
        seen.all += 1;
        if stage.load(Ordering::Relaxed) == MEASURING {
            seen.micros.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
        }
        if answered.is_ok() {
            connection = Some(open);
        }
    }
    answers
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// One request and the status of its answer, of which everything is read and nothing is kept.
async fn ask(stream: &mut TcpStream, request: &[u8], buffer: &mut [u8]) -> io::Result<u16> {
    stream.write_all(request).await?;
    let mut filled = 0;
    let head = loop {
        let read = stream.read(&mut buffer[filled..]).await?;
        if read == 0 {
            // The peer has hung up, or the head does not fit.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += read;
        if let Some(head) = Head::find(&buffer[..filled]) {
            break head;
        }
    };
    let mut missing = (head.end + head.body).saturating_sub(filled);
    while missing > 0 {
        let room = missing.min(buffer.len());
        let read = stream.read(&mut buffer[..room]).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        missing -= read;
    }
    Ok(head.status)
}

/// What must be known of an answer to find its end.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    /// Where the body begins.
    end: usize,
    /// How long the body is.
    body: usize,
}

impl Head {
    /// The head, once it is complete.
    fn find(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let text = std::str::from_utf8(&bytes[..end]).ok()?;
        let status = text.get(9..12)?.parse().ok()?;
        let mut fields = text.lines().skip(1).filter_map(|line| line.split_once(':'));
        let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let body = length.and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0);
        Some(Self { status, end, body })
    }
}

/// Numbers that look random and never repeat in a run: `SplitMix64`, a bijection of a counter.
#[derive(Debug)]
pub(crate) struct Random(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// Begins elsewhere each time; the beginnings are far more than a run's draws apart.
    pub(crate) fn new() -> Self {
        static BEGUN: AtomicU64 = AtomicU64::new(0);
        let nth = BEGUN.fetch_add(1, Ordering::Relaxed);
        Self::of(nth)
    }

    /// The nth of these sequences.
    pub(crate) fn of(nth: u64) -> Self {
        Self(nth.wrapping_mul(STEP << 40))
    }

    /// The next one.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_found_once_it_is_whole() {
        let answer = b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\nContent-Length: 12\r\n\r\n{\"value\": 1}";
        let end = answer.len() - 12;
        assert_eq!(Head::find(answer), Some(Head { status: 201, end, body: 12 }));
        assert_eq!(Head::find(&answer[..end - 1]), None);
    }

    #[test]
    fn draws_differ() {
        let mut drawn: Vec<u64> = (0..50)
            .flat_map(|_| {
                let mut random = Random::new();
                (0..200).map(|_| random.next()).collect::<Vec<_>>()
            })
            .collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 10_000);
    }

    #[test]
    fn a_share_is_a_time() {
        let seen = Seen { all: 4, micros: vec![1_000, 2_000, 3_000, 4_000] };
        let outcome = Outcome { answers: [(201, seen)].into(), measured: Duration::from_secs(2) };
        assert_eq!(outcome.within(201, 50), Some(2.0));
        assert_eq!(outcome.within(503, 50), None);
        assert!((outcome.speed(201) - 2.0).abs() < 1e-9);
        assert_eq!((outcome.all(201), outcome.other_than(201)), (4, 0));
    }
}
