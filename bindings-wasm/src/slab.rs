//! Values under small numbers that are used again once freed.

use alloc::vec::Vec;

/// Most values of one kind; the shell cannot hold more links, statements or timers than this.
pub(crate) const ENTRIES_MAX: u32 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Keeps a value and tells its number; gives it back if there are too many.
    pub(crate) fn insert(&mut self, value: T) -> Result<u32, T> {
        if let Some(number) = self.free.pop()
            && let Some(entry) = self.entries.get_mut(place(number))
        {
            *entry = Some(value);
            return Ok(number);
        }
        match u32::try_from(self.entries.len()) {
            Ok(number) if number < ENTRIES_MAX => {
                self.entries.push(Some(value));
                Ok(number)
            }
            _ => Err(value),
        }
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.entries.get_mut(place(number))?.take()?;
        self.free.push(number);
        Some(value)
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.entries.get(place(number))?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.entries.get_mut(place(number))?.as_mut()
    }

    #[cfg(any(test, feature = "full"))]
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        (0..)
            .zip(&mut self.entries)
            .filter_map(|(number, entry)| Some((number, entry.as_mut()?)))
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
        assert_eq!((slab.insert('a'), slab.insert('b')), (Ok(0), Ok(1)));
        assert_eq!(
            (slab.remove(0), slab.remove(0), slab.remove(9)),
            (Some('a'), None, None)
        );
        assert_eq!((slab.insert('c'), slab.insert('d')), (Ok(0), Ok(2)));
        let held: Vec<_> = slab
            .iter_mut()
            .map(|(number, value)| (number, *value))
            .collect();
        assert_eq!(held, [(0, 'c'), (1, 'b'), (2, 'd')]);
    }
}
