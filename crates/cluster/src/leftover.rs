//! What an earlier program left in the folder when it was killed, or when the machine was: a server that
//! still runs, or a pid file that names a process which is not there any more, or is somebody else's now.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{Error, account, account::Account, private};

/// Makes the way free for a server of ours. The caller holds the folder's lock.
///
/// A server that outlived its program is ours, since the folder is and we hold its lock: it is stopped. But a
/// pid says little. After a reboot the one in the pid file may belong to anything, another PostgreSQL server of
/// the same account included, so only the process's own command line decides, and nothing else is signalled.
///
/// Where the process is not ours, PostgreSQL would refuse to start for as long as it lives. The pid file must
/// stay all the same: its line 7 names the shared memory by which a new server finds out that processes of
/// the old one are still at work on the data. PostgreSQL takes no notice of a pid that is its own parent's,
/// which is us, and then makes that check. So the first line gets our pid, and the rest stays.
pub(crate) fn clear(account: &Account, data: &Path) -> Result<(), Error> {
    let path = data.join("postmaster.pid");
    let Ok(text) = fs::read_to_string(&path) else { return Ok(()) };
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    // A server in single-user mode writes its pid as a negative number.
    let pid = first.trim().trim_start_matches('-').parse::<u32>().ok();
    if let Some(pid) = pid.filter(|pid| is_server(*pid, data)) {
        return stop(pid, data);
    }
    private::write_private(&path, &format!("{}\n{rest}", std::process::id()))?;
    account.give(&path)
}

fn stop(pid: u32, data: &Path) -> Result<(), Error> {
    account::signal(pid, Signal::INT);
    let begun = Instant::now();
    let mut hurried = false;
    while is_server(pid, data) {
        let waited = begun.elapsed();
        if waited > Duration::from_secs(40) {
            return Err(Error::Stuck { pid });
        }
        if waited > Duration::from_secs(20) && !hurried {
            account::signal(pid, Signal::QUIT);
            hurried = true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Whether this process is a PostgreSQL server on this data folder, by its command line.
fn is_server(pid: u32, data: &Path) -> bool {
    let real = fs::canonicalize(data).unwrap_or_else(|_| data.to_owned());
    if Path::new("/proc/self/cmdline").exists() {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let program = Path::new(words[0].as_ref()).file_name();
        // The same folder may have been reached by another way, over a link, when it was started.
        let names = |word: &str| Path::new(word) == data || fs::canonicalize(word).is_ok_and(|folder| folder == real);
        return program.is_some_and(|name| name == "postgres") && words.windows(2).any(|pair| pair[0] == "-D" && names(&pair[1]));
    }
    let shown = Command::new("ps").args(["-ww", "-o", "command=", "-p", &pid.to_string()]).output();
    let shown = shown.map(|done| String::from_utf8_lossy(&done.stdout).into_owned()).unwrap_or_default();
    let names = |folder: &PathBuf| shown.contains(&format!("/postgres -D {} ", folder.display()));
    [data.to_owned(), real].iter().any(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_only_has_the_pid_is_not_a_server() {
        assert!(!is_server(std::process::id(), Path::new("/")));
        assert!(!is_server(u32::MAX, Path::new("/")));
    }

    #[test]
    fn a_strangers_pid_is_replaced_and_the_rest_of_the_file_stays() {
        let folder = crate::setup::temporary_folder().unwrap();
        let path = folder.join("postmaster.pid");
        let ours = std::process::id();
        let rest = "/data\n1796000000\n5433\n\n127.0.0.1\n  1234567         3\nready   \n";
        // The machine's first process is nobody's server; a server that died before it wrote a word left nothing.
        for (before, after) in [(format!("1\n{rest}"), format!("{ours}\n{rest}")), (String::new(), format!("{ours}\n"))] {
            fs::write(&path, before).unwrap();
            clear(&Account::for_server().unwrap(), &folder).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), after);
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
