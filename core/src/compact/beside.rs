//! A session and what uses it polled in turn by one task, without a way through its executor for
//! each thing that one has for the other.
//!
//! While both are polled here, what would wake this very task is a note instead, which is looked at
//! before the task rests: that the runner is called is noted in the hub, where anybody may call it,
//! and that the other one is, in the runner. All other wakers are woken as ever.

use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Poll, Waker};

use super::runner::Runner;
use crate::drive::Transport;

/// What the runner knows of the one that it is polled with.
#[derive(Default)]
pub(super) struct Neighbour {
    /// The waker of both, kept from poll to poll so that it is seldom cloned.
    task: Option<Waker>,
    /// Both are being polled.
    pub(super) is_near: bool,
    is_due: bool,
}

impl Neighbour {
    /// Whether the waker need not be woken, since who left it is polled next.
    pub(super) fn takes(&mut self, waker: &Waker) -> bool {
        let task = self.task.as_ref().filter(|_| self.is_near);
        let takes = task.is_some_and(|task| task.will_wake(waker));
        self.is_due |= takes;
        takes
    }

    /// Both are polled from here on, with this waker.
    fn begin(&mut self, waker: &Waker) {
        match &mut self.task {
            Some(task) => task.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        (self.is_near, self.is_due) = (true, true);
    }
}

impl<T: Transport> Runner<T> {
    /// Runs the session with `work` in one task, until both have ended; work has to
    /// [close](super::Session::close) it, or to end when it does. That is what joining both does
    /// too, with fewer steps.
    ///
    /// ```no_run
    /// # use core::pin::pin;
    /// # use core::time::Duration;
    /// # use messina_core::compact::start;
    /// # use messina_core::config::Config;
    /// # use messina_core::drive::Transport;
    /// # use messina_core::error::Error;
    /// # async fn run<T: Transport>(config: Config, transport: T, seed: u64) -> Result<(), Error> {
    /// let (session, mut runner) = start(config, transport, seed);
    /// let work = pin!(async {
    ///     session.ready().await?;
    ///     session.query("INSERT INTO ks.starts (id, at) VALUES (7, toTimestamp(now()))", ()).await?;
    ///     session.close(Duration::from_secs(1)).await
    /// });
    /// runner.beside(work).await
    /// # }
    /// ```
    pub fn beside<W: Future>(&mut self, mut work: Pin<&mut W>) -> impl Future<Output = W::Output> {
        let (mut output, mut is_over) = (None, false);
        poll_fn(move |cx| {
            self.neighbour.begin(cx.waker());
            for _ in 0..TURNS_MAX {
                is_over = is_over || Pin::new(&mut *self).poll(cx).is_ready();
                if core::mem::take(&mut self.neighbour.is_due)
                    && output.is_none()
                    && let Poll::Ready(done) = work.as_mut().poll(cx)
                {
                    output = Some(done);
                }
                let was_called = self.hub.with(|state| {
                    state.is_near = false;
                    core::mem::take(&mut state.is_called)
                });
                if is_over || was_called != Some(true) {
                    self.neighbour.is_near = false;
                    return match output.take() {
                        Some(done) if is_over => Poll::Ready(done),
                        unfinished => {
                            output = unfinished;
                            Poll::Pending
                        }
                    };
                }
            }
            self.neighbour.is_near = false;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }
}

/// Turns of one poll before the task lets others run.
const TURNS_MAX: u32 = 32;
