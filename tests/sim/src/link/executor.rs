//! Tasks on one thread, in an order that the seed draws, under a clock that jumps.

use core::cell::RefCell;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::Waker;
use core::task::{Context, Poll};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

use super::world::{Dice, World};

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Polls of one run beyond this many mean that something spins.
const POLLS_MAX: u64 = 50_000_000;

/// Polls within one instant beyond this many mean that something spins.
const POLLS_PER_INSTANT_MAX: u64 = 1_000_000;

/// Why a run did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// Nothing will ever happen, and the main future waits.
    Stuck {
        /// When, in microseconds.
        at: u64,
    },
    /// The time limit has passed.
    TimeLimit,
    /// Tasks are polled over and over.
    Spinning {
        /// When, in microseconds.
        at: u64,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stuck { at } => write!(f, "stuck at {at} us: nothing will ever happen"),
            Self::TimeLimit => f.write_str("the time limit has passed"),
            Self::Spinning { at } => write!(f, "spinning at {at} us"),
        }
    }
}

impl core::error::Error for RunError {}

/// Runs tasks against a world.
pub struct Executor {
    world: World,
    tasks: Vec<Option<Task>>,
    ready: Arc<ReadyList>,
    spawner: Spawner,
    dice: Dice,
    polls: u64,
}

/// Gives further tasks to a running executor.
#[derive(Clone, Default)]
pub struct Spawner {
    fresh: Rc<RefCell<Vec<Task>>>,
}

impl fmt::Debug for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawner").finish_non_exhaustive()
    }
}

impl Spawner {
    /// Runs a task from the executor's next step on.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.fresh.borrow_mut().push(Box::pin(task));
    }
}

#[derive(Default)]
struct ReadyList(Mutex<Vec<usize>>);

struct TaskWaker {
    index: usize,
    ready: Arc<ReadyList>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut ready = self.ready.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !ready.contains(&self.index) {
            ready.push(self.index);
        }
    }
}

impl Executor {
    /// An executor whose choices come from `seed`.
    pub fn new(world: &World, seed: u64) -> Self {
        Self {
            world: world.clone(),
            tasks: Vec::new(),
            ready: Arc::default(),
            spawner: Spawner::default(),
            dice: Dice::new(seed ^ 0x2545_f491_4f6c_dd1d),
            polls: 0,
        }
    }

    /// A way to spawn from inside tasks.
    pub fn spawner(&self) -> Spawner {
        self.spawner.clone()
    }

    /// Polls made so far.
    pub const fn polls(&self) -> u64 {
        self.polls
    }

    /// Runs until `main` is done, at most until `limit_micros`.
    pub fn run<R: 'static>(
        &mut self,
        limit_micros: u64,
        main: impl Future<Output = R> + 'static,
    ) -> Result<R, RunError> {
        let outcome = Rc::new(RefCell::new(None));
        let slot = Rc::clone(&outcome);
        self.spawner.spawn(async move {
            let result = main.await;
            *slot.borrow_mut() = Some(result);
        });
        let (mut instant, mut polls_in_instant) = (0, 0);
        loop {
            self.adopt();
            if let Some(index) = self.draw() {
                self.poll(index);
                if let Some(result) = outcome.borrow_mut().take() {
                    return Ok(result);
                }
                let now = self.world.now();
                polls_in_instant = if now == instant {
                    polls_in_instant + 1
                } else {
                    0
                };
                instant = now;
                if self.polls > POLLS_MAX || polls_in_instant > POLLS_PER_INSTANT_MAX {
                    return Err(RunError::Spinning { at: now });
                }
            } else if !self.world.step(limit_micros) {
                let at = self.world.now();
                let waits_for_time = self.world.has_plans();
                return Err(if waits_for_time {
                    RunError::TimeLimit
                } else {
                    RunError::Stuck { at }
                });
            }
        }
    }

    /// Takes over what was spawned.
    fn adopt(&mut self) {
        for task in self.spawner.fresh.take() {
            let index = self.tasks.len();
            self.tasks.push(Some(task));
            self.ready
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(index);
        }
    }

    fn draw(&mut self) -> Option<usize> {
        let mut ready = self.ready.0.lock().unwrap_or_else(PoisonError::into_inner);
        let len = u64::try_from(ready.len()).ok().filter(|&len| len > 0)?;
        let place = usize::try_from(self.dice.below(len)).unwrap_or(0);
        Some(ready.swap_remove(place))
    }

    fn poll(&mut self, index: usize) {
        self.polls += 1;
        let Some(slot) = self.tasks.get_mut(index) else {
            return;
        };
        let Some(mut task) = slot.take() else { return };
        let waker = Waker::from(Arc::new(TaskWaker {
            index,
            ready: Arc::clone(&self.ready),
        }));
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(()) => drop(task),
            Poll::Pending => {
                if let Some(slot) = self.tasks.get_mut(index) {
                    *slot = Some(task);
                }
            }
        }
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("tasks", &self.tasks.len())
            .finish_non_exhaustive()
    }
}
