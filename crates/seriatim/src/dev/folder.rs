//! Where `dev` keeps its data, and files that only their owner may read.

use std::{
    env, fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use crate::Failure;

/// The folder of an ordinary user's data (XDG base directories), or of the machine's for root, whose home the
/// server's account could not enter.
pub(crate) fn usual() -> Result<PathBuf, Failure> {
    let home = env::var_os("HOME").map(PathBuf::from);
    if home.as_deref() == Some(Path::new("/root")) {
        return Ok("/var/lib/seriatim/dev".into());
    }
    let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let data = data.or_else(|| Some(home?.join(".local/share")));
    data.map(|data| data.join("seriatim/dev"))
        .ok_or_else(|| "there is no home folder; say where to keep the data with --data FOLDER".into())
}

/// Writes a file that only its owner may read, whole or not at all.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let fail = |error: std::io::Error| format!("can't write {}: {error}", path.display());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let _ = fs::remove_file(&new);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(fail)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(fail)?;
    fs::rename(&new, path).map_err(fail)?;
    Ok(())
}
