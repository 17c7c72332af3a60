//! The demo tenant: made once for each data folder, its sample orders numbered through the HTTP API.

use std::{fs, path::Path};

use api::{CreateSeries, CreateTenant, client::Client};
use domain::secret::Mode;
use gateway::{Entropy, SystemEntropy};
use serde::{Deserialize, Serialize};

use crate::{
    Failure, audit,
    issue::{self, Tally},
    migrate,
};

const ORDERS: &str = include_str!("orders.csv");

/// What a second start needs to know; kept in the data folder.
#[derive(Serialize, Deserialize)]
pub(crate) struct Keys {
    pub(crate) tenant: String,
    pub(crate) admin_key: String,
    pub(crate) operator_key: String,
}

/// What was done.
pub(crate) struct Demo {
    pub(crate) keys: Keys,
    pub(crate) report: String,
}

impl Demo {
    /// A line to paste.
    pub(crate) fn next_step(&self, base_url: &str) -> String {
        format!(
            "issue one yourself:\n  curl -s {base_url}/v1/series/invoices/numbers -H 'Authorization: Bearer {}' \\\n       \
             -H 'Content-Type: application/json' -H \"Idempotency-Key: $(date +%s%N)\" -d '{{\"document_ref\": \"my-first-order\"}}'",
            self.keys.admin_key
        )
    }
}

/// Makes tenant, keys and series where they are not there yet, and numbers the sample orders.
pub(crate) async fn run(folder: &Path, directory_owner: &str, base_url: &str) -> Result<Demo, Failure> {
    let keys = keys(folder, directory_owner, base_url).await?;
    let client = Client::new(base_url, &keys.admin_key)?;
    let invoices = CreateSeries::new("invoices", "INV{yyyy}{seq:6}");
    let receipts = CreateSeries { reset: "monthly".to_owned(), ..CreateSeries::new("receipts", "RCP{yyyy}{mm}-{seq:4}") };
    let rows = issue::read(ORDERS.as_bytes(), "order", Some("date"))?;
    let mut report = String::new();
    for series in [invoices, receipts] {
        client.create_series(&format!("dev-{}", series.series), &series).await?;
        let mut done = Tally::default();
        for row in &rows {
            done.add(&issue::issue(&client, &series.series, row).await?);
        }
        report.push_str(&format!("\n{}\n", done.sentence(&series.series)));
        report.push_str(&audit::table(&client.audit(&series.series, None).await?));
    }
    Ok(Demo { keys, report })
}

async fn keys(folder: &Path, directory_owner: &str, base_url: &str) -> Result<Keys, Failure> {
    let file = folder.join("keys.json");
    if let Ok(text) = fs::read_to_string(&file) {
        return Ok(serde_json::from_str(&text).map_err(|e| format!("{} is damaged: {e}", file.display()))?);
    }
    let operator_key = migrate::operator_key(directory_owner, "dev", Mode::Test).await?.reveal().to_owned();
    let operator = Client::new(base_url, &operator_key)?;
    // A new key each time: after a crash before the file was written, the first tenant's key is lost for good.
    let mut bytes = [0; 8];
    SystemEntropy.fill(&mut bytes);
    let once = format!("dev-{:016x}", u64::from_be_bytes(bytes));
    let tenant = operator.create_tenant(&once, &CreateTenant { name: "Demo".to_owned(), mode: "test".to_owned() }).await?;
    let admin_key = tenant.admin_key.ok_or("the new tenant came without its key")?;
    let keys = Keys { tenant: tenant.id, admin_key, operator_key };
    cluster::write_private(&file, &serde_json::to_string_pretty(&keys)?)?;
    Ok(keys)
}
