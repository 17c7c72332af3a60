//! Where `dev` keeps its data.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::Failure;

/// The folder of an ordinary user's data (XDG base directories), or of the machine's for root, whose home the
/// server's account could not enter.
pub(crate) fn usual() -> Result<PathBuf, Failure> {
    let home = env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    if home.as_deref() == Some(Path::new("/root")) {
        return Ok("/var/lib/seriatim/dev".into());
    }
    let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let data = data.or_else(|| Some(home?.join(".local/share")));
    data.map(|data| data.join("seriatim/dev"))
        .ok_or_else(|| "there is no home folder; say where to keep the data with --data FOLDER".into())
}
