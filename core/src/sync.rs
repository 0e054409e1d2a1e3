//! The one module that knows about threads, their absence, and targets without compare-and-swap.
//!
//! | build | [`Mutex`] | [`Snapshot`] | counters |
//! |---|---|---|---|
//! | feature `std` | `std::sync::Mutex` | `arc-swap` | atomics |
//! | without | `RefCell` | `RefCell` | atomics, or load and store where there is no compare-and-swap |
//! | `cfg(messina_loom)` | loom's | loom's mutex | loom's |
//!
//! [`Once`] is std's or core's own; loom has none and takes std's.
//!
//! Locks offer only [`Mutex::with`], so a guard can never live across an await. Nothing foreign
//! may run inside it: no waker, no user object, no link. `with` returns what has to be woken or
//! dropped; in debug builds [`assert_unlocked`] proves it at every such call.

use core::fmt;

/// A shared pointer: `alloc`'s `Arc`, or the portable one where there is no compare-and-swap.
/// Trait objects are built through `Shared::from(Box<dyn _>)`, which works with both.
#[cfg(target_has_atomic = "ptr")]
pub use alloc::sync::Arc as Shared;
#[cfg(not(target_has_atomic = "ptr"))]
pub use portable_atomic_util::Arc as Shared;

/// The same for what stays with one session: without `std`, where a session stays on one thread, it
/// counts without atomics, which take five times the code.
#[cfg(not(feature = "std"))]
pub use alloc::rc::Rc as Local;
#[cfg(feature = "std")]
pub use alloc::sync::Arc as Local;

/// A panic happened inside a lock, a fault of this crate; callers turn it into
/// [`crate::error::Error::bug`]. Without threads there is no such lock: whoever enters one twice is
/// stopped by a panic at once, where with threads it would wait for itself for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Poisoned;

/// A lock without guards.
pub(crate) struct Mutex<T>(imp::Lock<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(imp::Lock::new(value))
    }

    /// Runs `action` on the protected value. Keep it short and free of foreign code.
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> Result<R, Poisoned> {
        let mut guard = imp::lock(&self.0).ok_or(Poisoned)?;
        let _inside = inside::Mark::enter();
        Ok(action(&mut guard))
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

/// Proves in debug builds that no lock of this crate is held on this thread. Called before every
/// use of a waker, a user's object or a link.
pub(crate) fn assert_unlocked() {
    inside::assert_outside();
}

/// A shared value that readers see whole and never wait for; writers replace it.
pub(crate) struct Snapshot<T>(imp::Cell<T>);

impl<T> Snapshot<T> {
    pub(crate) fn new(value: Shared<T>) -> Self {
        Self(imp::new_cell(value))
    }

    /// A share of the current value.
    pub(crate) fn load(&self) -> Shared<T> {
        imp::load(&self.0)
    }

    /// Reads the current value without touching its reference count where that is possible.
    pub(crate) fn with<R>(&self, action: impl FnOnce(&T) -> R) -> R {
        imp::read(&self.0, action)
    }

    /// Replaces the value; readers that hold the old one keep it.
    pub(crate) fn store(&self, value: Shared<T>) {
        drop(self.swap(value));
    }

    /// The same, and gives the old value back.
    pub(crate) fn swap(&self, value: Shared<T>) -> Shared<T> {
        imp::swap(&self.0, value)
    }
}

impl<T> fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Snapshot")
    }
}

/// A value that is written once and only read from then on. One that is offered later is dropped.
pub(crate) struct Once<T>(imp::OnceCell<T>);

impl<T> Once<T> {
    pub(crate) const fn new() -> Self {
        Self(imp::OnceCell::new())
    }

    /// The value, if there is one yet.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// The value: this one, unless another came first.
    pub(crate) fn get_or_set(&self, value: T) -> &T {
        self.0.get_or_init(|| value)
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Once")
    }
}

/// A wrapping one-byte counter for probe positions.
#[derive(Default)]
pub(crate) struct ByteCounter(imp::AtomicU8);

impl ByteCounter {
    /// The value before this call; adds one.
    pub(crate) fn next(&self) -> u8 {
        imp::next_u8(&self.0)
    }
}

impl fmt::Debug for ByteCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByteCounter")
    }
}

/// A relaxed 32-bit number that several parties read: a gauge, a counter or a mark.
#[derive(Default)]
pub(crate) struct Gauge(imp::AtomicU32);

impl Gauge {
    pub(crate) fn new(value: u32) -> Self {
        Self(imp::AtomicU32::new(value))
    }

    pub(crate) fn load(&self) -> u32 {
        imp::load_u32(&self.0)
    }

    pub(crate) fn store(&self, value: u32) {
        imp::store_u32(&self.0, value);
    }

    /// Adds (wrapping) and returns the value before.
    pub(crate) fn add(&self, amount: u32) -> u32 {
        imp::add_u32(&self.0, amount)
    }
}

impl fmt::Debug for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.load())
    }
}

#[cfg(all(feature = "std", not(messina_loom)))]
mod imp {
    //! Threads.
    use super::Shared;
    pub(super) use std::sync::Mutex as Lock;
    use std::sync::MutexGuard;
    pub(super) use std::sync::OnceLock as OnceCell;

    pub(super) type Cell<T> = arc_swap::ArcSwap<T>;

    pub(super) fn lock<T>(lock: &Lock<T>) -> Option<MutexGuard<'_, T>> {
        lock.lock().ok()
    }

    pub(super) fn new_cell<T>(value: Shared<T>) -> Cell<T> {
        Cell::new(value)
    }

    pub(super) fn load<T>(cell: &Cell<T>) -> Shared<T> {
        cell.load_full()
    }

    pub(super) fn read<T, R>(cell: &Cell<T>, action: impl FnOnce(&T) -> R) -> R {
        action(&cell.load())
    }

    pub(super) fn swap<T>(cell: &Cell<T>, value: Shared<T>) -> Shared<T> {
        cell.swap(value)
    }

    pub(super) use super::numbers::*;
}

#[cfg(all(not(feature = "std"), not(messina_loom)))]
mod imp {
    //! A single thread.
    use super::Shared;
    pub(super) use core::cell::OnceCell;
    use core::cell::{RefCell, RefMut};

    pub(super) type Lock<T> = RefCell<T>;
    pub(super) type Cell<T> = RefCell<Shared<T>>;

    // Never `None`, so that no code is made for it.
    pub(super) fn lock<T>(lock: &Lock<T>) -> Option<RefMut<'_, T>> {
        Some(lock.borrow_mut())
    }

    pub(super) fn new_cell<T>(value: Shared<T>) -> Cell<T> {
        Cell::new(value)
    }

    pub(super) fn load<T>(cell: &Cell<T>) -> Shared<T> {
        Shared::clone(&cell.borrow())
    }

    pub(super) fn read<T, R>(cell: &Cell<T>, action: impl FnOnce(&T) -> R) -> R {
        // The borrow must not last while `action` runs: it may store into this very cell.
        let value = load(cell);
        action(&value)
    }

    pub(super) fn swap<T>(cell: &Cell<T>, value: Shared<T>) -> Shared<T> {
        // The old value is dropped outside the borrow: its drop may read this cell.
        cell.replace(value)
    }

    pub(super) use super::numbers::*;
}

#[cfg(messina_loom)]
mod imp {
    //! loom's model of threads.
    use super::Shared;
    pub(super) use loom::sync::Mutex as Lock;
    use loom::sync::MutexGuard;
    use loom::sync::atomic::Ordering::Relaxed;
    pub(super) use loom::sync::atomic::{AtomicU8, AtomicU32};
    pub(super) use std::sync::OnceLock as OnceCell;

    pub(super) type Cell<T> = Lock<Shared<T>>;

    pub(super) fn lock<T>(lock: &Lock<T>) -> Option<MutexGuard<'_, T>> {
        lock.lock().ok()
    }

    pub(super) fn new_cell<T>(value: Shared<T>) -> Cell<T> {
        Cell::new(value)
    }

    pub(super) fn load<T>(cell: &Cell<T>) -> Shared<T> {
        Shared::clone(&cell.lock().expect("no panic inside"))
    }

    pub(super) fn read<T, R>(cell: &Cell<T>, action: impl FnOnce(&T) -> R) -> R {
        action(&load(cell))
    }

    pub(super) fn swap<T>(cell: &Cell<T>, value: Shared<T>) -> Shared<T> {
        core::mem::replace(&mut *cell.lock().expect("no panic inside"), value)
    }

    pub(super) fn next_u8(counter: &AtomicU8) -> u8 {
        counter.fetch_add(1, Relaxed)
    }

    pub(super) fn load_u32(number: &AtomicU32) -> u32 {
        number.load(Relaxed)
    }

    pub(super) fn store_u32(number: &AtomicU32, value: u32) {
        number.store(value, Relaxed);
    }

    pub(super) fn add_u32(number: &AtomicU32, amount: u32) -> u32 {
        number.fetch_add(amount, Relaxed)
    }
}

#[cfg(not(messina_loom))]
mod numbers {
    //! Relaxed numbers: read-modify-write where the target has it. Where it has not there are no
    //! threads either, and a load followed by a store is the same thing.
    use core::sync::atomic::Ordering::Relaxed;
    pub(super) use core::sync::atomic::{AtomicU8, AtomicU32};

    #[cfg(target_has_atomic = "ptr")]
    pub(super) fn next_u8(counter: &AtomicU8) -> u8 {
        counter.fetch_add(1, Relaxed)
    }

    #[cfg(not(target_has_atomic = "ptr"))]
    pub(super) fn next_u8(counter: &AtomicU8) -> u8 {
        let before = counter.load(Relaxed);
        counter.store(before.wrapping_add(1), Relaxed);
        before
    }

    pub(super) fn load_u32(number: &AtomicU32) -> u32 {
        number.load(Relaxed)
    }

    pub(super) fn store_u32(number: &AtomicU32, value: u32) {
        number.store(value, Relaxed);
    }

    #[cfg(target_has_atomic = "ptr")]
    pub(super) fn add_u32(number: &AtomicU32, amount: u32) -> u32 {
        number.fetch_add(amount, Relaxed)
    }

    #[cfg(not(target_has_atomic = "ptr"))]
    pub(super) fn add_u32(number: &AtomicU32, amount: u32) -> u32 {
        let before = number.load(Relaxed);
        number.store(before.wrapping_add(amount), Relaxed);
        before
    }
}

#[cfg(all(feature = "std", debug_assertions, not(messina_loom)))]
mod inside {
    //! The flag "inside `with`", one for each thread.
    use core::cell::Cell;

    std::thread_local! {
        static DEPTH: Cell<u32> = const { Cell::new(0) };
    }

    pub(super) struct Mark;

    impl Mark {
        pub(super) fn enter() -> Self {
            DEPTH.with(|depth| depth.set(depth.get() + 1));
            Self
        }
    }

    impl Drop for Mark {
        fn drop(&mut self) {
            DEPTH.with(|depth| depth.set(depth.get() - 1));
        }
    }

    pub(super) fn assert_outside() {
        // A thread that ends may have dropped its flag already; then there is nothing to check.
        let depth = DEPTH.try_with(Cell::get).unwrap_or(0);
        assert_eq!(depth, 0, "foreign code would run inside a lock");
    }
}

#[cfg(not(all(feature = "std", debug_assertions, not(messina_loom))))]
mod inside {
    //! Without threads a `RefCell` reports re-entry by itself; in release builds nothing is checked.
    pub(super) struct Mark;

    impl Mark {
        pub(super) fn enter() -> Self {
            Self
        }
    }

    pub(super) fn assert_outside() {}
}

#[cfg(all(test, not(messina_loom)))]
mod tests {
    use super::*;

    #[test]
    fn lock_gives_access_and_returns_the_result() {
        let lock = Mutex::new(1);
        assert_eq!(
            lock.with(|value| {
                *value += 1;
                *value
            }),
            Ok(2)
        );
    }

    #[test]
    #[cfg(feature = "std")]
    fn a_panic_inside_poisons() {
        let lock = Shared::new(Mutex::new(0));
        let other = Shared::clone(&lock);
        let _ = std::thread::spawn(move || other.with(|_| panic!("inside"))).join();
        assert_eq!(lock.with(|value| *value), Err(Poisoned));
    }

    #[test]
    #[cfg(not(feature = "std"))]
    #[should_panic(expected = "already")]
    fn entering_twice_panics() {
        let lock = Mutex::new(0);
        let _ = lock.with(|_| lock.with(|_| ()));
    }

    #[test]
    #[cfg(all(feature = "std", debug_assertions))]
    #[should_panic(expected = "foreign code")]
    fn foreign_code_inside_is_found() {
        let _ = Mutex::new(0).with(|_| assert_unlocked());
    }

    #[test]
    fn snapshot_readers_keep_what_they_hold() {
        let snapshot = Snapshot::new(Shared::new(1));
        let held = snapshot.load();
        snapshot.with(|_| snapshot.store(Shared::new(2)));
        assert_eq!((*held, *snapshot.load()), (1, 2));
    }

    #[test]
    fn counters_wrap() {
        let counter = ByteCounter::default();
        let values: alloc::vec::Vec<u8> = (0..257).map(|_| counter.next()).collect();
        assert_eq!((values[0], values[255], values[256]), (0, 255, 0));
        let gauge = Gauge::new(3);
        assert_eq!((gauge.add(2), gauge.add(u32::MAX), gauge.load()), (3, 5, 4));
    }
}
