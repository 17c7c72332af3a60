//! The program under measurement, as processes of their own with the flags that it has by itself.

use std::{fs::File, net::SocketAddr, path::Path, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use crate::{
    Failure,
    server::{SHARD, Server},
};

/// How long it may take to serve, and to end what it is doing.
const SOON: Duration = Duration::from_secs(30);

/// A gateway that serves. Killed when dropped.
pub(crate) struct Gateway {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Its process.
    pub(crate) pid: u32,
    child: Child,
    _lines: Lines<BufReader<ChildStdout>>,
}

impl Gateway {
    /// Starts one on these databases.
    pub(crate) async fn start(program: &Path, server: &Server, directory: &str, shard: &str) -> Result<Self, Failure> {
        let log = File::options().create(true).append(true).open(server.folder().join("gateway.log"))?;
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0"]).kill_on_drop(true).stdout(Stdio::piped()).stderr(log);
        // Addresses hold passwords, and anybody may read a command line.
        command.env("SERIATIM_DIRECTORY_URL", server.url("seriatim_app", directory));
        command.env("SERIATIM_SHARD_URLS", format!("{SHARD}={}", server.url("seriatim_app", shard)));
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        let pid = child.id().ok_or("the gateway has ended")?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("the gateway's output")?).lines();
        let said = tokio::time::timeout(SOON, lines.next_line()).await.map_err(|_| "the gateway does not serve")??;
        let address = said.as_deref().and_then(|line| line.strip_prefix("serving on http://")?.parse().ok());
        let address = address.ok_or_else(|| format!("the gateway said {said:?}"))?;
        Ok(Self { address, pid, child, _lines: lines })
    }

    /// Asks it to stop and waits until everything it was doing has ended.
    pub(crate) async fn stop(mut self) -> Result<(), Failure> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).ok_or("the gateway's pid")?;
        kill_process(pid, Signal::TERM)?;
        let ended = tokio::time::timeout(SOON, self.child.wait()).await.map_err(|_| "the gateway does not stop")??;
        if ended.success() { Ok(()) } else { Err(format!("the gateway ended with {ended}").into()) }
    }
}
