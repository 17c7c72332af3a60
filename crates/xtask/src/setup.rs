//! Gets what is missing on the machine: programs from its package manager, tools of the trade from crates.io.
//! It says what it does before it does it, and where it may not, it prints the one command to type.

use std::{
    env,
    process::{Command, Stdio},
};

use cluster::{Manager, POSTGRESQL, Package};

use crate::{cargo, say, succeed};

/// Everything that running and testing need.
pub(crate) fn services() -> Result<(), String> {
    let Err(missing) = cluster::find() else { return Ok(()) };
    // Who says where it is does not want another one.
    if env::var_os("SERIATIM_PG_BIN").is_some() {
        return Err(missing.to_string());
    }
    let installed = install(&POSTGRESQL, "The server that the package itself may start is not used.");
    installed.map_err(|why| format!("{missing}\n{why}"))?;
    cluster::find().map(drop).map_err(|still| still.to_string())
}

/// A tool that CI calls, in the one version that it calls.
pub(crate) fn tool(name: &str, version: &str) -> Result<(), String> {
    let said = Command::new(name).arg("--version").stderr(Stdio::null()).output();
    if said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim().ends_with(version)) {
        return Ok(());
    }
    say(&format!("installing {name} {version} (some minutes, once)"));
    cargo(&["install", "--locked", "--no-default-features", "--version", version, name])
}

fn install(package: &Package, note: &str) -> Result<(), String> {
    let Some(manager) = Manager::of_machine() else { return Err("This machine's package manager is not known here.".to_owned()) };
    let Some(prefix) = right(manager) else { return Err("It can't be installed from here: this needs root.".to_owned()) };
    say(&format!("{} is missing; installing it: {}. {note}", package.name, manager.line(package)));
    let run = |words: &[&str]| {
        let mut words = prefix.iter().chain(words);
        let mut command = Command::new(words.next().copied().unwrap_or_default());
        succeed(command.args(words).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()))
    };
    if let Some(refresh) = manager.refresh() {
        run(refresh)?;
    }
    run(&manager.install(package))
}

/// What to put before the manager's command; none if we may not install.
fn right(manager: Manager) -> Option<&'static [&'static str]> {
    if !manager.wants_root() || cluster::is_root() {
        return Some(&[]);
    }
    // Only where sudo asks for no password: nobody may be there to type it.
    let sudo = Command::new("sudo").args(["-n", "true"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    sudo.is_ok_and(|status| status.success()).then_some(&["sudo", "-n", "--preserve-env=DEBIAN_FRONTEND"])
}
