//! The settings that are one of a few words.

/// Whether a number may be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// It may not; what is not wanted is voided.
    Never,
    /// The last number of a period may, while it is reserved.
    LastUnsent,
}

impl Release {
    /// The word in the API and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::LastUnsent => "last_unsent",
        }
    }

    /// Reads the word; none if there is no such rule.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Never, Self::LastUnsent].into_iter().find(|release| release.word() == word)
    }
}

/// What becomes of a reservation that passed its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overdue {
    /// It is reported and stays: somebody may have used it.
    Alarm,
    /// It is voided, with the deadline as the reason.
    Void,
}

impl Overdue {
    /// The word in the API and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::Alarm => "alarm",
            Self::Void => "void",
        }
    }

    /// Reads the word; none if there is no such policy.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Alarm, Self::Void].into_iter().find(|overdue| overdue.word() == word)
    }
}

/// Whether dates must follow numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chronology {
    /// They need not.
    None,
    /// A date may not go back inside a period.
    Strict,
}

impl Chronology {
    /// The word in the API and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Strict => "strict",
        }
    }

    /// Reads the word; none if there is no such rule.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::None, Self::Strict].into_iter().find(|chronology| chronology.word() == word)
    }
}

/// Whether a series takes issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It does.
    Active,
    /// Not for now.
    Paused,
    /// Never again.
    Closed,
}

impl Status {
    /// The word in the API and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Closed => "closed",
        }
    }

    /// Reads the word; none if there is no such status.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Active, Self::Paused, Self::Closed].into_iter().find(|status| status.word() == word)
    }
}
