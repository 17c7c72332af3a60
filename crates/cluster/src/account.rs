//! Which account the server runs as. PostgreSQL refuses to run as root, so root lends it another one.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::Command,
};

use rustix::process::{Pid, Signal};

use crate::Error;

/// The account that PostgreSQL's programs run as.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// None: the caller's own.
    lent: Option<Lent>,
}

#[derive(Clone, Debug)]
struct Lent {
    name: String,
    uid: u32,
    gid: u32,
}

impl Account {
    /// The caller's own account, or `postgres` or `nobody` where the caller is root.
    pub(crate) fn for_server() -> Result<Self, Error> {
        if !crate::is_root() {
            return Ok(Self { lent: None });
        }
        let accounts = fs::read_to_string("/etc/passwd").map_err(Error::io("reading /etc/passwd"))?;
        let find = |wanted: &str| {
            accounts.lines().find_map(|line| {
                let mut fields = line.split(':');
                (fields.next()? == wanted).then_some(())?;
                let mut ids = fields.skip(1).map(str::parse::<u32>);
                Some(Lent { name: wanted.to_owned(), uid: ids.next()?.ok()?, gid: ids.next()?.ok()? })
            })
        };
        let lent = find("postgres").or_else(|| find("nobody"));
        let missing = || Error::NotFound {
            what: "PostgreSQL does not run as root, and there is no account postgres or nobody to lend it".to_owned(),
            advice: "Run this as an ordinary user.".to_owned(),
        };
        Ok(Self { lent: Some(lent.ok_or_else(missing)?) })
    }

    /// The account's name where it is not the caller's own.
    pub(crate) fn lent(&self) -> Option<&str> {
        self.lent.as_ref().map(|lent| lent.name.as_str())
    }

    /// A command that will run as the account.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_remove("PGDATA").current_dir("/");
        if let Some(lent) = &self.lent {
            command.uid(lent.uid).gid(lent.gid);
        }
        command
    }

    /// Makes a folder that only the account may enter (and root, who may enter any).
    pub(crate) fn make_private(&self, folder: &Path) -> Result<(), Error> {
        let show = folder.display();
        fs::create_dir_all(folder).map_err(Error::io(format!("making {show}")))?;
        self.give(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(Error::io(format!("closing {show} to others")))
    }

    /// Hands a file or folder to the account.
    pub(crate) fn give(&self, path: &Path) -> Result<(), Error> {
        match &self.lent {
            Some(lent) => std::os::unix::fs::chown(path, Some(lent.uid), Some(lent.gid)).map_err(Error::io(format!(
                "giving {} to {}",
                path.display(),
                lent.name
            ))),
            None => Ok(()),
        }
    }

    /// Whether the account can get to the folder, or to what there is of the way to it; another account's home
    /// may be in between. Asked before anything is made.
    pub(crate) fn check_reach(&self, folder: &Path) -> Result<(), Error> {
        let Some(lent) = &self.lent else { return Ok(()) };
        // The folder itself will be the account's own, so its parent is what matters.
        let parents = folder.ancestors().skip(1);
        let existing = parents.into_iter().find(|parent| parent.exists()).unwrap_or(Path::new("/"));
        let there = self.command("/bin/sh").args(["-c", "cd \"$1\" 2>/dev/null", "sh"]).arg(existing).status();
        if there.map_err(Error::io("running sh"))?.success() {
            Ok(())
        } else {
            Err(Error::Unreachable { account: lent.name.clone(), folder: folder.to_owned() })
        }
    }
}

/// Signals a process that this program started.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may be gone already, which is what was wanted.
        let _ = rustix::process::kill_process(pid, signal);
    }
}
