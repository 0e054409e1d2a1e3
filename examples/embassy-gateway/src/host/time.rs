//! The time of a board, and seeds.

use core::convert::Infallible;
use core::fmt;
use core::future::poll_fn;
use core::time::Duration;

use messina_core::drive::{Timer, Transport};
use messina_core::time::{Instant, UnixMicros};
use messina_sim::link::{SimTransport, World};
use rand_core::TryRng;

use crate::time::Time;

/// The time of a board: it counts from its boot, and learns the time of day later.
#[derive(Clone)]
pub struct SimTime {
    world: World,
    booted_at: u64,
    clock_at: Option<u64>,
}

impl SimTime {
    pub(super) fn new(world: &World, clock_after: Option<Duration>) -> Self {
        let booted_at = world.now();
        let after = clock_after.map(|after| u64::try_from(after.as_micros()).unwrap_or(u64::MAX));
        Self {
            world: world.clone(),
            booted_at,
            clock_at: after.map(|after| booted_at.saturating_add(after)),
        }
    }
}

impl fmt::Debug for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimTime").field("now", &self.now()).finish()
    }
}

impl Time for SimTime {
    fn now(&self) -> Instant {
        Instant::from_micros(self.world.now() - self.booted_at)
    }

    fn wall_clock(&self) -> Option<UnixMicros> {
        let now = self.world.now();
        let is_known = self.clock_at.is_some_and(|at| at <= now);
        is_known.then(|| UnixMicros(i64::try_from(now).unwrap_or(i64::MAX)))
    }

    async fn sleep_until(&mut self, at: Instant) {
        let mut timer = SimTransport::new(&self.world).timer();
        let at = at.as_micros().saturating_add(self.booted_at);
        timer.arm(Some(Instant::from_micros(at)));
        poll_fn(|cx| timer.poll_fired(cx)).await;
    }
}

/// Hands a seed to the driver.
pub(super) struct Seed(pub(super) u64);

impl TryRng for Seed {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|word| (word >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Ok(word ^ (word >> 27))
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), Infallible> {
        for chunk in into.chunks_mut(8) {
            let word = self.try_next_u64()?.to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}
