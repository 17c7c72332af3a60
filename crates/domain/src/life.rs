//! The life of a number: which verb leads from which state to which.
//!
//! | state | confirm | fail | void | release |
//! |---|---|---|---|---|
//! | reserved | issued | failed | voided | released, if it is the last and the series allows it |
//! | sending | no: the dispatcher's | no: the dispatcher's | no | no |
//! | failed | issued | same | voided | no |
//! | in doubt | issued, with a reason | no | voided, with the scope to override | no |
//! | issued | same | no | voided | no |
//! | voided | no | no | same | no |
//! | released | no | no | no | same |
//!
//! A number that was released is given to another document in its next *life*. A missing number has no document, so no verb
//! reaches it.

use crate::state::State;

/// What a caller wants to become of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It stands on its document.
    Confirm,
    /// The outside system said no; the number is kept for the next attempt.
    Fail,
    /// It is given up for good, on record.
    Void,
    /// It never left the house and goes back, to be the next number again.
    Release,
}

/// What a verb does in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It leads there.
    To(State),
    /// It leads there if somebody says why.
    WithReason(State),
    /// It leads there for whoever may override.
    Override(State),
    /// It leads there for the last number of its period, where the series allows it.
    IfLast(State),
    /// It has been done already.
    Same,
    /// Not from here.
    No,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Confirm, Self::Fail, Self::Void, Self::Release];

    /// The word in the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Fail => "fail",
            Self::Void => "void",
            Self::Release => "release",
        }
    }

    /// What it does to a number in this state.
    pub fn step(self, state: State) -> Step {
        match (self, state) {
            (Self::Confirm, State::Reserved | State::Failed) => Step::To(State::Issued),
            (Self::Confirm, State::InDoubt) => Step::WithReason(State::Issued),
            (Self::Fail, State::Reserved) => Step::To(State::Failed),
            (Self::Void, State::Reserved | State::Failed | State::Issued) => Step::To(State::Voided),
            (Self::Void, State::InDoubt) => Step::Override(State::Voided),
            (Self::Release, State::Reserved) => Step::IfLast(State::Released),
            (Self::Confirm, State::Issued)
            | (Self::Fail, State::Failed)
            | (Self::Void, State::Voided)
            | (Self::Release, State::Released) => Step::Same,
            _ => Step::No,
        }
    }

    /// The states that it leads from, for a caller who gives a reason or not, and may override or not.
    pub fn leads_from(self, reason: bool, may_override: bool) -> Vec<State> {
        let leads = |state: &State| match self.step(*state) {
            Step::To(_) => true,
            Step::WithReason(_) => reason,
            Step::Override(_) => may_override,
            Step::IfLast(_) | Step::Same | Step::No => false,
        };
        State::ALL.into_iter().filter(leads).collect()
    }

    /// Where it leads.
    pub fn target(self) -> State {
        match self {
            Self::Confirm => State::Issued,
            Self::Fail => State::Failed,
            Self::Void => State::Voided,
            Self::Release => State::Released,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        let said = |step| match step {
            Step::To(state) => state.word().to_owned(),
            Step::WithReason(state) => format!("{} with a reason", state.word()),
            Step::Override(state) => format!("{} by override", state.word()),
            Step::IfLast(state) => format!("{} if last", state.word()),
            Step::Same => "same".to_owned(),
            Step::No => "no".to_owned(),
        };
        let rows = State::ALL.map(|state| Verb::ALL.map(|verb| said(verb.step(state))));
        assert_eq!(
            rows,
            [
                ["issued", "failed", "voided", "released if last"],
                ["no", "no", "no", "no"],
                ["issued", "same", "voided", "no"],
                ["issued with a reason", "no", "voided by override", "no"],
                ["same", "no", "voided", "no"],
                ["no", "no", "same", "no"],
                ["no", "no", "no", "same"],
                ["no", "no", "no", "no"],
            ]
        );
    }

    #[test]
    fn every_step_leads_to_the_verbs_target_and_is_the_same_afterwards() {
        for verb in Verb::ALL {
            for state in State::ALL {
                if let Step::To(to) | Step::WithReason(to) | Step::Override(to) | Step::IfLast(to) = verb.step(state) {
                    assert_eq!((to, verb.step(to)), (verb.target(), Step::Same));
                }
            }
            let most = verb.leads_from(true, true);
            assert!(verb.leads_from(false, false).iter().all(|state| most.contains(state)));
        }
    }
}
