//! The signals that end a program.

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// Listens from now on; the first SIGINT or SIGTERM is remembered, whenever it comes.
#[derive(Clone)]
pub(crate) struct Asked(watch::Receiver<bool>);

impl Asked {
    /// Begins to listen: from here on a signal no longer ends the process by itself.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let (tell, asked) = watch::channel(false);
        #[expect(clippy::disallowed_methods, reason = "it holds nothing that a shutdown would have to wait for")]
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            let _ = tell.send(true);
            // Keeps the channel open for as long as the process runs.
            std::future::pending::<()>().await;
        });
        Ok(Self(asked))
    }

    /// Completes once a signal came.
    pub(crate) async fn wait(&mut self) {
        // The sender lives as long as the process.
        let _ = self.0.wait_for(|asked| *asked).await;
    }

    /// Whether a signal came already.
    pub(crate) fn already(&self) -> bool {
        *self.0.borrow()
    }
}
