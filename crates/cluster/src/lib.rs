//! A private PostgreSQL cluster on a free port of the loopback address: found, made, started and stopped.
//!
//! `seriatim dev` and the tests stand on it. It never touches a server that it did not start. Every role
//! has a password of its own (SCRAM), the folder is 0700, and a keeper process stops the server when the
//! program that started it is gone, however it went.

mod account;
mod find;
mod keeper;
mod setup;
mod system;

use std::{
    fs::{self, File},
    io,
    net::TcpListener,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

pub use find::{Tools, find};
pub use system::{Manager, POSTGRESQL, Package};

use crate::{account::Account, keeper::Keeper};

/// The databases that a new cluster has: one directory and two shards.
pub const DATABASES: [&str; 3] = ["directory", "shard_1", "shard_2"];

/// Why there is no cluster. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No usable PostgreSQL on this machine.
    #[error("{0}")]
    NotFound(String),
    /// Another program holds this folder.
    #[error("another program is using {0}; stop it, or choose another folder")]
    InUse(PathBuf),
    /// The folder has files that are not ours.
    #[error("{0} has other files in it; choose a new or an empty folder")]
    Foreign(PathBuf),
    /// The account that PostgreSQL runs as can't get at the folder.
    #[error("PostgreSQL does not run as root, and the account {account} can't reach {folder}; choose a folder that it can enter")]
    Unreachable {
        /// The account.
        account: String,
        /// The folder.
        folder: PathBuf,
    },
    /// One of PostgreSQL's programs failed.
    #[error("{program} failed: {said}")]
    Program {
        /// Which.
        program: &'static str,
        /// The end of what it printed.
        said: String,
    },
    /// The server did not come up.
    #[error("PostgreSQL did not start; the end of its log:\n{0}")]
    NotReady(String),
    /// The machine said no.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What it said.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what: what.into(), source }
    }
}

/// How a cluster is to be run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where everything lives; made if it is not there. None: a new folder that goes away with the cluster.
    pub folder: Option<PathBuf>,
    /// Whether a commit waits for the disk. False only for tests: it survives the death of any process,
    /// not that of the machine.
    pub durable: bool,
    /// How many connections the server takes.
    pub max_connections: u16,
}

/// Whether this program runs as root, as whom PostgreSQL will not.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A running server. Stopped when dropped.
#[derive(Debug)]
pub struct Cluster {
    folder: PathBuf,
    port: u16,
    passwords: setup::Passwords,
    server: Child,
    keeper: Keeper,
    _lock: File,
}

impl Cluster {
    /// Makes the cluster if the folder has none, starts it and waits until it answers.
    ///
    /// `progress` is told what is being done, before it is done.
    pub fn start(options: &Options, progress: &dyn Fn(&str)) -> Result<Self, Error> {
        let tools = find()?;
        let account = Account::for_server()?;
        let folder = match &options.folder {
            Some(folder) => std::path::absolute(folder).map_err(Error::io(format!("finding {}", folder.display())))?,
            None => setup::temporary_folder()?,
        };
        let started = Self::start_in(&folder, &tools, &account, options, progress);
        if started.is_err() && options.folder.is_none() {
            // Made by us a moment ago, for this cluster alone.
            let _ = fs::remove_dir_all(&folder);
        }
        started
    }

    fn start_in(
        folder: &Path,
        tools: &Tools,
        account: &Account,
        options: &Options,
        progress: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        refuse_foreign(folder)?;
        account.check_reach(folder)?;
        account.make_private(folder)?;
        let lock = hold(folder)?;
        let data = folder.join("postgres");
        if !data.join("PG_VERSION").exists() || !folder.join("passwords").exists() {
            progress(&format!("making a PostgreSQL {} cluster in {}", tools.version, folder.display()));
            setup::make(tools, account, folder, options.durable)?;
        }
        let passwords = setup::Passwords::read(folder)?;
        stop_leftover(tools, account, &data)?;
        progress("starting PostgreSQL");
        let (port, server, keeper) = launch(tools, account, folder, options)?;
        Ok(Self { folder: folder.to_owned(), port, passwords, server, keeper, _lock: lock })
    }

    /// The folder that everything lives in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// The address of a database for a role: `postgres` (the superuser), `seriatim_owner`, `seriatim_app`
    /// or `seriatim_worker`.
    pub fn url(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}:{}@127.0.0.1:{}/{database}", self.passwords.of(role), self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A fast shutdown: sessions are ended, what was committed is kept. The keeper then only tidies up.
        account::signal(self.server.id(), rustix::process::Signal::INT);
        let patience = Instant::now() + Duration::from_secs(20);
        while matches!(self.server.try_wait(), Ok(None)) {
            if Instant::now() > patience {
                account::signal(self.server.id(), rustix::process::Signal::QUIT);
                let _ = self.server.wait();
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.keeper.finish();
    }
}

/// A folder with somebody's files in it is not ours to close to others and to hand to the server's account.
fn refuse_foreign(folder: &Path) -> Result<(), Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io(format!("reading {}", folder.display()))(error)),
    };
    if folder.join("lock").exists() || entries.count() == 0 { Ok(()) } else { Err(Error::Foreign(folder.to_owned())) }
}

/// One program per folder, by a lock that goes away with the process that holds it.
fn hold(folder: &Path) -> Result<File, Error> {
    let path = folder.join("lock");
    let file = File::create(&path).map_err(Error::io(format!("making {}", path.display())))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(Error::InUse(folder.to_owned())),
        Err(fs::TryLockError::Error(source)) => Err(Error::io(format!("locking {}", path.display()))(source)),
    }
}

/// A server that outlived its program (machine and keeper killed at once) is ours, since the folder is and
/// we hold its lock: it is stopped and started anew.
fn stop_leftover(tools: &Tools, account: &Account, data: &Path) -> Result<(), Error> {
    if !data.join("postmaster.pid").exists() {
        return Ok(());
    }
    let running = account.command(tools.program("pg_ctl")).arg("status").arg("-D").arg(data).output();
    if running.map_err(Error::io("running pg_ctl"))?.status.success() {
        let mut stop = account.command(tools.program("pg_ctl"));
        setup::run("pg_ctl", stop.args(["stop", "-m", "fast", "-w", "-t", "60", "-D"]).arg(data))?;
    }
    Ok(())
}

fn launch(tools: &Tools, account: &Account, folder: &Path, options: &Options) -> Result<(u16, Child, Keeper), Error> {
    let (data, log_path) = (folder.join("postgres"), folder.join("postgres.log"));
    let mut said = String::new();
    // A free port can be taken between looking and starting, so a start is tried a few times.
    for _ in 0..5 {
        let port = free_port()?;
        let log = File::create(&log_path).map_err(Error::io("making postgres.log"))?;
        let mut command: Command = account.command(tools.program("postgres"));
        command.arg("-D").arg(&data).arg("-p").arg(port.to_string());
        let sync = if options.durable { "on" } else { "off" };
        for setting in [
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
            format!("max_connections={}", options.max_connections),
            format!("fsync={sync}"),
            format!("full_page_writes={sync}"),
            "synchronous_commit=on".to_owned(),
            "log_min_messages=warning".to_owned(),
        ] {
            command.arg("-c").arg(setting);
        }
        let out = log.try_clone().map_err(Error::io("opening postgres.log"))?;
        // A group of its own: Ctrl-C reaches the program, and the program stops the server.
        command.stdin(Stdio::null()).stdout(out).stderr(log).process_group(0);
        let mut server = command.spawn().map_err(Error::io("starting postgres"))?;
        // At once, so that there is no moment in which the server would outlive us.
        let keeper = Keeper::watch(server.id(), folder, options.folder.is_none())?;
        if wait_ready(&data, &mut server) {
            return Ok((port, server, keeper));
        }
        account::signal(server.id(), rustix::process::Signal::QUIT);
        let _ = server.wait();
        keeper.dismiss();
        said = setup::tail(&fs::read_to_string(&log_path).unwrap_or_default());
        if !said.contains("Address already in use") {
            break;
        }
    }
    Err(Error::NotReady(said))
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
