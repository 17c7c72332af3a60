//! The machine's package manager, and the one command that gets a program from it.

use std::fs;

/// A package manager that this project knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// Debian, Ubuntu and their kin.
    Apt,
    /// Fedora, Red Hat and their kin.
    Dnf,
    /// Alpine.
    Apk,
    /// Arch.
    Pacman,
    /// macOS with Homebrew.
    Brew,
}

/// A program that has to be on the machine, and what each manager calls it.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// What people call it.
    pub name: &'static str,
    apt: &'static str,
    dnf: &'static str,
    apk: &'static str,
    pacman: &'static str,
    brew: &'static str,
}

/// The database server. Its packages bring `psql` too, or depend on what does.
pub const POSTGRESQL: Package = Package {
    name: "PostgreSQL",
    apt: "postgresql",
    dnf: "postgresql-server",
    apk: "postgresql",
    pacman: "postgresql",
    brew: "postgresql@17",
};

impl Manager {
    /// The manager of this machine; none if it is one that this project does not know.
    pub fn of_machine() -> Option<Self> {
        if cfg!(target_os = "macos") {
            return Some(Self::Brew);
        }
        Self::of_release(&fs::read_to_string("/etc/os-release").unwrap_or_default())
    }

    /// By `ID` and `ID_LIKE` of os-release(5).
    fn of_release(text: &str) -> Option<Self> {
        let values = text.lines().filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")));
        let mut ids = values.flat_map(|value| value.trim_matches('"').split(' '));
        ids.find_map(|id| match id {
            "debian" | "ubuntu" => Some(Self::Apt),
            "fedora" | "rhel" | "centos" => Some(Self::Dnf),
            "alpine" => Some(Self::Apk),
            "arch" => Some(Self::Pacman),
            _ => None,
        })
    }

    /// Whether it only works for root.
    pub fn wants_root(self) -> bool {
        self != Self::Brew
    }

    /// The command that installs a package and asks nothing, word by word.
    pub fn install(self, package: &Package) -> Vec<&'static str> {
        match self {
            Self::Apt => vec!["apt-get", "install", "-y", "--no-install-recommends", package.apt],
            Self::Dnf => vec!["dnf", "install", "-y", package.dnf],
            Self::Apk => vec!["apk", "add", package.apk],
            Self::Pacman => vec!["pacman", "-S", "--noconfirm", package.pacman],
            Self::Brew => vec!["brew", "install", package.brew],
        }
    }

    /// The command that makes the manager know what there is; none where installing does that itself.
    pub fn refresh(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Apt => Some(&["apt-get", "update", "-q"]),
            Self::Pacman => Some(&["pacman", "-Sy"]),
            Self::Dnf | Self::Apk | Self::Brew => None,
        }
    }

    /// The one line for a person to type.
    pub fn line(self, package: &Package) -> String {
        let sudo = if self.wants_root() { "sudo " } else { "" };
        format!("{sudo}{}", self.install(package).join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_file_tells_the_manager() {
        for (text, manager) in [
            ("PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n", Some(Manager::Apt)),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", Some(Manager::Apt)),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", Some(Manager::Dnf)),
            ("ID=alpine\nVERSION_ID=3.20.0\n", Some(Manager::Apk)),
            ("ID=plan9\n", None),
            ("", None),
        ] {
            assert_eq!(Manager::of_release(text), manager, "{text}");
        }
    }

    #[test]
    fn the_line_is_one_to_type() {
        assert_eq!(Manager::Apt.line(&POSTGRESQL), "sudo apt-get install -y --no-install-recommends postgresql");
        assert_eq!(Manager::Brew.line(&POSTGRESQL), "brew install postgresql@17");
    }
}
