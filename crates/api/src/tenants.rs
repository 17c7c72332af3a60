//! Tenants and keys.

use serde::{Deserialize, Serialize};

use crate::Body;

/// `POST /v1/tenants`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateTenant {
    /// What people call it, 1–200 characters.
    pub name: String,
    /// `live` or `test`.
    #[serde(default = "live")]
    pub mode: String,
}

fn live() -> String {
    "live".to_owned()
}

impl Body for CreateTenant {
    fn defaults() -> serde_json::Map<String, serde_json::Value> {
        [("mode".to_owned(), live().into())].into_iter().collect()
    }
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// `live` or `test`.
    pub mode: String,
    /// `active` or `suspended`.
    pub status: String,
    /// Counts its changes.
    pub version: i64,
    /// When it was made.
    pub created_at: String,
    /// Its administrator's key: in the answer to its creation, and there only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_key: Option<String>,
}

/// `PATCH /v1/tenants/{id}`: what is not said stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchTenant {
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `active` or `suspended`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

impl Body for PatchTenant {}

/// `POST /v1/keys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateKey {
    /// What people call it, 1–200 characters.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// When it stops being good, RFC 3339; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

impl Body for CreateKey {}

/// An API key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// When it was made.
    pub created_at: String,
    /// When it stops being good.
    pub expires_at: Option<String>,
    /// When it was revoked.
    pub revoked_at: Option<String>,
    /// The key itself: in the answer to its creation, and there only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}
