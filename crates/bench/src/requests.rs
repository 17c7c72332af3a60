//! What the clients send: requests rendered once, of which only digits change.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::load::{Random, Requests};

/// Digits of a random word: an `u64` always fits.
const DIGITS: usize = 20;

/// Issues, without end.
#[derive(Debug)]
pub(crate) struct Issues {
    bytes: Vec<u8>,
    key: Range<usize>,
    reference: Option<Range<usize>>,
    row: Option<(Range<usize>, u64)>,
    random: Random,
}

impl Issues {
    /// One number for one document.
    pub(crate) fn single(api_key: &str, series: &str) -> Self {
        let body = format!("{{\"document_ref\":\"order-{}\"}}", "0".repeat(DIGITS));
        let mut issues = Self::new(api_key, series, &body);
        let end = issues.bytes.len() - "\"}".len();
        issues.reference = Some(end - DIGITS..end);
        issues
    }

    /// One number for one document, in any of the series `row-01`, `row-02` and so on.
    pub(crate) fn spread(api_key: &str, rows: u64) -> Self {
        let mut issues = Self::single(api_key, "row-00");
        let at = "POST /v1/series/row-".len();
        issues.row = Some((at..at + 2, rows));
        issues
    }

    /// So many numbers at once, for nameless documents.
    pub(crate) fn batch(api_key: &str, series: &str, count: u32) -> Self {
        Self::new(api_key, series, &format!("{{\"count\":{count}}}"))
    }

    fn new(api_key: &str, series: &str, body: &str) -> Self {
        let before = format!("POST /v1/series/{series}/numbers HTTP/1.1\r\nHost: bench\r\nIdempotency-Key: key-");
        let key = before.len()..before.len() + DIGITS;
        let zeros = "0".repeat(DIGITS);
        let length = body.len();
        let after = format!(
            "\r\nAuthorization: Bearer {api_key}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        Self { bytes: [before, zeros, after].concat().into_bytes(), key, reference: None, row: None, random: Random::new() }
    }
}

impl Requests for Issues {
    fn next(&mut self) -> Option<&[u8]> {
        write(&mut self.bytes[self.key.clone()], self.random.next());
        if let Some(reference) = &self.reference {
            write(&mut self.bytes[reference.clone()], self.random.next());
        }
        if let Some((row, rows)) = &self.row {
            write(&mut self.bytes[row.clone()], self.random.next() % rows + 1);
        }
        Some(&self.bytes)
    }
}

/// Reads of a list of series, each once, whichever client comes to it.
#[derive(Clone, Debug)]
pub(crate) struct Visits {
    /// One API key for each tenant; each has the same series.
    api_keys: Arc<[String]>,
    series: Arc<[String]>,
    done: Arc<AtomicUsize>,
    bytes: Vec<u8>,
}

impl Visits {
    /// Of each of these series of each of these tenants.
    pub(crate) fn new(api_keys: Vec<String>, series: Vec<String>) -> Self {
        Self { api_keys: api_keys.into(), series: series.into(), done: Arc::default(), bytes: Vec::new() }
    }

    /// How many there are in all.
    pub(crate) fn total(&self) -> usize {
        self.api_keys.len() * self.series.len()
    }
}

impl Requests for Visits {
    fn next(&mut self) -> Option<&[u8]> {
        let nth = self.done.fetch_add(1, Ordering::Relaxed);
        let api_key = self.api_keys.get(nth / self.series.len())?;
        let series = &self.series[nth % self.series.len()];
        let text = format!("GET /v1/series/{series} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {api_key}\r\n\r\n");
        self.bytes = text.into_bytes();
        Some(&self.bytes)
    }
}

/// A number in decimal, with zeros before it.
fn write(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_change() {
        let mut issues = Issues::spread("srt_live_x", 60);
        let plain = |request: Option<&[u8]>| {
            let text = String::from_utf8(request.unwrap().to_vec()).unwrap();
            text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect::<String>()
        };
        let first = plain(issues.next());
        assert_eq!(plain(issues.next()), first);
        let zeros = "0".repeat(DIGITS);
        assert!(first.starts_with("POST /v0/series/row-00/numbers HTTP/0.0\r\n"), "{first}");
        assert!(first.contains(&format!("\r\nIdempotency-Key: key-{zeros}\r\n")), "{first}");
        assert!(first.ends_with(&format!("\r\nContent-Length: 00\r\n\r\n{{\"document_ref\":\"order-{zeros}\"}}")), "{first}");
    }

    #[test]
    fn each_series_is_visited_once() {
        let mut one = Visits::new(vec!["a".into(), "b".into()], vec!["x".into(), "y".into(), "z".into()]);
        let mut other = one.clone();
        assert_eq!(one.total(), 6);
        let mut seen = Vec::new();
        while let Some(request) = one.next() {
            seen.push(request.to_vec());
            seen.extend(other.next().map(<[u8]>::to_vec));
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 6);
    }
}
