//! A client that hangs up: at any byte of its request, or of the answer.

use reqwest::Method;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::Api;

/// The bytes of a request, for a client that does not speak them all.
pub fn request(api: &Api, method: &Method, path: &str, key: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nIdempotency-Key: {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        api.key,
        body.len()
    )
    .into_bytes()
}

/// Connects and sends a request's first `bytes`; beyond its length, reads so many bytes of the answer. The
/// connection closes when what this returns is dropped.
pub async fn until(api: &Api, request: &[u8], bytes: usize) -> TcpStream {
    let address = api.base.strip_prefix("http://").expect("an http address");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let sent = bytes.min(request.len());
    stream.write_all(&request[..sent]).await.expect("it takes the bytes");
    let mut answer = vec![0; bytes - sent];
    stream.read_exact(&mut answer).await.expect("so much of an answer");
    stream
}
