//! Is the checker worth its word? Clean runs raise nothing, and every kind of fault put into one is found.

mod clean;
mod faults;
mod order;
mod seed;
mod small;
mod world;
