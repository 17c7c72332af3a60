//! Files that only their owner may read, and that are whole or not there, whatever dies and whenever.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use crate::Error;

/// Writes a file that only its owner may read. It has its old text or the new one, also after the machine
/// died in between: the text is on the disk before it gets the name, and the name is when this returns.
pub fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    write(path, text).map_err(Error::io(format!("writing {}", path.display())))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    // Left behind by a program that died in between.
    let _ = fs::remove_file(&new);
    let written = fill(&new, text).and_then(|()| fs::rename(&new, path)).and_then(|()| sync_folder_of(path));
    if written.is_err() {
        // On a full disk even half a file is in the way.
        let _ = fs::remove_file(&new);
    }
    written
}

fn fill(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// A new name is in the folder, and the folder is a file of its own to the disk.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_stays_private() {
        let folder = crate::setup::temporary_folder().unwrap();
        let file = folder.join("words");
        fs::write(folder.join("words.new"), "half of what somebody wro").unwrap();
        for text in ["first\n", "second\n"] {
            write_private(&file, text).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
        fs::remove_dir_all(&folder).unwrap();
    }
}
