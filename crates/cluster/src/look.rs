//! Looking without touching: what a start would meet on this machine.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use rustix::fs::Access;

use crate::{Error, account::Account, refuse_foreign};

/// What a folder is to a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is not there, or empty; a start makes what it needs.
    New,
    /// It holds a cluster that nobody uses at the moment.
    Free,
    /// A running program uses it.
    InUse,
}

/// What the folder is, or why a start would refuse it. Makes and changes nothing.
pub fn look(folder: &Path) -> Result<Place, Error> {
    let folder = std::path::absolute(folder).map_err(Error::io(format!("finding {}", folder.display())))?;
    examine(&folder).map_err(|error| error.about(&folder))
}

fn examine(folder: &Path) -> Result<Place, Error> {
    let existing = existing(folder);
    let closed = |source: rustix::io::Errno| Error::io(format!("writing to {}", existing.display()))(source.into());
    rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK).map_err(closed)?;
    refuse_foreign(folder)?;
    Account::for_server()?.check_reach(folder)?;
    let lock = match File::open(folder.join("lock")) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Place::New),
        Err(error) => return Err(Error::io(format!("opening the lock in {}", folder.display()))(error)),
    };
    // Shared, so that two who only look are not in each other's way.
    match lock.try_lock_shared() {
        Ok(()) if folder.join("postgres/PG_VERSION").exists() => Ok(Place::Free),
        Ok(()) => Ok(Place::New),
        Err(fs::TryLockError::WouldBlock) => Ok(Place::InUse),
        Err(fs::TryLockError::Error(source)) => Err(Error::io(format!("locking {}", folder.display()))(source)),
    }
}

/// The account that a server would run as, where it is not the caller's own: root lends one.
pub fn account() -> Result<Option<String>, Error> {
    Ok(Account::for_server()?.lent().map(str::to_owned))
}

/// How many bytes the file system has free where the folder is or would be.
pub fn free_space(folder: &Path) -> Result<u64, Error> {
    let folder = std::path::absolute(folder).map_err(Error::io(format!("finding {}", folder.display())))?;
    let found = rustix::fs::statvfs(existing(&folder)).map_err(io::Error::from);
    found.map(|found| found.f_bavail * found.f_frsize).map_err(Error::io(format!("measuring the disk of {}", folder.display())))
}

/// The folder, or as much of the way to it as there is.
fn existing(folder: &Path) -> &Path {
    folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"))
}
