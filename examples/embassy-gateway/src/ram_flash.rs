//! A flash that is memory: for a store in RAM alone, and for boards whose RAM outlives a reset.

use core::fmt;
use core::sync::atomic::{Ordering, compiler_fence};

use embedded_storage_async::nor_flash::{
    ErrorType, MultiwriteNorFlash, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};

/// Memory that behaves as a NOR flash with words of 4 bytes and pages of `PAGE` bytes: writing
/// clears bits, erasing sets those of whole pages.
pub struct RamFlash<'a, const PAGE: usize> {
    memory: &'a mut [u8],
}

/// Bounds or alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RamFlashError {
    /// Beyond the memory.
    OutOfBounds,
    /// Not whole words, or not whole pages.
    NotAligned,
}

impl<'a, const PAGE: usize> RamFlash<'a, PAGE> {
    /// Over memory whose content stays as it is.
    pub const fn new(memory: &'a mut [u8]) -> Self {
        Self { memory }
    }

    fn area(&mut self, from: u32, len: usize, unit: usize) -> Result<&mut [u8], RamFlashError> {
        let from = usize::try_from(from).map_err(|_| RamFlashError::OutOfBounds)?;
        if !from.is_multiple_of(unit) || !len.is_multiple_of(unit) {
            return Err(RamFlashError::NotAligned);
        }
        let end = from.checked_add(len).ok_or(RamFlashError::OutOfBounds)?;
        self.memory
            .get_mut(from..end)
            .ok_or(RamFlashError::OutOfBounds)
    }
}

impl<const PAGE: usize> fmt::Debug for RamFlash<'_, PAGE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RamFlash")
            .field("len", &self.memory.len())
            .finish_non_exhaustive()
    }
}

impl NorFlashError for RamFlashError {
    fn kind(&self) -> NorFlashErrorKind {
        match self {
            Self::OutOfBounds => NorFlashErrorKind::OutOfBounds,
            Self::NotAligned => NorFlashErrorKind::NotAligned,
        }
    }
}

impl<const PAGE: usize> ErrorType for RamFlash<'_, PAGE> {
    type Error = RamFlashError;
}

impl<const PAGE: usize> ReadNorFlash for RamFlash<'_, PAGE> {
    const READ_SIZE: usize = WORD;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), RamFlashError> {
        let area = self.area(offset, bytes.len(), WORD)?;
        bytes.copy_from_slice(area);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.memory.len()
    }
}

impl<const PAGE: usize> NorFlash for RamFlash<'_, PAGE> {
    const WRITE_SIZE: usize = WORD;
    const ERASE_SIZE: usize = PAGE;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), RamFlashError> {
        let len = to.checked_sub(from).ok_or(RamFlashError::OutOfBounds)?;
        let len = usize::try_from(len).map_err(|_| RamFlashError::OutOfBounds)?;
        self.area(from, len, PAGE)?.fill(0xff);
        // A reset must find the operations done in their order.
        compiler_fence(Ordering::SeqCst);
        Ok(())
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), RamFlashError> {
        let area = self.area(offset, bytes.len(), WORD)?;
        for (cell, byte) in area.iter_mut().zip(bytes) {
            *cell &= byte;
        }
        compiler_fence(Ordering::SeqCst);
        Ok(())
    }
}

impl<const PAGE: usize> MultiwriteNorFlash for RamFlash<'_, PAGE> {}

const WORD: usize = 4;
