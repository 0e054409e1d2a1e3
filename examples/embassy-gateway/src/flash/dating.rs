//! When the readings were taken of boots that did not know the time.
//!
//! A dating is a record like any other, behind the readings that it dates, and it is in flash before
//! the first of them is sent. It leaves the queue after the last of them.

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use sequential_storage::cache::CacheImpl;

use super::{FlashStore, StoreError};
use crate::clock::{Certainty, Dating, Stamp};
use crate::record::{Boot, Content, Record};

impl<F: MultiwriteNorFlash, C: CacheImpl<()>> FlashStore<F, C> {
    /// Tells how this boot's readings are dated. Later calls change nothing.
    pub async fn set_dating(&mut self, dating: Dating) -> Result<(), StoreError<F::Error>> {
        if self.dating.is_some() {
            return Ok(());
        }
        if self.undated > 0 {
            // Before any of them is sent, or a repetition after a reset might date it otherwise.
            self.append(self.boot, Content::Dating(dating), true)
                .await?;
        }
        self.dating = Some(dating);
        Ok(())
    }

    /// Learns how the readings of an earlier boot are dated, or settles it. `false` if that must
    /// wait for the clock.
    pub(super) async fn find_dating(&mut self, boot: Boot) -> Result<bool, StoreError<F::Error>> {
        if boot == self.boot {
            return Ok(false);
        }
        let mut found = None;
        // Of the earlier boots from this one on that have no date: how long they ran at least.
        let (mut is_known, mut current, mut uptime, mut span) = (false, boot, 0, 0_u64);
        let mut next_known = i64::MAX;
        let mut records = self.queue.iter().await?;
        while let Some(record) = records.next(&mut self.buffer.0).await? {
            let Some(record) = Record::parse(&record) else {
                continue;
            };
            match record.content {
                Content::Dating(dating) if record.boot == boot => {
                    found = Some(dating);
                    break;
                }
                Content::Reading {
                    stamp: Stamp::Uptime { micros },
                    ..
                } if !is_known && record.boot != self.boot => {
                    if record.boot != current {
                        span = span.saturating_add(uptime).saturating_add(1);
                        (current, uptime) = (record.boot, 0);
                    }
                    uptime = uptime.max(micros);
                }
                Content::Reading {
                    stamp: Stamp::Wall { micros, .. },
                    ..
                } => {
                    is_known = true;
                    next_known = next_known.min(micros);
                }
                _ => {}
            }
        }
        let dating = match (found, self.dating) {
            (Some(dating), _) => dating,
            (None, None) => return Ok(false),
            (None, Some(now)) => {
                let span = span.saturating_add(uptime).saturating_add(1);
                let span = i64::try_from(span).unwrap_or(i64::MAX);
                let dating = Dating {
                    start: next_known.min(now.start).saturating_sub(span),
                    certainty: Certainty::Latest,
                };
                self.append(boot, Content::Dating(dating), true).await?;
                dating
            }
        };
        self.earlier = Some((boot, dating));
        Ok(true)
    }

    pub(super) fn dates(&self) -> Dates {
        Dates {
            own: self.dating.map(|dating| (self.boot, dating)),
            earlier: self.earlier,
        }
    }
}

/// The datings at hand.
#[derive(Clone, Copy)]
pub(super) struct Dates {
    own: Option<(Boot, Dating)>,
    earlier: Option<(Boot, Dating)>,
}

impl Dates {
    pub(super) fn date(&self, boot: Boot, stamp: Stamp) -> Option<(i64, Certainty)> {
        match stamp {
            Stamp::Wall { micros, certainty } => Some((micros, certainty)),
            Stamp::Uptime { micros } => [self.own, self.earlier]
                .into_iter()
                .flatten()
                .find(|(dated, _)| *dated == boot)
                .map(|(_, dating)| dating.date(micros)),
        }
    }
}
