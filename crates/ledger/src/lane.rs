//! Lanes: requests for one counter join whatever waits when that counter's previous transaction ends.
//!
//! A hot counter row collapses under a convoy: each transaction waits for the row, then for the disk. A lane carries
//! everybody who waits in one transaction, so the row is fought over by nobody and the disk is waited for once. There is
//! no timer: a lone request sets out at once, and what arrives meanwhile rides together in the next round.
//!
//! | what | how |
//! |---|---|
//! | one lane | one counter, so one tenant; at most one transaction at a time, so one connection |
//! | correctness | never depends on it, nor on how many gateways have a lane on the counter: `batch.rs` alone decides |
//! | independence | each rider has its own answer; a round that fails, perhaps for one rider's sake, is halved, at worst to one, and that one goes on beside the lane |
//! | an unknown outcome | the round is run again with the same keys; whoever was committed is a replay then |
//! | fairness | a lane keeps its connection from round to round only while the pool has more; the pool serves lanes in the order of asking |
//! | bounds | documents waiting per lane and in all, a deadline per rider, a limit per attempt |
//! | cancellation | a lane is a task of its own: a caller who leaves takes nobody along, and its own order is carried out |
//! | order | riders keep the order of arrival, which is the order of values; in a strict series those of one round are ordered by date first |

mod queue;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{
    id::{SeriesName, TenantId},
    period::Period,
    principal::Principal,
    refusal::Refusal,
    series::{Chronology, Series},
};
use quick_cache::sync::Cache;
use store::{Authority, Error, Seat, Snapshot, Stop, Tx};
use tokio::{
    sync::oneshot,
    time::{Instant, error::Elapsed},
};

use crate::{
    Answer, Ledger, Order, PATIENCE,
    batch::{self, Batch, Done, Kind, Outcome, Trouble},
    counter::Left,
    lane::queue::{Queue, Rider, Round},
};

/// The most documents that wait in one lane.
const PER_LANE: usize = 8_192;
/// The most documents that wait in all lanes together.
const IN_ALL: usize = 65_536;
/// Of how many counters it is remembered what they were last.
const REMEMBERED: usize = 10_000;

/// Whose lane it is: one counter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LaneKey {
    pub(crate) shard: String,
    pub(crate) tenant: TenantId,
    pub(crate) series: SeriesName,
    pub(crate) period: Period,
}

/// What a rider hears at the end of its ride.
pub(crate) enum Told {
    Answered(Result<Answer, Stop>),
    /// Its documents are of another period; here is the order back.
    Elsewhere(Period, Box<Order>),
}

/// A transaction that has begun, and what is known of the series.
struct Begun<'s> {
    series: Arc<Series>,
    tx: Tx<'s>,
}

/// An order, who asks, and where the answer is waited for.
struct Fare {
    principal: Principal,
    order: Order,
    answer: oneshot::Sender<Told>,
}

impl Fare {
    fn tell(self, told: Result<Answer, Stop>) {
        // Whoever left does not hear it; their key will.
        let _ = self.answer.send(Told::Answered(told));
    }
}

/// Every lane of this process.
pub(crate) struct Lanes {
    open: Mutex<Open>,
    /// What counters were last.
    left: Cache<LaneKey, Left>,
    /// Where others were at work too when the lane was last open: how many of its rounds are still to lock first.
    contended: Cache<LaneKey, u32>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self { open: Mutex::default(), left: Cache::new(REMEMBERED), contended: Cache::new(REMEMBERED) }
    }
}

/// A lane is here from its first rider to its last; each has one task that drives it.
#[derive(Default)]
struct Open {
    lanes: HashMap<LaneKey, Queue<Fare>>,
    documents: usize,
}

impl Lanes {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the lane. True where it has to be set going.
    fn join(&self, key: &LaneKey, rider: Rider<Fare>) -> Result<bool, Error> {
        let mut open = self.open();
        let waiting = open.lanes.get(key).map_or(0, Queue::documents);
        if waiting + rider.documents > PER_LANE || open.documents + rider.documents > IN_ALL {
            return Err(Error::Busy("too many documents wait for this counter already".into()));
        }
        open.documents += rider.documents;
        if let Some(lane) = open.lanes.get_mut(key) {
            lane.join(rider);
            return Ok(false);
        }
        let mut lane = Queue::new(self.contended.remove(key).map_or(0, |(_, rounds)| rounds));
        lane.join(rider);
        open.lanes.insert(key.clone(), lane);
        Ok(true)
    }

    /// Works on a lane and keeps count of what waits. None where the lane is gone.
    fn with<T>(&self, key: &LaneKey, work: impl FnOnce(&mut Queue<Fare>) -> T) -> Option<T> {
        let mut open = self.open();
        let lane = open.lanes.get_mut(key)?;
        let before = lane.documents();
        let done = work(lane);
        let after = lane.documents();
        open.documents = open.documents - before + after;
        Some(done)
    }

    /// Closes a lane in which nobody waits.
    fn close_if_empty(&self, key: &LaneKey) -> bool {
        let mut open = self.open();
        let empty = open.lanes.get(key).is_none_or(Queue::is_empty);
        if empty && let Some(lane) = open.lanes.remove(key).filter(|lane| lane.locked() > 0) {
            self.contended.insert(key.clone(), lane.locked());
        }
        empty
    }

    fn close(&self, key: &LaneKey) {
        let mut open = self.open();
        let gone = open.lanes.remove(key);
        open.documents -= gone.map_or(0, |lane| lane.documents());
    }
}

/// A lane whose task ends without having come to an end itself leaves nobody waiting: those who wait are told by the
/// closing of their channel, and the next to come opens a new lane.
struct Driver<'a> {
    lanes: &'a Lanes,
    key: &'a LaneKey,
    ended: bool,
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.lanes.close(self.key);
        }
    }
}

impl Ledger {
    /// Rides with an order to its answer.
    pub(crate) async fn ride(&self, key: LaneKey, principal: &Principal, order: Order, deadline: Instant) -> Result<Told, Stop> {
        let (answer, told) = oneshot::channel();
        let documents = order.members.len();
        let rider = Rider::new(Fare { principal: *principal, order, answer }, documents, deadline);
        if self.lanes.join(&key, rider)? {
            let ledger = self.clone();
            #[expect(clippy::disallowed_methods, reason = "whoever rides waits for it, and whoever shuts down for those")]
            drop(tokio::spawn(async move { ledger.drive(&key).await }));
        }
        // A lane that broke can't say how far it came.
        told.await.map_err(|gone| Error::Unknown(gone.into()).into())
    }

    /// Round after round, until nobody waits.
    async fn drive(&self, key: &LaneKey) {
        let mut driver = Driver { lanes: &self.lanes, key, ended: false };
        let mut seat = None;
        loop {
            // Whoever is on the way in gets aboard; there is no waiting for anybody.
            tokio::task::yield_now().await;
            let late = self.lanes.with(key, |lane| lane.late(Instant::now()));
            for rider in late.into_iter().flatten() {
                give_up(rider, &Error::Busy("waited too long for its turn".into()).into());
            }
            if self.lanes.close_if_empty(key) {
                driver.ended = true;
                return;
            }
            let next = self.lanes.with(key, |lane| lane.next().map(|rider| rider.what.principal));
            let Some(principal) = next.flatten() else { return };
            self.round(key, &principal, &mut seat).await;
        }
    }

    async fn round(&self, key: &LaneKey, principal: &Principal, seat: &mut Option<Seat>) {
        let limit = Instant::now() + PATIENCE.attempt;
        let mut taken = seat.take();
        let (riders, done) = {
            let begun = self.begin(key, principal, &mut taken, limit).await;
            // Whoever came while the transaction began rides along.
            let Some(Round { mut riders, straight, lock }) = self.lanes.with(key, Queue::board) else { return };
            let done = match begun {
                Ok(begun) => {
                    if begun.series.settings.chronology == Chronology::Strict {
                        // None of them has an answer yet, so that nobody is refused for having come a moment late.
                        riders.sort_by_key(|rider| rider.what.order.date(&begun.series));
                    }
                    self.carry(key, begun, &riders, (straight, lock), limit).await
                }
                Err(trouble) => Err(trouble),
            };
            (riders, done)
        };
        match done {
            Ok(done) => {
                *seat = taken.filter(|_| !self.shard(&key.shard).is_ok_and(Seat::is_wanted));
                if let Some(left) = done.left {
                    self.lanes.left.insert(key.clone(), left);
                }
                let mut again = Vec::new();
                for (rider, outcome) in riders.into_iter().zip(done.outcomes) {
                    again.extend(settle(rider, outcome));
                }
                self.lanes.with(key, |lane| lane.went_well(again));
            }
            Err(trouble) => {
                tracing::debug!(riders = riders.len(), kind = ?trouble.kind, error = %trouble.stop, "a round failed");
                if trouble.kind == Kind::Stale {
                    self.series.remove(&(key.tenant, key.series.clone()));
                }
                let unknown = matches!(trouble.stop, Stop::Failure(Error::Unknown(_)));
                let next = self.lanes.with(key, |lane| lane.failed(riders, trouble.kind, unknown, Instant::now()));
                let Some(next) = next else { return };
                for rider in next.given_up {
                    give_up(rider, &trouble.stop);
                }
                match (next.aside, trouble.stop) {
                    (Some(rider), Stop::Refusal(refusal)) => rider.what.tell(Err(refusal.into())),
                    (Some(rider), _) => self.go_alone(key.clone(), rider),
                    (None, _) => {}
                }
                if let Some(pause) = next.pause {
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    /// Begins a transaction, on the seat that is kept or on another.
    ///
    /// A seat is kept only from a transaction that went well to the next, and only while nobody else wants it.
    async fn begin<'s>(
        &self,
        key: &LaneKey,
        principal: &Principal,
        seat: &'s mut Option<Seat>,
        limit: Instant,
    ) -> Result<Begun<'s>, Trouble> {
        let begin = async {
            let series = self.remembered_series(&key.shard, principal, &key.series).await;
            let series = series.map_err(|stop| Trouble { kind: Kind::Lost, stop })?;
            let gone = || Trouble { kind: Kind::Final, stop: Refusal::NotFound(format!("series {}", key.series)).into() };
            let series = series.ok_or_else(gone)?;
            let pool = self.shard(&key.shard).map_err(|error| Trouble { kind: Kind::Final, stop: error.into() })?;
            let seat = match seat {
                Some(seat) => seat,
                none => none.insert(Seat::take(pool).await.map_err(Trouble::new(Kind::InTheWay))?),
            };
            let tx = Tx::begin_on(seat, Authority::Tenant(principal), Snapshot::PerStatement).await;
            Ok(Begun { series, tx: tx.map_err(Trouble::new(Kind::InTheWay))? })
        };
        let nothing_yet = |late: Elapsed| Trouble { kind: Kind::Lost, stop: Error::Unavailable(late.into()).into() };
        tokio::time::timeout_at(limit, begin).await.map_err(nothing_yet)?
    }

    /// One transaction, given up after a while: nothing but a clock can tell a server that is gone without a word.
    async fn carry(
        &self,
        key: &LaneKey,
        Begun { series, tx }: Begun<'_>,
        riders: &[Rider<Fare>],
        (straight, lock): (bool, bool),
        limit: Instant,
    ) -> Result<Done, Trouble> {
        let orders = riders.iter().map(|rider| (&rider.what.principal, &rider.what.order)).collect();
        let left = self.lanes.left.get(key);
        let batch = Batch { series: &series, period: &key.period, orders, left, straight, lock };
        let unknown = |late: Elapsed| Trouble { kind: Kind::Lost, stop: Error::Unknown(late.into()).into() };
        tokio::time::timeout_at(limit, batch::run(self, tx, batch)).await.map_err(unknown)?
    }

    /// Beside the lane, again and again while that may help.
    fn go_alone(&self, key: LaneKey, rider: Rider<Fare>) {
        let ledger = self.clone();
        let alone = async move {
            let Rider { what, deadline, unknown, .. } = rider;
            let riders = [Rider::new(what, 1, deadline)];
            let patience = store::Patience { whole: deadline.saturating_duration_since(Instant::now()), ..PATIENCE };
            let done = store::repeat(patience, || async {
                let (limit, mut seat) = (Instant::now() + PATIENCE.attempt, None);
                let done = match ledger.begin(&key, &riders[0].what.principal, &mut seat, limit).await {
                    Ok(begun) => ledger.carry(&key, begun, &riders, (false, true), limit).await,
                    Err(trouble) => Err(trouble),
                };
                if matches!(&done, Err(trouble) if trouble.kind == Kind::Stale) {
                    ledger.series.remove(&(key.tenant, key.series.clone()));
                }
                done.map_err(|trouble| trouble.stop)
            });
            let done = done.await;
            let [rider] = riders;
            match done.map(|done| done.outcomes.into_iter().next()) {
                Ok(Some(outcome)) => drop(settle(rider, outcome)),
                Ok(None) => {}
                Err(stop) => give_up(Rider { unknown, ..rider }, &stop),
            }
        };
        #[expect(clippy::disallowed_methods, reason = "whoever rides waits for it, and whoever shuts down for those")]
        drop(tokio::spawn(alone));
    }
}

/// Tells a rider what became of it, or hands it back if it has to ride again.
fn settle(rider: Rider<Fare>, outcome: Outcome) -> Option<Rider<Fare>> {
    match outcome {
        Outcome::Later => return Some(rider),
        Outcome::Answered(answer) => rider.what.tell(answer.map_err(Stop::from)),
        Outcome::Elsewhere(period) => {
            let Fare { order, answer, .. } = rider.what;
            let _ = answer.send(Told::Elsewhere(period, Box::new(order)));
        }
    }
    None
}

/// Once an outcome is unknown, only another attempt could find it out.
fn give_up(rider: Rider<Fare>, stop: &Stop) {
    let stop = match stop {
        Stop::Failure(error) if rider.unknown && !matches!(error, Error::Unknown(_)) => {
            Error::Unknown(error.clone().into()).into()
        }
        stop => stop.clone(),
    };
    rider.what.tell(Err(stop));
}
