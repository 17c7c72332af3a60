//! Chance that can be had again: the same seed gives the same run.

/// An xorshift generator.
pub(crate) struct Seed(u64);

impl Seed {
    pub(crate) fn new(seed: u64) -> Self {
        // Spread small seeds, and never begin at zero: there the generator would stay.
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    /// A number from `from` up to and without `to`.
    pub(crate) fn within(&mut self, from: i64, to: i64) -> i64 {
        from + i64::try_from(self.next()).expect("53 bits") % (to - from)
    }

    /// A place in a list of this length.
    pub(crate) fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.within(0, i64::try_from(length).expect("a list"))).expect("not negative")
    }

    /// Whether something happens that does so this often in a hundred times.
    pub(crate) fn chance(&mut self, percent: i64) -> bool {
        self.within(0, 100) < percent
    }

    /// One of these.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.place(from.len())]
    }
}
