//! A TCP proxy that understands just enough of PostgreSQL's protocol (version 3, documentation chapter 55) to
//! break a connection at an exact point: before COMMIT is forwarded, or after it, before its answer.

use std::{
    collections::VecDeque,
    io,
    net::Ipv4Addr,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{
        Notify,
        mpsc::{self, UnboundedReceiver, UnboundedSender},
        oneshot,
    },
    time::Instant,
};

/// What happens to one COMMIT.
#[derive(Debug)]
pub enum Cut {
    /// The connection is cut instead of forwarding it: nothing was committed.
    Before,
    /// The connection is cut when its answer comes: it was committed, and nobody hears of it.
    After,
    /// The sender is told that it is about to be forwarded; it is forwarded when the receiver says so (or is gone).
    Hold(oneshot::Sender<oneshot::Sender<()>>),
}

/// Stands between programs and one PostgreSQL server.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    rules: Arc<Rules>,
}

#[derive(Debug, Default)]
struct Rules {
    /// How long a message travels, one way, in microseconds.
    delay: AtomicU64,
    /// Nothing passes and nothing is closed: the other end is gone without a word.
    silent: AtomicBool,
    changed: Notify,
    /// For the next COMMITs on databases whose name ends so.
    cuts: Mutex<VecDeque<(&'static str, Cut)>>,
    met: AtomicU32,
    connections: AtomicU32,
}

impl Proxy {
    /// A proxy on a free port of the loopback address, to a server on another.
    pub async fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let rules = Arc::new(Rules::default());
        let shared = rules.clone();
        start(async move {
            while let Ok((client, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                start(relay(client, server, shared.clone()));
            }
        });
        Self { port, rules }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on a message takes this long each way.
    pub fn delay(&self, each_way: Duration) {
        self.rules.delay.store(u64::try_from(each_way.as_micros()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Plans what happens to the next COMMIT on a database whose name ends with this; plans are met in order.
    pub fn cut(&self, database: &'static str, cut: Cut) {
        self.rules.cuts.lock().unwrap_or_else(PoisonError::into_inner).push_back((database, cut));
    }

    /// Takes back the plans that nobody has met.
    pub fn forget(&self) -> usize {
        std::mem::take(&mut *self.rules.cuts.lock().unwrap_or_else(PoisonError::into_inner)).len()
    }

    /// How many planned cuts were met.
    pub fn met(&self) -> u32 {
        self.rules.met.load(Ordering::SeqCst)
    }

    /// How many connections there were.
    pub fn connections(&self) -> u32 {
        self.rules.connections.load(Ordering::SeqCst)
    }

    /// Half-open from now on (true): every connection, old or new, stays open and nothing passes. When it ends
    /// (false), connections that were caught in it are closed, as a network does that forgot them.
    pub fn silence(&self, silent: bool) {
        self.rules.silent.store(silent, Ordering::SeqCst);
        self.rules.changed.notify_waiters();
    }
}

impl Rules {
    /// When a message that sets out now arrives.
    fn arrival(&self) -> Instant {
        Instant::now() + Duration::from_micros(self.delay.load(Ordering::SeqCst))
    }

    /// Returns at once, or, where nothing passes, when that has ended: then the connection is lost.
    async fn pass(&self) -> io::Result<()> {
        let mut caught = false;
        loop {
            let changed = self.changed.notified();
            if !self.silent.load(Ordering::SeqCst) {
                return if caught { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) };
            }
            caught = true;
            changed.await;
        }
    }

    /// Hands itself out the plan for a COMMIT on this database, if it is the next.
    fn planned(&self, database: &str) -> Option<Cut> {
        let mut cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        let place = cuts.iter().position(|(name, _)| database.ends_with(name))?;
        self.met.fetch_add(1, Ordering::SeqCst);
        cuts.remove(place).map(|(_, cut)| cut)
    }
}

#[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
fn start(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work);
}

/// Bytes on their way, and when they arrive. Later ones set out before earlier ones have arrived.
type Travelling = (Instant, Option<u8>, Vec<u8>);

async fn relay(client: TcpStream, server: u16, rules: Arc<Rules>) {
    if rules.pass().await.is_err() {
        return;
    }
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await else { return };
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("a TCP stream");
    }
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let database = OnceLock::new();
    let (asked, questions) = mpsc::unbounded_channel();
    let (said, answers) = mpsc::unbounded_channel();
    let swallow = AtomicBool::new(false);
    // The end of any is the end of all: dropping the halves closes both sockets.
    tokio::select! {
        _ = listen_to_client(from_client, asked, &database, &rules) => (),
        _ = ask(questions, to_server, &database, &rules, &swallow) => (),
        _ = listen_to_server(from_server, said, &rules) => (),
        _ = answer(answers, to_client, &rules, &swallow) => (),
    }
}

/// From the client, message by message. The first ones have no type: a wish for encryption, which the server
/// answers with one byte, and the start-up message with the database's name.
async fn listen_to_client(
    mut from: OwnedReadHalf,
    to: UnboundedSender<Travelling>,
    database: &OnceLock<String>,
    rules: &Rules,
) -> io::Result<()> {
    loop {
        let kind = if database.get().is_some() { Some(from.read_u8().await?) } else { None };
        let body = body(&mut from).await?;
        if kind.is_none()
            && let Some(name) = database_in(&body)
        {
            let _ = database.set(name);
        }
        let _ = to.send((rules.arrival(), kind, body));
    }
}

/// The database's name in a start-up message: after its version, names and values that end with a zero byte.
fn database_in(message: &[u8]) -> Option<String> {
    let mut words = message.get(4..)?.split(|byte| *byte == 0);
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        if name == b"database" {
            return Some(String::from_utf8_lossy(value).into_owned());
        }
    }
    None
}

/// To the server, unless a cut is planned.
async fn ask(
    mut from: UnboundedReceiver<Travelling>,
    mut to: OwnedWriteHalf,
    database: &OnceLock<String>,
    rules: &Rules,
    swallow: &AtomicBool,
) -> io::Result<()> {
    while let Some((arrival, kind, body)) = from.recv().await {
        tokio::time::sleep_until(arrival).await;
        rules.pass().await?;
        if kind == Some(b'Q') && body == b"COMMIT\0" {
            match rules.planned(database.get().map_or("", String::as_str)) {
                None => (),
                Some(Cut::Before) => return Ok(()),
                Some(Cut::After) => swallow.store(true, Ordering::SeqCst),
                Some(Cut::Hold(seen)) => {
                    let (go, gone) = oneshot::channel();
                    if seen.send(go).is_ok() {
                        let _ = gone.await;
                    }
                }
            }
        }
        send(&mut to, kind, &body).await?;
    }
    Ok(())
}

/// From the server, as it comes.
async fn listen_to_server(mut from: OwnedReadHalf, to: UnboundedSender<Travelling>, rules: &Rules) -> io::Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let length = from.read(&mut bytes).await?;
        if length == 0 {
            return Ok(());
        }
        let _ = to.send((rules.arrival(), None, bytes[..length].to_vec()));
    }
}

/// To the client. What comes after a COMMIT is its answer, since clients wait for each.
async fn answer(
    mut from: UnboundedReceiver<Travelling>,
    mut to: OwnedWriteHalf,
    rules: &Rules,
    swallow: &AtomicBool,
) -> io::Result<()> {
    while let Some((arrival, _, bytes)) = from.recv().await {
        tokio::time::sleep_until(arrival).await;
        rules.pass().await?;
        if swallow.load(Ordering::SeqCst) {
            break;
        }
        to.write_all(&bytes).await?;
    }
    Ok(())
}

/// A message's length, which counts itself, and what it holds.
async fn body(from: &mut OwnedReadHalf) -> io::Result<Vec<u8>> {
    let length = from.read_u32().await?.checked_sub(4).ok_or(io::ErrorKind::InvalidData)?;
    let mut body = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    from.read_exact(&mut body).await?;
    Ok(body)
}

async fn send(to: &mut OwnedWriteHalf, kind: Option<u8>, body: &[u8]) -> io::Result<()> {
    let mut message: Vec<u8> = kind.into_iter().collect();
    let length = u32::try_from(body.len() + 4).map_err(|_| io::ErrorKind::InvalidData)?;
    message.extend(length.to_be_bytes());
    message.extend(body);
    to.write_all(&message).await
}
