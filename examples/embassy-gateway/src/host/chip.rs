//! A NOR flash chip that loses its power in the middle of an operation.

use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::{pending, poll_fn};
use core::task::{Poll, Waker};

use embedded_storage_async::nor_flash::{
    ErrorType, MultiwriteNorFlash, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};

/// A flash chip. Cheap to clone; all clones are the same chip.
#[derive(Clone, Debug)]
pub struct Chip {
    inner: Rc<RefCell<Inner>>,
}

#[derive(Debug)]
struct Inner {
    bytes: Vec<u8>,
    /// Writes and erasures begun since the power came on.
    operations: u64,
    cut: Option<Cut>,
    is_off: bool,
    fails: bool,
    power_cycle: u64,
    watchers: Vec<Waker>,
    stats: ChipStats,
}

/// What was done to a chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChipStats {
    /// Writes.
    pub writes: u64,
    /// Pages erased.
    pub erasures: u64,
    /// Words that were to get a bit that was cleared before: the data is not what was written.
    pub spoiled: u64,
}

/// When the power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// In this write or erasure, counted from 0 since the power came on.
    pub operation: u64,
    /// How far it came.
    pub tear: Tear,
}

/// What a torn operation leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tear {
    /// Everything as it was.
    Nothing,
    /// The first half of it is done.
    Half,
    /// Half of the bits have changed, in every byte.
    Bits,
    /// It was done, but nobody was told.
    All,
}

impl Tear {
    /// Each of them.
    pub const EACH: [Self; 4] = [Self::Nothing, Self::Half, Self::Bits, Self::All];
}

/// Bounds, alignment, or a chip that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChipError;

impl NorFlashError for ChipError {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::NotAligned
    }
}

impl Chip {
    /// An erased chip.
    pub fn new(pages: usize) -> Self {
        let inner = Inner {
            bytes: vec![0xff; pages * PAGE],
            operations: 0,
            cut: None,
            is_off: false,
            fails: false,
            power_cycle: 0,
            watchers: Vec::new(),
            stats: ChipStats::default(),
        };
        Self {
            inner: Rc::new(RefCell::new(inner)),
        }
    }

    /// Another chip with the same content, and nothing done to it.
    #[must_use]
    pub fn copy(&self) -> Self {
        let copy = Self::new(0);
        copy.inner.borrow_mut().bytes = self.inner.borrow().bytes.clone();
        copy
    }

    /// The power comes on, to go as `cut` says. Handles of before are dead.
    pub fn power_on(&self, cut: Option<Cut>) -> Flash {
        let mut inner = self.inner.borrow_mut();
        inner.operations = 0;
        inner.cut = cut;
        inner.is_off = false;
        inner.power_cycle += 1;
        inner.watchers.drain(..).for_each(Waker::wake);
        Flash {
            chip: self.clone(),
            power_cycle: inner.power_cycle,
        }
    }

    /// From now on writes and erasures fail, or do not.
    pub fn set_failing(&self, fails: bool) {
        self.inner.borrow_mut().fails = fails;
    }

    /// The power goes between two operations.
    pub fn power_off(&self) {
        let mut inner = self.inner.borrow_mut();
        inner.is_off = true;
        inner.watchers.drain(..).for_each(Waker::wake);
    }

    /// Waits for the power to go that is on now.
    pub fn off(&self) -> impl Future<Output = ()> + use<> {
        let inner = Rc::clone(&self.inner);
        let power_cycle = inner.borrow().power_cycle;
        poll_fn(move |cx| {
            let mut inner = inner.borrow_mut();
            if inner.is_off || inner.power_cycle != power_cycle {
                return Poll::Ready(());
            }
            inner.watchers.push(cx.waker().clone());
            Poll::Pending
        })
    }

    /// Writes and erasures begun since the power came on.
    pub fn operations(&self) -> u64 {
        self.inner.borrow().operations
    }

    /// What was done to it.
    pub fn stats(&self) -> ChipStats {
        self.inner.borrow().stats
    }

    /// All of it, as an address range.
    pub fn range(&self) -> core::ops::Range<u32> {
        0..u32::try_from(self.inner.borrow().bytes.len()).unwrap_or(0)
    }
}

/// The chip as the firmware sees it from one power-on to the next.
#[derive(Debug)]
pub struct Flash {
    chip: Chip,
    power_cycle: u64,
}

impl Flash {
    /// Runs an operation on an area, torn if the power goes in it. A future that never ends is what
    /// a program sees of that.
    async fn operate(
        &self,
        area: core::ops::Range<usize>,
        change: impl Fn(usize, u8) -> u8,
    ) -> Result<(), ChipError> {
        let is_done = {
            let mut inner = self.chip.inner.borrow_mut();
            if area.end > inner.bytes.len() || inner.fails {
                return Err(ChipError);
            }
            if inner.is_off || inner.power_cycle != self.power_cycle {
                false
            } else {
                inner.operate(area, change)
            }
        };
        if !is_done {
            self.chip.power_off();
            pending::<()>().await;
        }
        Ok(())
    }
}

impl Inner {
    fn operate(&mut self, area: core::ops::Range<usize>, change: impl Fn(usize, u8) -> u8) -> bool {
        let cut = self.cut.filter(|cut| cut.operation == self.operations);
        self.operations += 1;
        let len = area.len();
        for (at, byte) in self.bytes[area].iter_mut().enumerate() {
            let new = change(at, *byte);
            *byte = match cut.map(|cut| cut.tear) {
                None | Some(Tear::All) => new,
                Some(Tear::Half) if at < len / 2 => new,
                Some(Tear::Bits) => *byte ^ ((*byte ^ new) & 0x55),
                Some(Tear::Nothing | Tear::Half) => *byte,
            };
        }
        cut.is_none()
    }
}

impl ErrorType for Flash {
    type Error = ChipError;
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = WORD;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), ChipError> {
        let area = area(offset, bytes.len(), WORD)?;
        let inner = self.chip.inner.borrow();
        bytes.copy_from_slice(inner.bytes.get(area).ok_or(ChipError)?);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.chip.inner.borrow().bytes.len()
    }
}

impl NorFlash for Flash {
    const WRITE_SIZE: usize = WORD;
    const ERASE_SIZE: usize = PAGE;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), ChipError> {
        let len = to.checked_sub(from).ok_or(ChipError)?;
        let area = area(from, usize::try_from(len).map_err(|_| ChipError)?, PAGE)?;
        let pages = area.len() / PAGE;
        self.chip.inner.borrow_mut().stats.erasures += u64::try_from(pages).unwrap_or(0);
        self.operate(area, |_, _| 0xff).await
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), ChipError> {
        let area = area(offset, bytes.len(), WORD)?;
        {
            let mut inner = self.chip.inner.borrow_mut();
            let old = inner.bytes.get(area.clone()).ok_or(ChipError)?;
            let words = old.chunks(WORD).zip(bytes.chunks(WORD));
            let is_spoiled = |old: &[u8], new: &[u8]| old.iter().zip(new).any(|(o, n)| o & n != *n);
            let spoiled = words.filter(|(old, new)| is_spoiled(old, new)).count();
            inner.stats.spoiled += u64::try_from(spoiled).unwrap_or(0);
            inner.stats.writes += 1;
        }
        self.operate(area, |at, old| old & bytes[at]).await
    }
}

impl MultiwriteNorFlash for Flash {}

fn area(offset: u32, len: usize, unit: usize) -> Result<core::ops::Range<usize>, ChipError> {
    let from = usize::try_from(offset).map_err(|_| ChipError)?;
    let is_aligned = from.is_multiple_of(unit) && len.is_multiple_of(unit);
    is_aligned.then_some(from..from + len).ok_or(ChipError)
}

const WORD: usize = 4;

/// Small, so that pages are filled and erased by few readings.
pub(super) const PAGE: usize = 256;
