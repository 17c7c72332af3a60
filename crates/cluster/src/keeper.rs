//! The keeper: a small shell that waits for its standard input to end, which happens when this program is
//! gone, however it went. Then it stops the server and, for a temporary cluster, removes the folder.

use std::{
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::Error;

/// `$1` server pid, `$2` its data, `$3` `remove` or `keep`, `$4` the folder. A process that has the server's pid and not its
/// command line is somebody else's, and is left alone.
const SCRIPT: &str = r#"
read -r _
ours() {
  if [ -e "/proc/self/cmdline" ]; then tr '\000' ' ' <"/proc/$1/cmdline"; else ps -ww -o command= -p "$1"; fi 2>/dev/null |
    grep -qF -- "/postgres -D $2 "
}
tries=0
while ours "$1" "$2" && [ "$tries" -lt 300 ]; do
  if [ "$tries" -eq 0 ]; then kill -INT "$1"; fi
  if [ "$tries" -eq 200 ]; then kill -QUIT "$1"; fi
  tries=$((tries + 1))
  sleep 0.1
done
tries=0
while [ "$3" = remove ] && [ -e "$4" ] && [ "$tries" -lt 50 ]; do
  if [ "$tries" -gt 0 ]; then sleep 0.2; fi
  rm -rf "$4" 2>/dev/null
  tries=$((tries + 1))
done
"#;

#[derive(Debug)]
pub(crate) struct Keeper(Child);

impl Keeper {
    /// Before there is a server: a temporary folder goes away also if we die while it is filled.
    pub(crate) fn sit(folder: &Path) -> Result<Self, Error> {
        Self::watch(0, folder, true)
    }

    pub(crate) fn watch(server: u32, folder: &Path, remove: bool) -> Result<Self, Error> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "seriatim-keeper", &server.to_string()]).arg(folder.join("postgres"));
        command.arg(if remove { "remove" } else { "keep" }).arg(folder);
        // A group of its own, so that Ctrl-C does not end it before its work.
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.spawn().map(Self).map_err(Error::io("starting the keeper"))
    }

    /// Ends it without its work: the server it was for did not come up.
    pub(crate) fn dismiss(mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Lets it do its work now and waits for it.
    pub(crate) fn finish(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
