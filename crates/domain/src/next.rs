//! Which numbers come next: the decision that is taken while the counter is locked.

use jiff::civil::Date;

use crate::{
    MAX_VALUE,
    period::Period,
    refusal::Refusal,
    series::{Chronology, Settings, Status},
};

/// Whether a counter lets numbers through. It lives on the row that an issue locks, so a pause that was
/// answered holds for the very next number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It does.
    Open,
    /// The series is paused.
    Paused,
    /// The period or the series is closed.
    Closed,
}

impl Gate {
    /// The word in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paused => "paused",
            Self::Closed => "closed",
        }
    }

    /// Reads the word; none if there is no such gate.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Open, Self::Paused, Self::Closed].into_iter().find(|gate| gate.word() == word)
    }
}

/// A counter as it was read under its lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The period it counts.
    pub period: Period,
    /// The last value given; `first − 1` before any.
    pub last: i64,
    /// Whether it lets numbers through.
    pub gate: Gate,
    /// The last value of the present run, where it has an end.
    pub limit: Option<i64>,
    /// The latest date that has a number.
    pub last_date: Option<Date>,
}

impl Counter {
    /// The counter of a period that has no number yet.
    pub fn untouched(settings: &Settings, period: Period, gate: Gate) -> Self {
        Self { period, last: settings.first - 1, gate, limit: None, last_date: None }
    }
}

/// A value and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// The integer.
    pub value: i64,
    /// The text on the document.
    pub number: String,
}

/// The numbers for documents of these dates, in order, or why there are none. All or nothing.
pub fn next(settings: &Settings, status: Status, counter: &Counter, dates: &[Date]) -> Result<Vec<Next>, Refusal> {
    match (counter.gate, status) {
        (Gate::Open, Status::Active) => {}
        (_, Status::Closed) => return Err(Refusal::SeriesClosed),
        (Gate::Closed, _) => return Err(Refusal::PeriodClosed(counter.period.clone())),
        (Gate::Paused, _) | (_, Status::Paused) => return Err(Refusal::SeriesPaused),
    }
    let mut value = counter.last;
    let mut last_date = counter.last_date.filter(|_| settings.chronology == Chronology::Strict);
    let mut numbers = Vec::with_capacity(dates.len());
    for date in dates {
        value += 1;
        if let Some(last) = last_date.filter(|last| date < last) {
            return Err(Refusal::Chronology { date: *date, last });
        }
        if settings.chronology == Chronology::Strict {
            last_date = Some(*date);
        }
        if let Some(limit) = counter.limit.filter(|limit| value > *limit) {
            return Err(Refusal::RangeExhausted { limit, wanted: dates.len() });
        }
        let fits = (value <= MAX_VALUE).then(|| settings.text(value, *date)).flatten();
        let number = fits.ok_or(Refusal::SeriesExhausted { next: value })?;
        numbers.push(Next { value, number });
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::series::{Draft, tests::draft};

    fn counter(last: i64) -> Counter {
        Counter { period: Period::named("all"), last, gate: Gate::Open, limit: None, last_date: None }
    }

    fn try_next(settings: &Settings, counter: &Counter, n: usize) -> Result<Vec<String>, Refusal> {
        let numbers = next(settings, Status::Active, counter, &vec![date(2026, 1, 1); n])?;
        Ok(numbers.into_iter().map(|n| n.number).collect())
    }

    #[test]
    fn exhaustion_is_found_before_anything_is_used() {
        let settings = draft("{seq:4}", "never").check().unwrap();
        assert_eq!(try_next(&settings, &counter(9997), 2).unwrap(), ["9998", "9999"]);
        assert_eq!(try_next(&settings, &counter(9997), 3), Err(Refusal::SeriesExhausted { next: 10_000 }));
    }

    #[test]
    fn nothing_wraps_at_the_largest_value() {
        let settings = Draft { overflow: "widen".into(), ..draft("{seq}", "never") }.check().unwrap();
        assert_eq!(try_next(&settings, &counter(MAX_VALUE - 1), 1).unwrap(), ["9007199254740991"]);
        assert!(try_next(&settings, &counter(MAX_VALUE), 1).is_err());
    }

    #[test]
    fn a_range_ends_at_its_limit() {
        let settings = draft("{seq}", "never").check().unwrap();
        let ranged = Counter { limit: Some(100), ..counter(99) };
        assert_eq!(try_next(&settings, &ranged, 1).unwrap(), ["100"]);
        assert!(matches!(try_next(&settings, &ranged, 2), Err(Refusal::RangeExhausted { limit: 100, .. })));
    }

    #[test]
    fn strict_dates_follow_the_numbers() {
        let (loose, strict) = (draft("{seq}", "never"), Draft { chronology: "strict".into(), ..draft("{seq}", "never") });
        let dated = Counter { last_date: Some(date(2026, 3, 2)), ..counter(7) };
        let ask = |draft: &Draft, dates: &[Date]| next(&draft.check().unwrap(), Status::Active, &dated, dates).map(|n| n.len());
        assert_eq!(ask(&strict, &[date(2026, 3, 2), date(2026, 3, 2), date(2026, 3, 5)]), Ok(3));
        let back = |day| Refusal::Chronology { date: date(2026, 3, 1), last: date(2026, 3, day) };
        assert_eq!(ask(&strict, &[date(2026, 3, 1)]), Err(back(2)));
        assert_eq!(ask(&strict, &[date(2026, 3, 4), date(2026, 3, 1)]), Err(back(4)), "nor inside one request");
        assert_eq!(ask(&loose, &[date(2026, 3, 4), date(2026, 3, 1)]), Ok(2));
    }

    #[test]
    fn a_closed_gate_says_which() {
        let settings = draft("{seq}", "never").check().unwrap();
        let ask = |gate, status| next(&settings, status, &Counter { gate, ..counter(0) }, &[date(2026, 1, 1)]).unwrap_err();
        assert_eq!(ask(Gate::Paused, Status::Active), Refusal::SeriesPaused);
        assert_eq!(ask(Gate::Open, Status::Paused), Refusal::SeriesPaused);
        assert_eq!(ask(Gate::Closed, Status::Active), Refusal::PeriodClosed(Period::named("all")));
        assert_eq!(ask(Gate::Closed, Status::Closed), Refusal::SeriesClosed);
    }
}
