//! The house is as it was drawn: who may use whom, and that documents name what exists.

use std::{collections::BTreeSet, fs, path::Path};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Each crate, the crates of this house it may use, and the libraries it never does.
const HOUSE: &[(&str, &[&str], &[&str])] = &[
    ("domain", &[], &["tokio", "sqlx", "axum", "reqwest", "serde"]),
    ("api", &[], &["sqlx", "axum"]),
    ("store", &["domain"], &["axum", "redis", "reqwest"]),
    ("directory", &["domain", "store"], &["axum", "redis", "deadpool-redis", "reqwest"]),
    ("ledger", &["domain", "store"], &["axum", "redis", "deadpool-redis", "reqwest"]),
    ("gateway", &["domain", "api", "store", "directory", "ledger"], &["sqlx", "reqwest"]),
    ("dispatcher", &["domain", "api", "store", "directory", "ledger"], &["axum", "redis", "deadpool-redis", "sqlx"]),
    ("cluster", &[], &["tokio", "sqlx", "axum"]),
    ("checker", &[], &["tokio", "sqlx", "axum", "reqwest"]),
    ("seriatim", &["domain", "api", "store", "directory", "ledger", "gateway", "dispatcher", "cluster"], &["sqlx", "axum"]),
    ("testkit", &["domain", "api", "store", "directory", "ledger", "gateway", "dispatcher", "cluster", "checker"], &[]),
    ("bench", &["domain", "directory", "ledger", "cluster"], &["axum", "reqwest"]),
    ("xtask", &["cluster"], &["tokio", "sqlx", "axum"]),
    ("integration", &["store", "testkit", "checker"], &[]),
];

#[test]
fn the_arrows_between_crates() {
    let metadata = MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().expect("cargo metadata");
    let ours: BTreeSet<_> = metadata.packages.iter().map(|package| package.name.to_string()).collect();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let (_, may, never) =
            HOUSE.iter().find(|(known, ..)| *known == name).unwrap_or_else(|| panic!("{name} has no place in the house"));
        for dependency in package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal) {
            let used = dependency.name.as_str();
            assert!(!ours.contains(used) || may.contains(&used), "{name} must not use {used}");
            assert!(!never.contains(&used), "{name} never uses {used}");
        }
    }
    for (name, _, _) in HOUSE {
        assert!(ours.contains(*name), "{name} is drawn but not built");
    }
}

#[test]
fn the_testkit_is_in_no_release() {
    let metadata = MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().expect("cargo metadata");
    let users: Vec<_> = metadata
        .packages
        .iter()
        .filter(|package| package.dependencies.iter().any(|d| d.name == "testkit"))
        .map(|p| p.name.as_str())
        .collect();
    assert_eq!(users, ["integration"]);
}

/// What makes a transaction go wrong on purpose is asked for by the testkit alone, so no release that is built by
/// itself (`--package seriatim`) has it.
#[test]
fn only_the_testkit_asks_for_faults() {
    let metadata = MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().expect("cargo metadata");
    let asks = |package: &&cargo_metadata::Package| {
        package.dependencies.iter().any(|d| d.name == "store" && d.features.iter().any(|f| f == "faults"))
    };
    let askers: Vec<_> = metadata.packages.iter().filter(asks).map(|package| package.name.as_str()).collect();
    assert_eq!(askers, ["testkit"]);
    let store = metadata.packages.iter().find(|package| package.name.as_str() == "store").expect("store");
    assert!(!store.features.get("default").is_some_and(|on| on.contains(&"faults".to_owned())));
}

#[test]
fn every_file_says_why_it_exists() {
    for file in files(&root(), "rs") {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//! "), "{} begins with no //! line", file.display());
    }
    for file in files(&root().join("migrations"), "sql") {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("-- "), "{} begins with no -- line", file.display());
    }
}

/// Names in backticks that look like files or folders of the project must be there.
#[test]
fn documents_name_what_exists() {
    let root = root();
    let documents = files(&root.join("docs"), "md").into_iter().chain([root.join("README.md")]);
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for (place, name) in text.split('`').enumerate() {
            let looks_like_one =
                place % 2 == 1 && name.contains('/') && !name.contains([' ', '{', '<', '*', ':', '…']) && !name.starts_with('/');
            let known =
                ["crates/", "migrations/", "tests/", "docs/", "helm/", ".ci/", ".cargo/"].iter().any(|top| name.starts_with(top));
            if looks_like_one && known {
                assert!(root.join(name).exists(), "{} names {name}, which is not there", document.display());
            }
        }
    }
}

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn files(folder: &Path, extension: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" && name != ".git" {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found
}
