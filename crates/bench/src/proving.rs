//! An audit as a client sees it: how long until the numbers are counted, and until all is cross-checked.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::Instant,
};

use crate::{Failure, stock};

/// How long it took.
pub(crate) struct Took {
    /// Until counts, gaps and the counter were known.
    pub(crate) counted: Duration,
    /// Until everything was.
    pub(crate) proved: Duration,
}

/// Follows an audit of the hot series to its end, which must be that nothing is wrong.
pub(crate) async fn follow(gateway: SocketAddr, numbers: i64) -> Result<Took, Failure> {
    let key = stock::api_key(stock::TENANT);
    let begun = Instant::now();
    let mut stream = TcpStream::connect(gateway).await?;
    let request = format!(
        "GET /v1/series/{}/audit?format=jsonl HTTP/1.1\r\nHost: {gateway}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        stock::HOT,
        key.reveal()
    );
    stream.write_all(request.as_bytes()).await?;
    let (mut text, mut counted) = (Vec::new(), None);
    loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await?;
        if read == 0 {
            break;
        }
        text.extend_from_slice(&piece[..read]);
        if counted.is_none() && String::from_utf8_lossy(&text).contains(r#""step":"texts""#) {
            counted = Some(begun.elapsed());
        }
    }
    let proved = begun.elapsed();
    let text = String::from_utf8_lossy(&text);
    let right = [r#""complete":true"#.to_owned(), format!(r#""issued":{numbers}"#)];
    if let Some(missing) = right.iter().find(|wanted| !text.contains(*wanted)) {
        let end = text.char_indices().rev().nth(400).map_or(0, |(at, _)| at);
        return Err(format!("the audit does not say {missing}: …{}", &text[end..]).into());
    }
    // Where all is over before the steps are told apart, both took as long.
    Ok(Took { counted: counted.unwrap_or(proved), proved })
}
