//! Addresses of databases and gateways, as flags and in the environment.

use std::collections::BTreeMap;

use clap::Args;

use crate::Failure;

/// Shards' addresses by name, from words like `NAME=URL`. Not a parser of flags: its complaints would repeat the
/// word, and with it the password.
pub(crate) fn by_name(words: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |word: &String| match word.split_once('=') {
        Some((name, url)) if !name.is_empty() && url.starts_with("postgres") => Ok((name.to_owned(), url.to_owned())),
        _ => Err("a shard is written NAME=URL, as in shard_1=postgres://…".to_owned()),
    };
    let map = words.iter().map(pair).collect::<Result<BTreeMap<_, _>, _>>()?;
    if map.len() == words.len() { Ok(map) } else { Err("two shards have the same name; each needs its own".into()) }
}

/// Where a client command finds its gateway.
#[derive(Args)]
pub(crate) struct Server {
    /// The gateway's address
    #[arg(long, env = "SERIATIM_URL", default_value = "http://127.0.0.1:8080")]
    pub(crate) url: String,
    /// The API key
    #[arg(long, env = "SERIATIM_API_KEY", hide_env_values = true)]
    pub(crate) api_key: String,
}

impl Server {
    pub(crate) fn client(&self) -> Result<api::client::Client, Failure> {
        Ok(api::client::Client::new(&self.url, &self.api_key)?)
    }
}
