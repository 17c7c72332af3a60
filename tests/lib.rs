//! Nothing lives here: the package is its one integration binary, `main.rs`.
