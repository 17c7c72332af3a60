//! Addresses of databases and gateways, as flags and in the environment.

use std::collections::BTreeMap;

use clap::Args;

use crate::Failure;

/// A shard's name and address.
#[derive(Clone)]
pub(crate) struct ShardAddress {
    pub(crate) name: String,
    pub(crate) url: String,
}

/// Reads `NAME=URL`.
pub(crate) fn shard(text: &str) -> Result<ShardAddress, String> {
    match text.split_once('=') {
        Some((name, url)) if !name.is_empty() && url.starts_with("postgres") => {
            Ok(ShardAddress { name: name.to_owned(), url: url.to_owned() })
        }
        _ => Err("a shard is written NAME=URL, as in shard_1=postgres://…".to_owned()),
    }
}

/// By name; a name that comes twice is an error.
pub(crate) fn by_name(shards: &[ShardAddress]) -> Result<BTreeMap<String, String>, Failure> {
    let map: BTreeMap<_, _> = shards.iter().map(|shard| (shard.name.clone(), shard.url.clone())).collect();
    if map.len() == shards.len() { Ok(map) } else { Err("two shards have the same name; each needs its own".into()) }
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
