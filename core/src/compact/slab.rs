//! Values under small numbers that are used again once freed.

use alloc::vec::Vec;

/// Most values of one kind.
const ENTRIES_MAX: u32 = 1 << 20;

#[derive(Debug)]
pub(super) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Keeps a value and tells its number; drops it if there are too many.
    pub(super) fn insert(&mut self, value: T) -> Option<u32> {
        let number = self.free.pop().unwrap_or_else(|| self.end());
        match self.entries.get_mut(place(number)) {
            Some(entry) => *entry = Some(value),
            None if number < ENTRIES_MAX => self.entries.push(Some(value)),
            None => return None,
        }
        Some(number)
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.entries.get_mut(place(number))?.take()?;
        self.free.push(number);
        Some(value)
    }

    /// Drops a value where it is.
    pub(super) fn discard(&mut self, number: u32) {
        if let Some(entry @ Some(_)) = self.entries.get_mut(place(number)) {
            *entry = None;
            self.free.push(number);
        }
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.entries.get(place(number))?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.entries.get_mut(place(number))?.as_mut()
    }

    /// All numbers are below this one.
    pub(super) fn end(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(ENTRIES_MAX)
    }

    #[cfg(any(test, feature = "warm-start"))]
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten()
    }

    /// How many are kept.
    pub(super) const fn len(&self) -> usize {
        self.entries.len().saturating_sub(self.free.len())
    }
}

fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_only_after_removal() {
        let mut slab = Slab::new();
        assert_eq!((slab.insert('a'), slab.insert('b')), (Some(0), Some(1)));
        assert_eq!(
            (slab.remove(0), slab.remove(0), slab.remove(9)),
            (Some('a'), None, None)
        );
        assert_eq!((slab.insert('c'), slab.insert('d')), (Some(0), Some(2)));
        assert_eq!(slab.get(1), Some(&'b'));
        assert_eq!(slab.len(), 3);
    }
}
