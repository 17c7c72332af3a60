//! Who acts, and what they may do.

use std::fmt;

use uuid::Uuid;

use crate::id::TenantId;

/// A right that a key carries. Declared beside each route; checked before anything else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Issue and reserve numbers.
    NumbersIssue,
    /// Void numbers.
    NumbersVoid,
    /// Void a number whose sending is in doubt.
    NumbersOverride,
    /// Read numbers, their history and the audit.
    NumbersRead,
    /// Read series and preview them.
    SeriesRead,
    /// Create and change series.
    SeriesWrite,
    /// Queue documents.
    DocumentsWrite,
    /// Follow documents.
    DocumentsRead,
    /// Make and revoke the tenant's keys.
    KeysManage,
    /// Read the audit trail.
    AuditRead,
    /// Operator: create and change tenants.
    TenantsManage,
    /// Operator: manage shards.
    ShardsManage,
}

impl Scope {
    /// What a tenant's key can carry.
    pub const TENANT: [Self; 10] = [
        Self::NumbersIssue,
        Self::NumbersVoid,
        Self::NumbersOverride,
        Self::NumbersRead,
        Self::SeriesRead,
        Self::SeriesWrite,
        Self::DocumentsWrite,
        Self::DocumentsRead,
        Self::KeysManage,
        Self::AuditRead,
    ];
    /// What an operator's key can carry.
    pub const OPERATOR: [Self; 2] = [Self::TenantsManage, Self::ShardsManage];

    /// The word in the API and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::NumbersIssue => "numbers:issue",
            Self::NumbersVoid => "numbers:void",
            Self::NumbersOverride => "numbers:override",
            Self::NumbersRead => "numbers:read",
            Self::SeriesRead => "series:read",
            Self::SeriesWrite => "series:write",
            Self::DocumentsWrite => "documents:write",
            Self::DocumentsRead => "documents:read",
            Self::KeysManage => "keys:manage",
            Self::AuditRead => "audit:read",
            Self::TenantsManage => "tenants:manage",
            Self::ShardsManage => "shards:manage",
        }
    }

    /// Reads the word; none if there is no such scope.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::TENANT.into_iter().chain(Self::OPERATOR).find(|scope| scope.word() == word)
    }
}

/// Who acts on a tenant's data. A transaction on that data can only be begun with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The tenant whose data may be touched.
    pub tenant: TenantId,
    /// Who it is.
    pub who: Who,
}

/// Who a principal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A caller whom this key vouched for.
    Key(Uuid),
    /// The installation's own sweeper, which settles what is overdue.
    Sweeper,
    /// The installation's own auditor, which only reads.
    Auditor,
}

/// Who runs the installation; may create tenants, reads no tenant's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operator {
    /// The key that vouched for the caller.
    pub key: Uuid,
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.who {
            Who::Key(key) => write!(f, "key:{key}"),
            Who::Sweeper => f.write_str("sweeper"),
            Who::Auditor => f.write_str("auditor"),
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operator:{}", self.key)
    }
}
