//! The states of a number.

/// What has become of a number. A number never vanishes; it only changes its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Sealed for a document, not yet final.
    Reserved,
    /// On its way to an outside system.
    Sending,
    /// The outside system said no; the number is kept.
    Failed,
    /// Nobody knows whether the outside system took it.
    InDoubt,
    /// Final: it stands on a document.
    Issued,
    /// Given up with a reason; final.
    Voided,
    /// Given back before it left the house; the next issue takes the row over.
    Released,
    /// A hole in imported history, on record.
    Missing,
}

impl State {
    /// Every state, for tables and messages.
    pub const ALL: [Self; 8] =
        [Self::Reserved, Self::Sending, Self::Failed, Self::InDoubt, Self::Issued, Self::Voided, Self::Released, Self::Missing];

    /// Whether it is still to be settled.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Reserved | Self::Sending | Self::Failed | Self::InDoubt)
    }

    /// The word in the API and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Sending => "sending",
            Self::Failed => "failed",
            Self::InDoubt => "in_doubt",
            Self::Issued => "issued",
            Self::Voided => "voided",
            Self::Released => "released",
            Self::Missing => "missing",
        }
    }

    /// Reads the word; none if there is no such state.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}
