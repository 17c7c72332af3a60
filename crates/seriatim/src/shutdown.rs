//! The signals that end a program.

use tokio::signal::unix::{SignalKind, signal};

/// Completes at the first SIGINT or SIGTERM.
pub(crate) async fn asked() -> std::io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
