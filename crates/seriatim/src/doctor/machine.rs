//! What `seriatim dev` needs of the machine: PostgreSQL, an account for it, a folder, room, a port.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

use cluster::{Error, Place};

use crate::{
    dev,
    doctor::{Finding, Level},
    serve,
};

/// Less room than this is said.
const LITTLE: u64 = 1 << 30;

pub(super) async fn look(data: Option<&Path>, port: u16) -> Vec<Finding> {
    let mut findings = vec![postgresql(), account()];
    match data.map_or_else(dev::folder::usual, |folder| Ok(folder.to_owned())) {
        Ok(folder) => findings.extend([place(&folder), room(&folder)]),
        Err(failure) => findings.push(Finding::wrong("data folder", failure.to_string())),
    }
    findings.push(free_port(port).await);
    findings
}

fn postgresql() -> Finding {
    match cluster::find() {
        Ok(tools) => Finding::ok("postgresql", format!("PostgreSQL {} in {}", tools.version, tools.bin.display())),
        Err(error) => missing("postgresql", error),
    }
}

fn account() -> Finding {
    match cluster::account() {
        Ok(Some(name)) => Finding::ok("account", format!("its server will run as {name}, since PostgreSQL does not run as root")),
        Ok(None) => Finding::ok("account", "its server will run as you"),
        Err(error) => missing("account", error),
    }
}

fn missing(about: &str, error: Error) -> Finding {
    match error {
        Error::NotFound { what, advice } => Finding::new(Level::Missing, about, what).advice(advice),
        other => Finding::wrong(about, other.to_string()),
    }
}

fn place(folder: &Path) -> Finding {
    let (about, show) = ("data folder", folder.display());
    match cluster::look(folder) {
        Ok(Place::New) => Finding::ok(about, format!("data folder {show}: nothing there yet; seriatim dev makes it")),
        Ok(Place::Free) => Finding::ok(about, format!("data folder {show}: there, and free")),
        Ok(Place::InUse) => Finding::wrong(about, format!("data folder {show}: a running program uses it"))
            .advice("Stop that one (Ctrl-C where it runs), or choose another folder: --data FOLDER"),
        // Its sentence ends with what to do.
        Err(error) => {
            let said = error.to_string();
            let (what, advice) = said.rsplit_once("; ").unwrap_or((&said, "choose another folder"));
            Finding::wrong(about, format!("data folder: {what}")).advice(format!("To do: {advice} (--data FOLDER)"))
        }
    }
}

fn room(folder: &Path) -> Finding {
    let about = "disk";
    match cluster::free_space(folder) {
        Ok(bytes) if bytes < LITTLE => {
            Finding::new(Level::Note, about, format!("only {} MB are free where the data is", bytes >> 20))
                .advice("Free some space there, or choose a folder on another disk: --data FOLDER")
        }
        Ok(bytes) => Finding::ok(about, format!("{} GB are free where the data is", bytes >> 30)),
        Err(error) => Finding::new(Level::Note, about, error.to_string()),
    }
}

async fn free_port(port: u16) -> Finding {
    match serve::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await {
        Ok(_) => Finding::ok("port", format!("port {port} is free")),
        Err(failure) => {
            let said = failure.to_string();
            let what = said.split("; ").next().unwrap_or_default();
            // The lowest ports are root's.
            let other = if port < 1024 { 8080 } else { port.saturating_add(1) };
            Finding::wrong("port", what).advice(format!("Choose another port, for example --port {other}"))
        }
    }
}
