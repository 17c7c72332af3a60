//! Answers that are written while they are made: their head goes out at once, their end only if all went well.
//!
//! The work is a task of its own. It waits a while for a reader who is slow and ends with one who left. An answer that is
//! not finished, whyever, is cut off rather than ended, so that nobody takes a part for the whole.

use std::{io, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header},
    response::Response,
};
use http_body_util::channel::{Channel, Sender};

use crate::app::Gateway;

/// How many pieces wait for a slow reader.
const AHEAD: usize = 4;
/// How long one that takes nothing at all is waited for.
const PATIENCE: Duration = Duration::from_mins(1);

/// Where an answer's pieces go. Dropped before it is finished, it cuts the answer off.
pub(crate) struct Pieces(Option<Sender<Bytes, io::Error>>);

/// Nobody reads any more.
#[derive(Debug)]
pub(crate) struct Gone;

impl Pieces {
    /// Sends one; waits while the reader is behind.
    pub(crate) async fn send(&mut self, piece: impl Into<Bytes>) -> Result<(), Gone> {
        let Some(sender) = &mut self.0 else { return Err(Gone) };
        let sent = tokio::time::timeout(PATIENCE, sender.send_data(piece.into())).await;
        sent.map_err(|_| Gone)?.map_err(|_| Gone)
    }

    /// That was all.
    pub(crate) fn finish(mut self) {
        self.0 = None;
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            sender.abort(io::Error::other("the answer could not be finished"));
        }
    }
}

/// An answer of this kind, whose pieces `work` sends. A gateway that has to stop cuts it off.
pub(crate) fn answer<W>(gateway: &Gateway, kind: &'static str, work: impl FnOnce(Pieces) -> W) -> Response
where
    W: Future<Output = ()> + Send + 'static,
{
    let (sender, body) = Channel::<Bytes, io::Error>::new(AHEAD);
    let work = work(Pieces(Some(sender)));
    let cutting = gateway.cutting.clone();
    gateway.tasks.spawn(async move {
        tokio::select! {
            () = work => {}
            () = cutting.cancelled() => {}
        }
    });
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
