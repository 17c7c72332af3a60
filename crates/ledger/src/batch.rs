//! Taking numbers: the one transaction that everything else is built around. It carries a batch of orders for one
//! counter; a lone order is a batch of one.
//!
//! | # | statement | why there |
//! |---|---|---|
//! | 1 | BEGIN and the tenant | one round trip; no statement runs without a tenant |
//! | 2 | where other gateways are at work on the counter: lock its row | then 3 is younger than the lock: whoever held it before is visible |
//! | 3 | look: counter and run, which keys have a claim, which documents a number | one statement, so one snapshot; replays are answered from here and lock nothing |
//! | 4 | in Rust: gate, range, width; render | what is refused ends here: nothing was written for it, so nothing was used |
//! | 5 | one write: counter, claims, numbers | only if the counter is where it was seen (`last`, version, epoch, gate); its row counts are checked |
//! | 6 | COMMIT | the first moment at which the numbers exist for anybody |
//!
//! Without 2 the update in 5 is the lock. It changes nothing unless the counter is as 3 saw it, so nobody committed on
//! this counter since that snapshot, and 3 missed no key or document of it. With other gateways at work it would often
//! find the counter moved; then the next attempt locks first.
//!
//! A counter that only this gateway works on is where its last round left it, one that 2 has locked is where 2 says, and
//! hardly anybody repeats a key. Then 3 would say what is known, and 5 goes without: its conditions and the unique indexes
//! find out if that is wrong, nothing is kept, and the next attempt looks. A refusal is never said without a look.
//!
//! A value that was released stands above the counter and is taken again: its row is there, so 5 is followed by a statement
//! that takes it over, if it is in the life that was seen.
//!
//! What can't be excluded by the counter's row is caught by unique indexes: the same key or document under another
//! period's counter makes 5 fail; the batch is run again and then finds it in 3. Claims are written in the order of
//! their keys, then numbers in the order of their documents, so that two batches can't wait for each other.
//! A connection lost during 6 leaves the outcome unknown; running it again with the same keys finds out.

mod write;

use domain::{
    next::{Counter, Gate},
    period::Period,
    principal::Principal,
    refusal::Refusal,
    series::{Release, Series},
    state::State,
};
use store::{Error, Stop, Tx, fault::Point};

use crate::{
    Answer, Ledger, Order,
    batch::write::{Wrote, write},
    claim::{self, Claim},
    counter::{self, Left, Look, Place, Seen},
    number,
    plan::{Fate, Known, Planned, plan},
    series,
};

/// What is to be done in one transaction.
pub(crate) struct Batch<'a> {
    pub(crate) series: &'a Series,
    pub(crate) period: &'a Period,
    /// Who asks for what, all of one tenant; never empty.
    pub(crate) orders: Vec<(&'a Principal, &'a Order)>,
    /// What the counter was last, as far as this gateway knows.
    pub(crate) left: Option<Left>,
    /// Whether to write without a look, if the counter is as it was left and nobody repeats themselves.
    pub(crate) straight: bool,
    /// Whether to lock the counter before looking.
    pub(crate) lock: bool,
}

/// What became of an order in a transaction that went well.
pub(crate) enum Outcome {
    Answered(Result<Answer, Refusal>),
    /// It belongs to the counter of this period.
    Elsewhere(Period),
    /// It has to wait for an earlier one of the batch.
    Later,
}

/// A transaction that went well.
pub(crate) struct Done {
    /// In the order of the orders.
    pub(crate) outcomes: Vec<Outcome>,
    /// What the counter is now; none where the period has none.
    pub(crate) left: Option<Left>,
}

/// Why a transaction did not go well, for whoever decides what is tried next. Nothing of it was kept, except that
/// after [`Stop::Failure`] with [`Error::Unknown`] all of it may have been.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) kind: Kind,
    pub(crate) stop: Stop,
}

/// Whose fault it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Somebody else moved the counter: look again, under the lock.
    Moved,
    /// Written without a look, where there was something to be seen: look.
    Unlooked,
    /// The series was changed: read it again.
    Stale,
    /// No connection was free, or the lock not to be had: wait.
    InTheWay,
    /// The database is away or gave no answer.
    Lost,
    /// Perhaps one of the orders: a key in flight elsewhere, a text that exists, a statement that can't be.
    OneOfThem,
    /// Nothing that another attempt could mend.
    Final,
}

impl Trouble {
    pub(crate) fn new(kind: Kind) -> impl FnOnce(Error) -> Self {
        move |error| {
            let kind = if matches!(error, Error::Unavailable(_) | Error::Unknown(_)) { Kind::Lost } else { kind };
            Self { kind, stop: error.into() }
        }
    }
}

/// Runs the transaction, from its beginning in the tenant's name to its end.
pub(crate) async fn run(ledger: &Ledger, mut tx: Tx<'_>, batch: Batch<'_>) -> Result<Done, Trouble> {
    let done = transact(ledger, &mut tx, batch).await;
    match done {
        Ok((done, true)) => {
            tx.reach(Point::AfterWrite).await.map_err(Trouble::new(Kind::OneOfThem))?;
            tx.commit().await.map_err(Trouble::new(Kind::OneOfThem))?;
            Ok(done)
        }
        done => {
            // Only read, or failed: how this ends changes nothing.
            let _ = tx.end().await;
            done.map(|(done, _)| done)
        }
    }
}

/// All but the end. True where something was written.
async fn transact(ledger: &Ledger, tx: &mut Tx<'_>, mut batch: Batch<'_>) -> Result<(Done, bool), Trouble> {
    let asked = ledger.clock.instant();
    tx.reach(Point::BeforeClaim).await.map_err(Trouble::new(Kind::InTheWay))?;
    if batch.lock {
        let (principal, _) = batch.orders[0];
        let locked = counter::lock(tx, principal, &batch.series.name, batch.period).await;
        batch.left = locked.map_err(Trouble::new(Kind::InTheWay))?;
    }
    match go_straight(ledger, tx, &batch, asked).await? {
        Some(done) => Ok((done, true)),
        None => go_looking(ledger, tx, &batch, asked).await,
    }
}

/// Statement 5 alone, as if 3 had seen the counter as it is known, and none of the keys and documents. It
/// changes nothing where that is not so: the counter's conditions and the unique indexes say it. None where there is
/// something to look for.
async fn go_straight(
    ledger: &Ledger,
    tx: &mut Tx<'_>,
    batch: &Batch<'_>,
    asked: jiff::Timestamp,
) -> Result<Option<Done>, Trouble> {
    let Some(left) = batch.left.as_ref().filter(|left| batch.straight && left.seen.config_version == batch.series.version) else {
        return Ok(None);
    };
    let orders: Vec<&Order> = batch.orders.iter().map(|(_, order)| *order).collect();
    let fates = plan(batch.series, &left.seen.counter, &orders, Known::default());
    // A no is said only to what was looked at.
    if !fates.iter().any(takes) || !fates.iter().all(|fate| matches!(fate, Fate::Numbered(_) | Fate::Later)) {
        return Ok(None);
    }
    tx.reach(Point::AfterLock).await.map_err(Trouble::new(Kind::InTheWay))?;
    let Wrote::Moved(moved) = write(tx, batch, &fates, Some((&left.place, &left.seen))).await? else { return Ok(None) };
    ledger.agree(asked, moved.shard_time).map_err(|stop| Trouble { kind: Kind::Final, stop })?;
    let outcomes = answer(tx, batch, fates).await.map_err(Trouble::new(Kind::OneOfThem))?;
    let mut left = left.clone();
    left.moved(moved.place, moved.last, moved.last_date);
    Ok(Some(Done { outcomes, left: Some(left) }))
}

/// The same with a look. True where something was written.
async fn go_looking(
    ledger: &Ledger,
    tx: &mut Tx<'_>,
    batch: &Batch<'_>,
    asked: jiff::Timestamp,
) -> Result<(Done, bool), Trouble> {
    let series = batch.series;
    let (principal, _) = batch.orders[0];
    let place = match &batch.left {
        Some(left) => Ok(Some(left.place.clone())),
        None if batch.lock => Ok(None),
        None => counter::find(tx, principal, &series.name, batch.period).await,
    };
    let mut place = place.map_err(Trouble::new(Kind::InTheWay))?;
    let mut look = look(tx, batch, place.as_ref()).await?;
    if look.seen.is_none() && batch.left.is_some() && !batch.lock {
        // It was there once; it has moved, or the database is another.
        place = counter::find(tx, principal, &series.name, batch.period).await.map_err(Trouble::new(Kind::InTheWay))?;
        look = self::look(tx, batch, place.as_ref()).await?;
    }
    tx.reach(Point::AfterLock).await.map_err(Trouble::new(Kind::InTheWay))?;
    ledger.agree(asked, look.shard_time).map_err(|stop| Trouble { kind: Kind::Final, stop })?;
    let mut fates = decide(tx, batch, &look).await?;
    if look.seen.is_none() && fates.iter().any(takes) {
        // The period begins with these.
        let (_, order) = batch.orders[0];
        let opened = counter::open(tx, principal, &series.name, batch.period, order.at).await;
        opened.map_err(Trouble::new(Kind::InTheWay))?;
        let locked = counter::lock(tx, principal, &series.name, batch.period).await;
        place = locked.map_err(Trouble::new(Kind::InTheWay))?.map(|left| left.place);
        look = self::look(tx, batch, place.as_ref()).await?;
        fates = decide(tx, batch, &look).await?;
    }
    let wrote = write(tx, batch, &fates, place.as_ref().zip(look.seen.as_ref())).await?;
    let written = !matches!(wrote, Wrote::Nothing);
    let mut left = place.zip(look.seen).map(|(place, seen)| Left { place, seen });
    if let (Wrote::Moved(moved), Some(left)) = (wrote, &mut left) {
        left.moved(moved.place, moved.last, moved.last_date);
    }
    let outcomes = answer(tx, batch, fates).await.map_err(Trouble::new(Kind::OneOfThem))?;
    Ok((Done { outcomes, left }, written))
}

async fn look(tx: &mut Tx<'_>, batch: &Batch<'_>, place: Option<&Place>) -> Result<Look, Trouble> {
    let (principal, _) = batch.orders[0];
    let keys: Vec<&str> = batch.orders.iter().map(|(_, order)| order.key.as_str()).collect();
    let references: Vec<&str> = references(batch).collect();
    let look = counter::look_at(tx, principal, &batch.series.name, batch.period, place, (&keys, &references)).await;
    let look = look.map_err(Trouble::new(Kind::OneOfThem))?;
    // A closed counter is left behind by later changes of its series.
    let current = |seen: &Seen| seen.config_version == batch.series.version || seen.counter.gate == Gate::Closed;
    let old = look.series_version.is_some_and(|version| version != batch.series.version);
    if old || look.seen.as_ref().is_some_and(|seen| !current(seen)) {
        return Err(Trouble { kind: Kind::Stale, stop: Error::Moved.into() });
    }
    Ok(look)
}

fn references<'a>(batch: &'a Batch<'_>) -> impl Iterator<Item = &'a str> {
    batch.orders.iter().flat_map(|(_, order)| order.references()).map(domain::id::DocumentRef::as_str)
}

/// Reads what the look found to be there, and plans.
async fn decide(tx: &mut Tx<'_>, batch: &Batch<'_>, look: &Look) -> Result<Vec<Fate>, Trouble> {
    let (principal, _) = batch.orders[0];
    let name = &batch.series.name;
    let mut known = Known::default();
    if !look.claimed.is_empty() {
        let keys: Vec<&str> = look.claimed.iter().map(|place| batch.orders[*place].1.key.as_str()).collect();
        let claims = claim::of_keys(tx, principal, name, &keys).await.map_err(Trouble::new(Kind::OneOfThem))?;
        known.claims = claims.into_iter().collect();
    }
    if !look.numbered.is_empty() {
        let all: Vec<&str> = references(batch).collect();
        let there: Vec<&str> = look.numbered.iter().filter_map(|place| all.get(*place).copied()).collect();
        let numbers = number::known(tx, principal, name, &there).await.map_err(Trouble::new(Kind::OneOfThem))?;
        known.numbers = numbers.into_iter().filter_map(|number| Some((number.document_ref.clone()?, number))).collect();
    }
    if let Some(seen) = look.seen.as_ref().filter(|_| batch.series.settings.release != Release::Never) {
        let released = number::released_above(tx, principal, name, batch.period, seen.counter.last).await;
        known.released = released.map_err(Trouble::new(Kind::OneOfThem))?;
    }
    let unopened = || Counter::untouched(&batch.series.settings, batch.period.clone(), series::gate(batch.series.status));
    let counter = look.seen.as_ref().map_or_else(unopened, |seen| seen.counter.clone());
    let orders: Vec<&Order> = batch.orders.iter().map(|(_, order)| *order).collect();
    Ok(plan(batch.series, &counter, &orders, known))
}

fn takes(fate: &Fate) -> bool {
    matches!(fate, Fate::Numbered(planned) if planned.iter().any(Planned::is_new))
}

/// The answers that the write makes true. Replays are rebuilt from columns that never change.
async fn answer(tx: &mut Tx<'_>, batch: &Batch<'_>, fates: Vec<Fate>) -> Result<Vec<Outcome>, Error> {
    let mut replays = Vec::new();
    let mut outcomes = Vec::with_capacity(fates.len());
    for fate in fates {
        outcomes.push(match fate {
            Fate::Refused(refusal) => Outcome::Answered(Err(refusal)),
            Fate::Elsewhere(period) => Outcome::Elsewhere(period),
            Fate::Later => Outcome::Later,
            Fate::Numbered(planned) => {
                let fresh = planned.iter().any(Planned::is_new);
                let numbers = planned.into_iter().map(|planned| planned.number).collect();
                Outcome::Answered(Ok(Answer { numbers, fresh, replayed: false }))
            }
            Fate::Replay(claim) => {
                replays.push((outcomes.len(), claim));
                Outcome::Later
            }
        });
    }
    for (at, answer) in replay(tx, batch, replays).await? {
        outcomes[at] = Outcome::Answered(answer);
    }
    Ok(outcomes)
}

/// The first answers of these claims once more; unless one of their numbers was given back since.
async fn replay(
    tx: &mut Tx<'_>,
    batch: &Batch<'_>,
    replays: Vec<(usize, Claim)>,
) -> Result<Vec<(usize, Result<Answer, Refusal>)>, Error> {
    let (principal, _) = batch.orders[0];
    let mut shapes = Vec::with_capacity(replays.len());
    let mut places = Vec::new();
    for (at, claim) in replays {
        let (fresh, shown) = (claim.is_fresh(), claim.shown()?);
        places.extend(shown.iter().map(|shown| shown.place.clone()));
        shapes.push((at, fresh, shown));
    }
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let mut numbers = number::at_places(tx, principal, &batch.series.name, places).await?.into_iter();
    let answers = shapes.into_iter().map(|(at, fresh, shown)| {
        let shown: Vec<_> = shown.into_iter().zip(numbers.by_ref()).collect();
        let gone = shown.iter().find(|(shown, number)| number.state == State::Released || number.life != shown.life);
        if let Some((_, number)) = gone {
            return (at, Err(Refusal::NumberReleased(number.number.clone())));
        }
        // Whatever became of them since, this is what the first answer said.
        let numbers = shown.into_iter().map(|(shown, number)| number.shown_in(shown.state)).collect();
        (at, Ok(Answer { numbers, fresh, replayed: true }))
    });
    Ok(answers.collect())
}
