//! Maps and sets as sorted vectors, for the small tables of the control plane.
//!
//! A lookup is a binary search; an insertion or removal moves what stands behind it. Keys mostly
//! come in order (connection and question ids count up), so insertion is a push. A B-tree would be
//! quicker only with many thousands of entries, and costs about ten times the code for each pair of
//! types: on wasm32 and microcontrollers that was a fifth of the whole driver.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::cmp::Ordering;

/// Values by key, in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SortedMap<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> SortedMap<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> + Clone {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    pub(crate) fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + Clone {
        self.entries.iter().map(|(key, _)| key)
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.entries.iter().map(|(_, value)| value)
    }

    pub(crate) fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    pub(crate) fn into_values(self) -> impl DoubleEndedIterator<Item = V> {
        self.entries.into_iter().map(|(_, value)| value)
    }

    /// Keeps the entries for which `keep` says so.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain_mut(|(key, value)| keep(key, value));
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key).ok()?;
        self.entries.get(place).map(|(_, value)| value)
    }

    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key).ok()?;
        self.entries.get_mut(place).map(|(_, value)| value)
    }

    pub(crate) fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).is_ok()
    }

    /// Sets the value of a key and returns the one it had.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(place) => {
                let entry = self.entries.get_mut(place)?;
                Some(core::mem::replace(&mut entry.1, value))
            }
            Err(place) => {
                self.entries.insert(place, (key, value));
                None
            }
        }
    }

    /// The value of a key, made if there is none yet.
    pub(crate) fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let place = self.place(&key).unwrap_or_else(|place| {
            self.entries.insert(place, (key, make()));
            place
        });
        &mut self.entries[place].1
    }

    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key).ok()?;
        Some(self.entries.remove(place).1)
    }

    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        search(self.entries.len(), &|at| match self.entries.get(at) {
            Some((held, _)) => held.borrow().cmp(key),
            None => Ordering::Greater,
        })
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = alloc::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

/// A binary search over the places below `len`, once for all types.
#[inline(never)]
fn search(len: usize, compare: &dyn Fn(usize) -> Ordering) -> Result<usize, usize> {
    let (mut start, mut end) = (0, len);
    while start < end {
        let middle = start + (end - start) / 2;
        match compare(middle) {
            Ordering::Less => start = middle + 1,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => end = middle,
        }
    }
    Err(start)
}

/// Sorts any number, for the control plane; equals may change places. It takes n log n steps at
/// most, and the work is done by one function for all types: each sort of the library is four
/// kilobytes of code.
pub(crate) fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    heap_sort(items.len(), &mut |step| match step {
        HeapStep::IsLess(a, b) => compare(&items[a], &items[b]).is_lt(),
        HeapStep::Swap(a, b) => {
            items.swap(a, b);
            true
        }
    });
}

/// What a heap sort asks of the items that it does not see.
enum HeapStep {
    IsLess(usize, usize),
    Swap(usize, usize),
}

#[inline(never)]
fn heap_sort(len: usize, step: &mut dyn FnMut(HeapStep) -> bool) {
    // First each inner node is sifted down, from the last to the root; then the root, the greatest,
    // goes behind the heap again and again.
    for turn in (0..len + len / 2).rev() {
        let (mut node, end) = match turn.checked_sub(len) {
            Some(inner) => (inner, len),
            None => {
                step(HeapStep::Swap(0, turn));
                (0, turn)
            }
        };
        loop {
            let mut child = 2 * node + 1;
            if child >= end {
                break;
            }
            if child + 1 < end && step(HeapStep::IsLess(child, child + 1)) {
                child += 1;
            }
            if !step(HeapStep::IsLess(node, child)) {
                break;
            }
            step(HeapStep::Swap(node, child));
            node = child;
        }
    }
}

/// Sorts what is only a few: the library's sorts are five kilobytes of code for each type.
pub(crate) fn sort_few<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    for end in 1..items.len() {
        for place in (1..=end).rev() {
            if key(&items[place - 1]) <= key(&items[place]) {
                break;
            }
            items.swap(place - 1, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn few_are_sorted_and_equals_keep_their_order() {
        // All sequences of up to five of three keys.
        for len in 0..=5 {
            for code in 0..3_usize.pow(len) {
                let digit = |at: u32| (code / 3_usize.pow(at) % 3, at);
                let mut items: Vec<_> = (0..len).map(digit).collect();
                let mut expected = items.clone();
                expected.sort_by_key(|item| item.0);
                sort_few(&mut items, |item| item.0);
                assert_eq!(items, expected);
            }
        }
    }

    #[test]
    fn many_are_sorted() {
        // All sequences of up to six of four keys, and longer ones by chance.
        for len in 0..=6 {
            for code in 0..4_usize.pow(len) {
                let mut items: Vec<_> = (0..len).map(|at| code / 4_usize.pow(at) % 4).collect();
                let mut expected = items.clone();
                expected.sort_unstable();
                sort_by(&mut items, Ord::cmp);
                assert_eq!(items, expected);
            }
        }
        let mut rng = crate::rng::SmallRng::from_seed(7);
        for len in (7..400).step_by(13) {
            let mut items: Vec<_> = (0..len).map(|_| rng.below(300)).collect();
            let mut expected = items.clone();
            expected.sort_unstable();
            sort_by(&mut items, Ord::cmp);
            assert_eq!(items, expected);
        }
    }

    /// Does the same as the map of the standard library, whatever comes in which order.
    #[test]
    fn agrees_with_a_b_tree() {
        let (mut ours, mut theirs) = (SortedMap::new(), BTreeMap::new());
        let mut rng = crate::rng::SmallRng::from_seed(1);
        for step in 0..10_000_u32 {
            let key = rng.below(40);
            match rng.below(5) {
                0 | 1 => assert_eq!(ours.insert(key, step), theirs.insert(key, step)),
                2 => assert_eq!(ours.remove(&key), theirs.remove(&key)),
                3 => {
                    let made = *theirs.entry(key).or_insert(step);
                    assert_eq!(*ours.get_or_insert_with(key, || step), made);
                }
                _ if step % 50 == 4 => {
                    ours.retain(|_, value| *value % 3 != 0);
                    theirs.retain(|_, value| *value % 3 != 0);
                }
                _ => assert_eq!(ours.get_mut(&key), theirs.get_mut(&key)),
            }
            assert_eq!(ours.contains_key(&key), theirs.contains_key(&key));
            assert!(ours.iter().eq(theirs.iter()) && ours.len() == theirs.len());
        }
        assert!(!theirs.is_empty());
        assert!(ours.keys().eq(theirs.keys()) && ours.values().eq(theirs.values()));
        let again: SortedMap<_, _> = ours
            .iter()
            .rev()
            .map(|(key, value)| (*key, *value))
            .collect();
        assert_eq!(again, ours);
        assert!(ours.clone().into_values().eq(theirs.clone().into_values()));
        assert!(ours.into_iter().eq(theirs));
    }
}
