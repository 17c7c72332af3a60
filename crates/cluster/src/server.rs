//! Starting the server: its settings, its port, its keeper, and waiting until it answers.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom},
    net::TcpListener,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{Error, Options, Tools, account, account::Account, keeper::Keeper, leftover, setup};

/// The file that the server's own words go to.
pub(crate) const LOG: &str = "postgres.log";

/// How long a start is tried again where only time is needed. Processes of a server that was killed end at
/// their next look at their client or at the clock; a long statement looks at neither until it is done.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that answers.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) port: u16,
    pub(crate) process: Child,
    pub(crate) keeper: Keeper,
}

/// How and where a server is started.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) tools: &'a Tools,
    pub(crate) account: &'a Account,
    pub(crate) folder: &'a Path,
    pub(crate) options: &'a Options,
    /// None: any free one.
    pub(crate) port: Option<u16>,
}

impl Launch<'_> {
    /// Starts it, again while that may help: a free port can be taken between looking and starting, and
    /// processes of the server before may still hold its shared memory.
    pub(crate) fn start(&self) -> Result<Running, Error> {
        let begun = Instant::now();
        loop {
            let said = match self.attempt()? {
                Ok(running) => return Ok(running),
                Err(said) => said,
            };
            let passes = ["Address already in use", "pre-existing shared memory block"].iter().any(|why| said.contains(why));
            if !passes || begun.elapsed() > PATIENCE {
                return Err(Error::NotReady(said));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// One try; what its log says if it did not come up.
    fn attempt(&self) -> Result<Result<Running, String>, Error> {
        let data = self.folder.join("postgres");
        leftover::clear(self.account, &data)?;
        let port = self.port.map_or_else(free_port, Ok)?;
        let path = self.folder.join(LOG);
        let opened = OpenOptions::new().create(true).append(true).read(true).open(&path);
        let mut log = opened.map_err(Error::io(format!("opening {}", path.display())))?;
        let before = log.seek(SeekFrom::End(0)).map_err(Error::io(format!("reading {}", path.display())))?;
        let mut process = self.spawn(&data, port, &log)?;
        // At once, so that there is no moment in which the server would outlive us.
        let keeper = match Keeper::watch(process.id(), self.folder, self.options.folder.is_none()) {
            Ok(keeper) => keeper,
            Err(error) => {
                end(&mut process, Signal::QUIT);
                return Err(error);
            }
        };
        if wait_ready(&data, &mut process) {
            return Ok(Ok(Running { port, process, keeper }));
        }
        end(&mut process, Signal::QUIT);
        keeper.dismiss();
        let mut said = Vec::new();
        let _ = log.seek(SeekFrom::Start(before)).and_then(|_| log.read_to_end(&mut said));
        Ok(Err(setup::tail(&String::from_utf8_lossy(&said))))
    }

    fn spawn(&self, data: &Path, port: u16, log: &File) -> Result<Child, Error> {
        let mut command = self.account.command(self.tools.program("postgres"));
        command.arg("-D").arg(data).arg("-p").arg(port.to_string());
        let sync = if self.options.durable { "on" } else { "off" };
        for setting in [
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
            format!("max_connections={}", self.options.max_connections),
            format!("fsync={sync}"),
            format!("full_page_writes={sync}"),
            "synchronous_commit=on".to_owned(),
            "log_min_messages=warning".to_owned(),
        ] {
            command.arg("-c").arg(setting);
        }
        for setting in self.options.settings {
            command.arg("-c").arg(setting);
        }
        let copy = || log.try_clone().map_err(Error::io("opening postgres.log"));
        // A group of its own: Ctrl-C reaches the program, and the program stops the server.
        command.stdin(Stdio::null()).stdout(copy()?).stderr(copy()?).process_group(0);
        command.spawn().map_err(Error::io("starting postgres"))
    }
}

/// Ends a server of ours and waits for it. One that has ended already is left alone: its pid may be another's.
pub(crate) fn end(process: &mut Child, signal: Signal) {
    let begun = Instant::now();
    if matches!(process.try_wait(), Ok(None)) {
        account::signal(process.id(), signal);
    }
    while matches!(process.try_wait(), Ok(None)) {
        if begun.elapsed() > Duration::from_secs(20) {
            account::signal(process.id(), Signal::QUIT);
            let _ = process.wait();
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The server writes its state into line 8 of its pid file.
fn wait_ready(data: &Path, server: &mut Child) -> bool {
    let patience = Instant::now() + Duration::from_mins(1);
    while Instant::now() < patience && matches!(server.try_wait(), Ok(None)) {
        let pid_file = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
        let ours = pid_file.lines().next() == Some(&server.id().to_string());
        if ours && pid_file.lines().nth(7).map(str::trim) == Some("ready") {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

fn free_port() -> Result<u16, Error> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(Error::io("looking for a free port"))?;
    Ok(listener.local_addr().map_err(Error::io("looking for a free port"))?.port())
}
