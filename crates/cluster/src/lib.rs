//! A private PostgreSQL cluster on a free port of the loopback address: found, made, started and stopped.
//!
//! `seriatim dev` and the tests stand on it. It never touches a server that it did not start. Every role
//! has a password of its own (SCRAM), the folder is 0700, and a keeper process stops the server when the
//! program that started it is gone, however it went.

mod account;
mod find;
mod keeper;
mod leftover;
mod look;
mod private;
mod server;
mod setup;
mod system;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::ExitStatus,
};

pub use find::{Tools, find};
pub use look::{Place, account, free_space, look};
pub use private::write_private;
use rustix::process::Signal;
pub use system::{Manager, POSTGRESQL, Package};

use crate::{
    account::Account,
    keeper::Keeper,
    server::{Launch, Running},
};

/// The databases that a new cluster has: one directory and two shards.
pub const DATABASES: [&str; 3] = ["directory", "shard_1", "shard_2"];

/// Why there is no cluster. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No usable PostgreSQL on this machine.
    #[error("{what}. {advice}")]
    NotFound {
        /// What is missing.
        what: String,
        /// What to type.
        advice: String,
    },
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
    /// The folder, or one on the way to it, is closed to this account.
    #[error("{what}: {source}; choose a folder that this account may write")]
    NotWritable {
        /// What was tried.
        what: String,
        /// What the machine said.
        source: io::Error,
    },
    /// There is no room for what must be written.
    #[error("the disk that holds {0} is full; free some space there, or choose a folder on another disk")]
    Full(PathBuf),
    /// A server of an earlier run does not end.
    #[error("a PostgreSQL server of an earlier run does not stop; end it yourself: kill -QUIT {pid}")]
    Stuck {
        /// Its process.
        pid: u32,
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

    /// The same in plainer words, where what was said has a usual reason.
    fn about(self, folder: &Path) -> Self {
        match self {
            Self::Io { source, .. } if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                Self::Full(folder.to_owned())
            }
            Self::Io { what, source }
                if matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) =>
            {
                Self::NotWritable { what, source }
            }
            Self::Program { said, .. } | Self::NotReady(said) if said.contains("No space left on device") => {
                Self::Full(folder.to_owned())
            }
            other => other,
        }
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
    /// What else is set, as `name=value`.
    pub settings: &'static [&'static str],
}

/// Whether this program runs as root, as whom PostgreSQL will not.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A running server. Stopped when dropped.
#[derive(Debug)]
pub struct Cluster {
    tools: Tools,
    account: Account,
    folder: PathBuf,
    options: Options,
    passwords: setup::Passwords,
    server: Running,
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
        let started = Self::start_in(folder.clone(), tools, account, options, progress);
        if started.is_err() && options.folder.is_none() {
            // Made by us a moment ago, for this cluster alone.
            let _ = fs::remove_dir_all(&folder);
        }
        started.map_err(|error| error.about(&folder))
    }

    fn start_in(
        folder: PathBuf,
        tools: Tools,
        account: Account,
        options: &Options,
        progress: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        refuse_foreign(&folder)?;
        account.check_reach(&folder)?;
        account.make_private(&folder)?;
        let lock = hold(&folder)?;
        let sitter = if options.folder.is_none() { Some(Keeper::sit(&folder)?) } else { None };
        let passwords = setup::ready(&tools, &account, &folder, options.durable, progress)?;
        // What an earlier run said is history; what this one says stays, also when the server is revived.
        let _ = fs::remove_file(folder.join(server::LOG));
        progress("starting PostgreSQL");
        let launch = Launch { tools: &tools, account: &account, folder: &folder, options, port: None };
        let server = launch.start()?;
        if let Some(sitter) = sitter {
            sitter.dismiss();
        }
        Ok(Self { tools, account, folder, options: options.clone(), passwords, server, _lock: lock })
    }

    /// How the server ended, if it did so without being asked: killed, or stopped by somebody else.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.server.process.try_wait().map_err(Error::io("looking at the server's process"))
    }

    /// Starts the server again if it has ended: in the same folder and on the same port, so that every address
    /// stays as it is and pools recover by themselves. True if it was started, false if it was running.
    ///
    /// Blocks until the server answers, which takes some seconds where processes of the old one must end
    /// first. After an error it may be tried again.
    pub fn revive(&mut self) -> Result<bool, Error> {
        if self.ended()?.is_none() {
            return Ok(false);
        }
        let port = Some(self.server.port);
        let launch = Launch { tools: &self.tools, account: &self.account, folder: &self.folder, options: &self.options, port };
        let server = launch.start().map_err(|error| error.about(&self.folder))?;
        // The keeper of the server before watches a process that is gone.
        std::mem::replace(&mut self.server, server).keeper.dismiss();
        Ok(true)
    }

    /// The folder that everything lives in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.server.port
    }

    /// The server's process id; another one after it was revived.
    pub fn pid(&self) -> u32 {
        self.server.process.id()
    }

    /// The end of the server's log.
    pub fn log(&self) -> String {
        setup::tail(&String::from_utf8_lossy(&fs::read(self.folder.join(server::LOG)).unwrap_or_default()))
    }

    /// The address of a database for a role: `postgres` (the superuser), `seriatim_owner`, `seriatim_app`
    /// or `seriatim_worker`.
    pub fn url(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}:{}@127.0.0.1:{}/{database}", self.passwords.of(role), self.server.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A fast shutdown: sessions are ended, what was committed is kept. The keeper then only tidies up.
        server::end(&mut self.server.process, Signal::INT);
        self.server.keeper.finish();
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
