//! A migration that is added must be noticed: they are part of the program.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations/shard");
}
