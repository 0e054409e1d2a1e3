//! Wakers gathered under a lock, to be woken after it.
//!
//! Most locks gather one at most (a submission wakes the connection task, an answer that is taken
//! lets one waiter in), so the first one needs no heap. They are woken in the order they came.

use alloc::vec::Vec;
use core::task::Waker;

use crate::sync::assert_unlocked;

/// See the module's documentation. Dropping it drops wakers, so not under a lock.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    first: Option<Waker>,
    more: Vec<Waker>,
}

impl Wakers {
    pub(crate) const fn new() -> Self {
        Self {
            first: None,
            more: Vec::new(),
        }
    }

    /// Adds what is there.
    pub(crate) fn extend(&mut self, waker: Option<Waker>) {
        let Some(waker) = waker else { return };
        if self.first.is_none() && self.more.is_empty() {
            self.first = Some(waker);
        } else {
            self.more.push(waker);
        }
    }

    /// Wakes and drops all; room that was taken stays. Not to be called under a lock.
    pub(crate) fn wake_all(&mut self) {
        assert_unlocked();
        if let Some(first) = self.first.take() {
            first.wake();
        }
        if !self.more.is_empty() {
            self.more.drain(..).for_each(Waker::wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Shared;
    use alloc::task::Wake;
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

    /// Appends its digit to the number of those that were woken.
    struct Digit(u32, Shared<AtomicU32>);

    impl Wake for Digit {
        fn wake(self: Shared<Self>) {
            self.1.store(self.1.load(Relaxed) * 10 + self.0, Relaxed);
        }
    }

    #[test]
    fn all_are_woken_once_in_order() {
        let woken = Shared::new(AtomicU32::new(0));
        let mut wakers = Wakers::new();
        for (count, expected) in [(0, 0), (1, 1), (2, 12), (5, 12345), (1, 1)] {
            wakers.extend(None);
            for digit in 1..=count {
                let digit = Digit(digit, Shared::clone(&woken));
                wakers.extend(Some(Waker::from(Shared::new(digit))));
            }
            assert_eq!(woken.load(Relaxed), 0);
            wakers.wake_all();
            assert_eq!(woken.swap(0, Relaxed), expected);
        }
        wakers.wake_all();
        assert_eq!(woken.load(Relaxed), 0);
    }
}
