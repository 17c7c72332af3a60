//! Which values were seen: a bit for each, in pages that are made when they are first needed.

use std::collections::HashMap;

/// Bits in a page: 8 KiB of memory.
const PAGE: i64 = 65_536;

/// A set of values of one counter.
#[derive(Default)]
pub(super) struct Bits(HashMap<i64, Box<[u64]>>);

impl Bits {
    /// Puts a value in. False where it was in already.
    pub(super) fn insert(&mut self, value: i64) -> bool {
        let page = self.0.entry(value.div_euclid(PAGE)).or_insert_with(|| vec![0; 1024].into_boxed_slice());
        let within = usize::try_from(value.rem_euclid(PAGE)).unwrap_or_default();
        let (word, bit) = (&mut page[within / 64], 1_u64 << (within % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_new_once() {
        let mut bits = Bits::default();
        for value in [0, 1, 63, 64, PAGE - 1, PAGE, 9_007_199_254_740_991] {
            assert!(bits.insert(value), "{value}");
            assert!(!bits.insert(value), "{value}");
        }
    }
}
