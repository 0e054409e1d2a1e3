//! A lock that is one where there are threads: `std`'s with feature `std`, else a `RefCell`.
//!
//! It offers only [`Lock::with`], so nothing is held across a poll. No waker is woken, cloned or
//! dropped inside, and no link is called.

#[cfg(not(feature = "std"))]
use core::cell::RefCell as Inner;
#[cfg(feature = "std")]
use std::sync::Mutex as Inner;

#[derive(Debug)]
pub(crate) struct Lock<T>(Inner<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Inner::new(value))
    }

    #[cfg(feature = "std")]
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        // What is inside is whole after every call; a panic elsewhere does not change that.
        let guard = self.0.lock();
        action(&mut guard.unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    #[cfg(not(feature = "std"))]
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        action(&mut self.0.borrow_mut())
    }
}
