//! What a gateway needs of time, and that of a platform of the driver.

use core::future::{Future, poll_fn};

use messina_core::drive::{Clock, Timer, Transport};
use messina_core::time::{Instant, UnixMicros};

/// A monotonic clock, perhaps the time of day, and a timer.
pub trait Time {
    /// Time since the boot.
    fn now(&self) -> Instant;

    /// The time of day, where it is known.
    fn wall_clock(&self) -> Option<UnixMicros>;

    /// Waits. Dropping the future loses nothing.
    fn sleep_until(&mut self, at: Instant) -> impl Future<Output = ()>;
}

/// Clock and timer of a [`Transport`].
pub struct PlatformTime<T: Transport> {
    clock: T::Clock,
    timer: T::Timer,
}

impl<T: Transport> PlatformTime<T> {
    /// Those of this transport.
    pub fn new(transport: &T) -> Self {
        Self {
            clock: transport.clock(),
            timer: transport.timer(),
        }
    }
}

impl<T: Transport> core::fmt::Debug for PlatformTime<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PlatformTime").finish_non_exhaustive()
    }
}

impl<T: Transport> Time for PlatformTime<T> {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn wall_clock(&self) -> Option<UnixMicros> {
        self.clock.wall_clock()
    }

    fn sleep_until(&mut self, at: Instant) -> impl Future<Output = ()> {
        self.timer.arm(Some(at));
        poll_fn(|cx| self.timer.poll_fired(cx))
    }
}
