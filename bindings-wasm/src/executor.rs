//! Runs tasks on one thread until none of them can go on.
//!
//! Woken tasks form a queue that is linked through their own wakers: waking costs two stores and
//! no allocation, and needs no lock, so wakers are `Send + Sync` without unsafe code. The waker of
//! a slot lives as long as the executor; a stale one wakes whatever task uses the slot now, which
//! does no harm.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use core::task::{Context, Waker};

pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Where running tasks leave new ones.
pub(crate) type Spawned = Rc<RefCell<Vec<Task>>>;

#[derive(Default)]
pub(crate) struct Executor {
    slots: Vec<Slot>,
    free: Vec<u32>,
    woken: Arc<Woken>,
    /// Tasks to be polled, the next one last.
    batch: Vec<u32>,
    spawned: Spawned,
}

struct Slot {
    task: Option<Task>,
    waking: Arc<Waking>,
}

/// The slot that was woken last; the others follow through [`Waking::earlier`].
struct Woken {
    last: AtomicU32,
}

impl Default for Woken {
    fn default() -> Self {
        Self {
            last: AtomicU32::new(NONE),
        }
    }
}

/// The waker of one slot.
struct Waking {
    slot: u32,
    is_queued: AtomicBool,
    earlier: AtomicU32,
    woken: Arc<Woken>,
}

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    // Not atomic as a whole: on one thread nothing can come between.
    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Relaxed) {
            let earlier = self.woken.last.swap(self.slot, Relaxed);
            self.earlier.store(earlier, Relaxed);
        }
    }
}

impl Executor {
    /// Adds a task, to be polled by the next [`Self::run`]. The number is its own until it ends.
    pub(crate) fn spawn(&mut self, make: impl FnOnce(u32) -> Task) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| self.add_slot());
        if let Some(slot) = self.slot(number) {
            slot.task = Some(make(number));
            slot.waking.wake_by_ref();
        }
        number
    }

    /// Drops a task that is not wanted any more; `false` if it has ended.
    pub(crate) fn cancel(&mut self, number: u32) -> bool {
        let task = self.slot(number).and_then(|slot| slot.task.take());
        let is_found = task.is_some();
        if is_found {
            self.free.push(number);
        }
        is_found
    }

    /// Where tasks leave new tasks; these are added right after the poll.
    pub(crate) fn spawned(&self) -> Spawned {
        Rc::clone(&self.spawned)
    }

    /// Polls woken tasks in the order of their waking, at most `polls_max` times; `false` if there
    /// is more to do.
    pub(crate) fn run(&mut self, polls_max: u32) -> bool {
        for _ in 0..polls_max {
            let Some(number) = self.next_woken() else {
                return true;
            };
            self.poll(number);
        }
        false
    }

    fn next_woken(&mut self) -> Option<u32> {
        if self.batch.is_empty() {
            let mut number = self.woken.last.swap(NONE, Relaxed);
            while number != NONE {
                self.batch.push(number);
                number = self
                    .slot(number)
                    .map_or(NONE, |slot| slot.waking.earlier.load(Relaxed));
            }
        }
        self.batch.pop()
    }

    fn poll(&mut self, number: u32) {
        let Some(slot) = self.slot(number) else {
            return;
        };
        slot.waking.is_queued.store(false, Relaxed);
        let Some(task) = &mut slot.task else {
            return;
        };
        let waker = Waker::from(Arc::clone(&slot.waking));
        if task
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            slot.task = None;
            self.free.push(number);
        }
        let spawned = self.spawned.take();
        for task in spawned {
            self.spawn(|_| task);
        }
    }

    fn add_slot(&mut self) -> u32 {
        let number = u32::try_from(self.slots.len()).unwrap_or(NONE);
        let waking = Waking {
            slot: number,
            is_queued: AtomicBool::new(false),
            earlier: AtomicU32::new(NONE),
            woken: Arc::clone(&self.woken),
        };
        self.slots.push(Slot {
            task: None,
            waking: Arc::new(waking),
        });
        number
    }

    fn slot(&mut self, number: u32) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(number).ok()?)
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("slots", &self.slots.len())
            .field("free", &self.free.len())
            .finish_non_exhaustive()
    }
}

const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::poll_fn;
    use core::task::Poll;

    type Trace = Rc<RefCell<Vec<(u32, u32)>>>;

    /// Notes each poll and wakes itself until it was polled `polls` times.
    fn noting(trace: &Trace, name: u32, polls: u32) -> Task {
        let trace = Rc::clone(trace);
        let mut polled = 0;
        Box::pin(poll_fn(move |cx| {
            polled += 1;
            trace.borrow_mut().push((name, polled));
            if polled == polls {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            cx.waker().wake_by_ref();
            Poll::Pending
        }))
    }

    #[test]
    fn tasks_run_in_the_order_of_their_waking() {
        let (mut executor, trace) = (Executor::default(), Trace::default());
        for name in 0..3 {
            executor.spawn(|_| noting(&trace, name, 2));
        }
        assert!(executor.run(100));
        let expected = [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2)];
        assert_eq!(trace.take(), expected);
    }

    #[test]
    fn a_busy_task_does_not_run_for_ever() {
        let (mut executor, trace) = (Executor::default(), Trace::default());
        executor.spawn(|_| noting(&trace, 0, 10));
        assert!(!executor.run(4));
        assert_eq!(trace.take().len(), 4);
        assert!(executor.run(100));
        assert_eq!(trace.take().len(), 6);
    }

    #[test]
    fn stale_wakers_and_cancelled_tasks_do_no_harm() {
        let (mut executor, trace) = (Executor::default(), Trace::default());
        let held: Rc<RefCell<Option<Waker>>> = Rc::default();
        let keep = Rc::clone(&held);
        let first = executor.spawn(|_| {
            Box::pin(poll_fn(move |cx| {
                *keep.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }))
        });
        assert!(executor.run(9));
        let waker = held.take().unwrap();
        waker.wake_by_ref();
        assert!(executor.cancel(first));
        assert!(!executor.cancel(first));
        assert_eq!(executor.spawn(|_| noting(&trace, 7, 2)), first);
        assert!(executor.run(9));
        waker.wake_by_ref();
        waker.wake();
        assert!(executor.run(9));
        assert_eq!(trace.take(), [(7, 1), (7, 2)]);
    }

    #[test]
    fn tasks_add_tasks() {
        let (mut executor, trace) = (Executor::default(), Trace::default());
        let (spawned, inner) = (executor.spawned(), noting(&trace, 1, 1));
        executor.spawn(|_| {
            Box::pin(async move {
                spawned.borrow_mut().push(inner);
            })
        });
        assert!(executor.run(9));
        assert_eq!(trace.take(), [(1, 1)]);
    }
}
