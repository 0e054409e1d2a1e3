//! What rows contain: known from their key, so that whoever reads them can tell.

/// Contents of all rows of one size. The value of a row is a slice of one block of noise, from a
/// place that depends on its key: made without copying, and unlike that of most other rows.
#[derive(Debug)]
pub(super) struct Rows {
    noise: Vec<u8>,
    len: usize,
}

/// Places at which a value may begin; a prime, so that no pattern of keys meets few of them.
const PLACES: usize = 4093;

impl Rows {
    pub(super) fn new(row_bytes: u32) -> Self {
        let len = usize::try_from(row_bytes).unwrap_or(usize::MAX);
        let mut random = Random::new(0);
        let noise = core::iter::repeat_with(|| random.next().to_le_bytes())
            .flatten()
            .take(len.saturating_add(PLACES));
        Self {
            noise: noise.collect(),
            len,
        }
    }

    /// The value of the row of a key.
    pub(super) fn value(&self, key: i64) -> &[u8] {
        let place = usize::try_from(key.unsigned_abs()).unwrap_or(0) % PLACES;
        self.noise.get(place..place + self.len).unwrap_or_default()
    }

    /// Whether a row that was read is the one that was written.
    pub(super) fn are(&self, key: i64, found: (i64, &[u8])) -> bool {
        found == (key, self.value(key))
    }
}

/// SplitMix64: enough to choose rows, and the same rows for the same seed.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, each as likely as the other to one part in four billion.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        let product = u64::from(bound) * (self.next() >> 32);
        u32::try_from(product >> 32).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_tell_whose_they_are() {
        let rows = Rows::new(100);
        assert_eq!(rows.value(7).len(), 100);
        assert!(rows.are(7, (7, rows.value(7))));
        assert!(!rows.are(7, (8, rows.value(7))));
        assert!((0..4092).all(|key| !rows.are(key, (key, rows.value(key + 1)))));
        assert!(!rows.are(7, (7, Rows::new(99).value(7))));
        assert_eq!(Rows::new(0).value(i64::MIN), b"");
    }

    #[test]
    fn numbers_below_a_bound_are_all_met() {
        let mut random = Random::new(1);
        let mut met = [0; 10];
        for _ in 0..1000 {
            met[random.below(10) as usize] += 1;
        }
        assert!(
            met.iter().all(|&count| (50..150).contains(&count)),
            "{met:?}"
        );
        assert_eq!(random.below(1), 0);
    }
}
