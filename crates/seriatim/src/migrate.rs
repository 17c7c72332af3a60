//! What the owner does before anything can serve.

use std::collections::BTreeMap;

use clap::Args;
use directory::{NewOperatorKey, Owner};
use domain::{
    clock::Clock,
    id::Label,
    secret::{ApiKey, ENTROPY, Mode},
};
use gateway::{Entropy, SystemClock, SystemEntropy};

use crate::{Failure, address};

/// Bring the schemas up to this version and make the shards known.
#[derive(Args)]
pub(crate) struct Migrate {
    /// The directory's address, as seriatim_owner
    #[arg(long, env = "SERIATIM_DIRECTORY_OWNER_URL", hide_env_values = true)]
    directory_owner_url: String,
    /// A shard's name and address, as seriatim_owner; once for each
    #[arg(
        long = "shard-owner",
        value_name = "NAME=URL",
        env = "SERIATIM_SHARD_OWNER_URLS",
        value_delimiter = ',',
        hide_env_values = true,
        required = true
    )]
    shard_owners: Vec<String>,
}

impl Migrate {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let shards = address::by_name(&self.shard_owners)?;
        migrate(&self.directory_owner_url, &shards, &|what| println!("{what}")).await
    }
}

/// Migrates the shards first, then the directory, which makes them known last.
pub(crate) async fn migrate(directory: &str, shards: &BTreeMap<String, String>, progress: &dyn Fn(&str)) -> Result<(), Failure> {
    for (name, url) in shards {
        progress(&format!("migrating {name}"));
        ledger::migrate(url).await?;
    }
    progress("migrating the directory");
    let mut owner = Owner::connect(directory).await?;
    owner.migrate().await?;
    owner.register_shards(&shards.keys().cloned().collect::<Vec<_>>()).await?;
    Ok(owner.close().await?)
}

/// Make an operator key and print it, once.
#[derive(Args)]
pub(crate) struct OperatorKey {
    /// The directory's address, as seriatim_owner
    #[arg(long, env = "SERIATIM_DIRECTORY_OWNER_URL", hide_env_values = true)]
    directory_owner_url: String,
    /// What people call it
    #[arg(long)]
    name: String,
}

impl OperatorKey {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let key = operator_key(&self.directory_owner_url, &self.name, Mode::Live).await?;
        println!("{}", key.reveal());
        eprintln!("This key is shown once; only its hash is stored.");
        Ok(())
    }
}

/// Makes an operator key in the directory.
pub(crate) async fn operator_key(directory: &str, name: &str, mode: Mode) -> Result<ApiKey, Failure> {
    let name = Label::parse(name).map_err(|error| format!("the name {error}"))?;
    let mut bytes = [0; ENTROPY];
    let key = loop {
        SystemEntropy.fill(&mut bytes);
        if let Some(key) = ApiKey::from_entropy(mode, &bytes) {
            break key;
        }
    };
    let at = SystemClock.instant();
    let mut owner = Owner::connect(directory).await?;
    let new = NewOperatorKey { id: gateway::uuid(at, &SystemEntropy), name, secret_hash: key.hash(), at };
    owner.create_operator_key(&new).await?;
    owner.close().await?;
    Ok(key)
}
