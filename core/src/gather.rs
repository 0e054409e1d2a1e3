//! Vectors from iterators in little code, for what is not asked at each request.
//!
//! The library's `collect` writes out the iterator's step twice (for the first item, and for the
//! others) and the estimates of their number too: with filters and chains inside, that is most of
//! the code of a line. This one has one step and grows as it goes.

use alloc::vec::Vec;

pub(crate) trait Gather: Iterator + Sized {
    fn gather(self) -> Vec<Self::Item> {
        let mut items = Vec::new();
        for item in self {
            items.push(item);
        }
        items
    }
}

impl<I: Iterator> Gather for I {}
