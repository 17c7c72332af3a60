//! The six checks, one file each. Every one of them is a walk over something sorted.

pub(crate) mod answers;
pub(crate) mod coverage;
pub(crate) mod keys;
pub(crate) mod order;
pub(crate) mod sending;
pub(crate) mod stored;
