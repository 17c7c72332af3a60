//! What tests stand on: a private PostgreSQL cluster, a set of databases for each test, a gateway on them, a
//! clock that the test moves, and the proof at the end of every test. Never part of a release.

#![expect(clippy::missing_panics_doc, reason = "a test that can not go on panics; that is its answer")]

mod app;
mod call;
mod clock;
mod journal;
pub mod leaving;
mod process;
pub mod proof;
mod proxy;
mod shared;

pub use app::{App, Setup, prove, prove_with, unknown_key};
pub use call::{Api, Reply};
pub use clock::TestClock;
pub use journal::{Ask, Journal};
pub use process::{Process, program, run_program};
pub use proxy::{Cut, Proxy};
pub use shared::Victim;
pub use store::fault;
