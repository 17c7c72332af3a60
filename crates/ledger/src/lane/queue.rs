//! What a lane decides: who rides next, and what is tried after a round that failed. Plain values: no clock, no task, no
//! database, so that every schedule can be played through.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use crate::batch::Kind;

/// The most orders that one transaction carries.
pub(crate) const ORDERS: usize = 256;
/// The most documents, unless one order alone has more.
pub(crate) const DOCUMENTS: usize = 1_024;
/// How many rounds lock the counter first after somebody else had moved it.
const LOCKED: u32 = 64;
/// How many rounds look first after somebody had repeated a key or a document: who does it once does it again.
const LOOKED: u32 = 16;

/// An order on its way, and what happened to it so far.
#[derive(Debug)]
pub(crate) struct Rider<T> {
    pub(crate) what: T,
    /// How many documents it has.
    pub(crate) documents: usize,
    /// Later than this nobody waits for it.
    pub(crate) deadline: Instant,
    /// How often the database was lost with it aboard.
    pub(crate) lost: u32,
    /// Whether such a loss left its outcome unknown.
    pub(crate) unknown: bool,
}

impl<T> Rider<T> {
    pub(crate) fn new(what: T, documents: usize, deadline: Instant) -> Self {
        Self { what, documents, deadline, lost: 0, unknown: false }
    }
}

/// Who waits, in the order of arrival.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    waiting: VecDeque<Rider<T>>,
    documents: usize,
    /// The most orders of the next round. Halved when a round failed, perhaps for one order's sake, down to one;
    /// doubled when one went well.
    most: usize,
    /// How many more rounds lock first.
    locked: u32,
    /// How many more rounds look first.
    looked: u32,
    /// Rounds that failed one after the other.
    failures: u32,
}

/// Who rides together.
#[derive(Debug)]
pub(crate) struct Round<T> {
    pub(crate) riders: Vec<Rider<T>>,
    /// Whether to write without a look.
    pub(crate) straight: bool,
    /// Whether to lock the counter before looking.
    pub(crate) lock: bool,
}

/// What follows a round that failed.
#[derive(Debug)]
pub(crate) struct Next<T> {
    /// How long the lane stands still.
    pub(crate) pause: Option<Duration>,
    /// This one goes on alone, beside the lane, and holds nobody up.
    pub(crate) aside: Option<Rider<T>>,
    /// For these it is over.
    pub(crate) given_up: Vec<Rider<T>>,
}

impl<T> Queue<T> {
    /// An empty one, whose next rounds lock first.
    pub(crate) fn new(locked: u32) -> Self {
        Self { waiting: VecDeque::new(), documents: 0, most: ORDERS, locked, looked: 0, failures: 0 }
    }

    /// How many more rounds lock first.
    pub(crate) fn locked(&self) -> u32 {
        self.locked
    }

    /// How many documents wait.
    pub(crate) fn documents(&self) -> usize {
        self.documents
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Who rides next.
    pub(crate) fn next(&self) -> Option<&Rider<T>> {
        self.waiting.front()
    }

    /// The last in the queue.
    pub(crate) fn join(&mut self, rider: Rider<T>) {
        self.documents += rider.documents;
        self.waiting.push_back(rider);
    }

    /// Those whose time is up leave.
    pub(crate) fn late(&mut self, now: Instant) -> Vec<Rider<T>> {
        if self.waiting.iter().all(|rider| rider.deadline > now) {
            return Vec::new();
        }
        let (late, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|rider| rider.deadline <= now);
        self.waiting = waiting;
        self.documents = self.waiting.iter().map(|rider| rider.documents).sum();
        Vec::from(late)
    }

    /// The next round; empty if nobody waits.
    pub(crate) fn board(&mut self) -> Round<T> {
        let mut documents = 0;

        let fits = self.waiting.iter().take(self.most).take_while(|rider| {
            documents += rider.documents;
            documents <= DOCUMENTS
        });
        let count = fits.count().max(1).min(self.waiting.len());
        let riders: Vec<_> = self.waiting.drain(..count).collect();
        self.documents -= riders.iter().map(|rider| rider.documents).sum::<usize>();
        Round { riders, straight: self.looked == 0, lock: self.locked > 0 }
    }

    /// A round went well, and these of it have to ride again.
    pub(crate) fn went_well(&mut self, again: Vec<Rider<T>>) {
        self.failures = 0;
        self.locked = self.locked.saturating_sub(1);
        self.looked = self.looked.saturating_sub(1);
        self.most = (self.most * 2).min(ORDERS);
        self.back(again);
    }

    /// A round failed.
    pub(crate) fn failed(&mut self, mut riders: Vec<Rider<T>>, kind: Kind, unknown: bool, now: Instant) -> Next<T> {
        self.failures += 1;
        self.looked = self.looked.max(1);
        let mut next = Next { pause: None, aside: None, given_up: Vec::new() };
        match kind {
            Kind::Final => {
                next.given_up = riders;
                return next;
            }
            // Under the lock it can't happen again, so this costs one more attempt and no time.
            Kind::Moved => self.locked = LOCKED,
            Kind::Unlooked => self.looked = LOOKED,
            Kind::Stale => {}
            Kind::InTheWay => {
                // A look without the lock answers at least those who only repeat themselves.
                self.locked = 0;
                next.pause = Some(store::pause(self.failures));
            }
            Kind::Lost => {
                for rider in &mut riders {
                    rider.lost += 1;
                    rider.unknown |= unknown;
                }
                next.pause = Some(store::pause(self.failures));
            }
            Kind::OneOfThem => match riders.len() {
                1 => next.aside = riders.pop(),
                several => self.most = several / 2,
            },
        }
        if self.failures > 3 && next.pause.is_none() && next.aside.is_none() {
            next.pause = Some(store::pause(self.failures));
        }
        let over = |rider: &Rider<T>| rider.deadline <= now || rider.lost > store::LOST;
        let (given_up, again) = riders.into_iter().partition(over);
        next.given_up = given_up;
        self.back(again);
        next
    }

    /// To the front, in their order: whoever came later gets a later number.
    fn back(&mut self, riders: Vec<Rider<T>>) {
        for rider in riders.into_iter().rev() {
            self.documents += rider.documents;
            self.waiting.push_front(rider);
        }
    }
}

#[cfg(test)]
mod tests;
