//! What both SQL crates stand on: pools with their guards, the one transaction wrapper, and which errors
//! are worth another try.
//!
//! | guard | against |
//! |---|---|
//! | a transaction needs an [`Authority`] | SQL on a tenant's rows without saying whose |
//! | the tenant is set in the same round trip as BEGIN, for this transaction only | one tenant's setting seen by the next |
//! | an attempt has a deadline | waiting for ever on a connection whose other end is gone without a word |
//! | every released connection is rolled back, or closed if it does not answer | a `begin` cancelled in flight leaves the connection inside an open transaction, whose next statements vanish |
//! | statement, lock and idle time-outs on every session | an orphaned statement that holds a row |
//! | a connection lost during COMMIT is [`Error::Unknown`] | reporting "failed" for what was committed |

mod error;
mod event;
pub mod fault;
mod pool;
mod retry;
mod schema;
pub mod settings;
mod tx;

pub use error::{Cause, Error, Stop, advice};
pub use event::{Event, Reached};
pub use pool::{connect_once, pool};
pub use retry::{LOST, Patience, pause, read, repeat};
pub use schema::{note_migrations, schema_difference};
pub use tx::{Authority, Seat, Snapshot, Tx, ping};
