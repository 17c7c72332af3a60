//! The whole system over HTTP, on databases of its own for each test, with the proof at the end of each.
//! A module per noun; tests named `cNN_…` are rows of the table of faults that other systems had.

#![expect(clippy::unwrap_used, reason = "a test that can not go on panics; that is its answer")]

mod audit;
mod bad_input;
mod cancellation;
mod catalogue;
mod changes;
mod commands;
mod commit;
mod dev;
mod doctor;
mod faults;
mod gateways;
mod idempotency;
mod keys;
mod kills;
mod lanes;
mod life;
mod lists;
mod model;
mod numbers;
mod orders;
mod periods;
mod proof;
mod release;
mod series;
mod speed;
mod sweep;
mod tenancy;
mod tidy;
mod time;
mod together;
