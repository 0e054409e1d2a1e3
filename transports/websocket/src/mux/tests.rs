//! The mux over links in memory: the contract of links, dead and refused tunnels, draining.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, Ready, poll_fn};
use core::num::NonZeroU16;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use core::task::{Context, Poll};
use core::time::Duration;

use bytes::BytesMut;
use messina_core::drive::{Clock, Link, Timer};
use messina_core::testing::{MemoryLink, link_contract, memory_pair};

use super::*;
use crate::tunnel::{Opening, Tunnel};

/// Polls tasks only when their wakers say so: a wake-up that is missing is seen.
#[derive(Default)]
struct Tasks(Vec<(Task, Arc<Flag>)>);

type Task = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

impl Tasks {
    fn spawn(&mut self, task: impl Future<Output = ()> + 'static) {
        self.0.push((Box::pin(task), Arc::new(Flag(true.into()))));
    }

    /// Runs until all tasks are asleep; gives how many have not ended.
    fn run(&mut self) -> usize {
        for _ in 0..1_000_000 {
            let mut is_idle = true;
            self.0.retain_mut(|(task, flag)| {
                if !flag.0.swap(false, Relaxed) {
                    return true;
                }
                is_idle = false;
                let waker = Waker::from(Arc::clone(flag));
                task.as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            });
            if is_idle {
                return self.0.len();
            }
        }
        panic!("tasks run for ever");
    }
}

#[derive(Clone, Default)]
struct World(Rc<Inner>);

#[derive(Default)]
struct Inner {
    now: Arc<AtomicU64>,
    timers: RefCell<Vec<Waker>>,
    /// The far ends of links that were opened.
    accepted: RefCell<Vec<MemoryLink>>,
    refusal: Cell<Option<LinkError>>,
    is_silent: Cell<bool>,
    dialed: Cell<usize>,
}

struct WorldClock(Arc<AtomicU64>);

impl Clock for WorldClock {
    fn now(&self) -> Instant {
        Instant::from_micros(self.0.load(Relaxed))
    }
}

struct WorldTimer(World, Option<Instant>);

impl Timer for WorldTimer {
    fn arm(&mut self, at: Option<Instant>) {
        self.1 = at;
    }

    fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.1.is_some_and(|at| at <= self.0.clock().now()) {
            return Poll::Ready(());
        }
        self.0.0.timers.borrow_mut().push(cx.waker().clone());
        Poll::Pending
    }
}

/// Ready at once, or never.
struct Dialing(Option<Result<MemoryLink, LinkError>>);

impl Future for Dialing {
    type Output = Result<MemoryLink, LinkError>;

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.take().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Transport for World {
    type Link = MemoryLink;
    type Timer = WorldTimer;
    type Clock = WorldClock;
    type Connecting = Dialing;
    type Resolving = Ready<Result<Resolved, LinkError>>;

    fn resolve(&self, _name: &Name) -> Self::Resolving {
        panic!("names stay names");
    }

    fn connect(&self, target: Target) -> Dialing {
        assert_eq!(target.endpoint, Endpoint::Local("relay".into()));
        self.0.dialed.set(self.0.dialed.get() + 1);
        if self.0.is_silent.get() {
            return Dialing(None);
        }
        if let Some(error) = self.0.refusal.get() {
            return Dialing(Some(Err(error)));
        }
        let (near, far) = memory_pair(1000);
        self.0.accepted.borrow_mut().push(far);
        Dialing(Some(Ok(near)))
    }

    fn timer(&self) -> WorldTimer {
        WorldTimer(self.clone(), None)
    }

    fn clock(&self) -> WorldClock {
        WorldClock(Arc::clone(&self.0.now))
    }
}

impl World {
    fn mux(&self, tasks: &mut Tasks) -> Mux<Self> {
        let (mux, pump) = Mux::new(
            self.clone(),
            Endpoint::Local("relay".into()),
            Limits::client(),
        );
        tasks.spawn(pump);
        mux
    }

    fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.0.now.fetch_add(by, Relaxed);
        let timers = self.0.timers.take();
        timers.into_iter().for_each(Waker::wake);
    }

    fn accept(&self) -> MemoryLink {
        self.0.accepted.borrow_mut().remove(0)
    }
}

/// A relay whose targets send back what they get; `refuse:` is not allowed, `silent:` never answers.
fn echo_relay(mut link: MemoryLink, seen: Rc<RefCell<Vec<Opening>>>) -> impl Future<Output = ()> {
    let mut tunnel = Tunnel::relay(Limits::relay());
    let mut outgoing = BytesMut::new();
    let mut echoes: Vec<(ChannelId, BytesMut, bool)> = Vec::new();
    poll_fn(move |cx| {
        loop {
            let mut moved = false;
            if tunnel.wants_input() {
                let mut incoming = BytesMut::with_capacity(300);
                match link.poll_read(cx, &mut incoming) {
                    Poll::Ready(Ok(len)) if len > 0 => {
                        tunnel
                            .handle_input(&incoming)
                            .expect("a client keeps the rules");
                        moved = true;
                    }
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => {}
                }
            }
            while let Some(opening) = tunnel.poll_opening() {
                match &*opening.target {
                    "refuse:1" => tunnel.close(opening.channel, Reason::Forbidden, "no"),
                    "silent:1" => {}
                    _ => {
                        tunnel.accept(opening.channel, 4711);
                        echoes.push((opening.channel, BytesMut::new(), false));
                    }
                }
                seen.borrow_mut().push(opening);
            }
            echoes.retain_mut(|(id, held, is_finished)| {
                if held.is_empty() && !*is_finished {
                    match tunnel.read(*id, held) {
                        Ok(None) => {}
                        Ok(Some(0)) => *is_finished = true,
                        Ok(Some(_)) => moved = true,
                        Err(_) => {
                            tunnel.release(*id);
                            return false;
                        }
                    }
                }
                if !held.is_empty()
                    && let Ok(Some(len)) = tunnel.write(*id, held)
                {
                    let _ = held.split_to(len);
                    moved = true;
                }
                if *is_finished && held.is_empty() {
                    tunnel.finish(*id);
                }
                true
            });
            while tunnel.poll_changed().is_some() {}
            if outgoing.is_empty() {
                outgoing = tunnel.poll_output(777).unwrap_or_default();
            }
            if !outgoing.is_empty() {
                match link.poll_write(cx, &outgoing) {
                    Poll::Ready(Ok(len)) => {
                        let _ = outgoing.split_to(len);
                        moved = true;
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => {}
                }
            }
            if !moved {
                return Poll::Pending;
            }
        }
    })
}

fn target(host: &str) -> Target {
    let endpoint = Endpoint::Name {
        host: host.into(),
        port: 1,
    };
    Target::new(endpoint, Instant::from_micros(5_000_000))
}

type Slot<T> = Rc<RefCell<Option<T>>>;

/// The outcome of a future that the tasks run.
fn outcome<T: 'static>(tasks: &mut Tasks, future: impl Future<Output = T> + 'static) -> Slot<T> {
    let slot: Slot<T> = Rc::default();
    let kept = Rc::clone(&slot);
    tasks.spawn(async move {
        let value = future.await;
        *kept.borrow_mut() = Some(value);
    });
    slot
}

fn read(tasks: &mut Tasks, mut link: ChannelLink) -> Slot<(Result<usize, LinkError>, ChannelLink)> {
    outcome(tasks, async move {
        let mut into = BytesMut::with_capacity(100);
        (poll_fn(|cx| link.poll_read(cx, &mut into)).await, link)
    })
}

#[test]
fn channels_keep_the_contract_of_links() {
    let (world, mut tasks) = (World::default(), Tasks::default());
    let mux = world.mux(&mut tasks);
    let seen: Rc<RefCell<Vec<Opening>>> = Rc::default();
    let mut steered = target("node");
    let of = NonZeroU16::new(8).expect("not zero");
    steered.steering = Steering::Shard { shard: 3, of };
    let targets = [target("node"), steered, target("other")];
    let outcomes = targets.map(|target| {
        let connecting = mux.connect(target);
        outcome(&mut tasks, async move {
            let link = connecting.await.map_err(|error| error.to_string())?;
            link_contract(link).await
        })
    });
    tasks.run();
    tasks.spawn(echo_relay(world.accept(), Rc::clone(&seen)));
    assert_eq!(tasks.run(), 2, "the pump and the relay are left");
    for outcome in outcomes {
        assert_eq!(outcome.take(), Some(Ok(())));
    }
    assert_eq!(world.0.dialed.get(), 1);
    let seen: Vec<(String, Wish)> = seen
        .take()
        .into_iter()
        .map(|opening| (opening.target, opening.wish))
        .collect();
    let wish = Wish::Shard { shard: 3, of };
    let expected = [
        ("node:1", Wish::None),
        ("node:1", wish),
        ("other:1", Wish::None),
    ];
    assert_eq!(seen, expected.map(|(target, wish)| (target.into(), wish)));
    drop(mux);
    assert_eq!(tasks.run(), 0, "the pump ends, and with its link the relay");
}

#[test]
fn a_link_is_usable_before_the_relay_has_answered() {
    let (world, mut tasks) = (World::default(), Tasks::default());
    let mux = world.mux(&mut tasks);
    let links = ["refuse", "node"].map(|host| outcome(&mut tasks, mux.connect(target(host))));
    tasks.run();
    let [refused, good] =
        links.map(|link| link.take().expect("open").expect("no answer is needed"));
    assert_eq!(good.source_port(), None);
    let reads = [read(&mut tasks, refused), read(&mut tasks, good)];
    tasks.run();
    assert!(reads.iter().all(|read| read.borrow().is_none()));
    tasks.spawn(echo_relay(world.accept(), Rc::default()));
    tasks.run();
    let (error, mut link) = reads[0].take().expect("it is refused");
    let error = error.expect_err("it is refused");
    assert_eq!(error.kind(), LinkErrorKind::Refused);
    assert_eq!(
        error.to_string(),
        "connection refused: target not allowed by the relay (code 4006)"
    );
    let cx = &mut Context::from_waker(Waker::noop());
    assert_eq!(link.poll_write(cx, b"a"), Poll::Ready(Err(error)), "sticky");
    drop(reads);
    drop(link);
    let good = outcome(&mut tasks, mux.connect(target("node")));
    tasks.run();
    let good = good.take().expect("open").expect("open");
    tasks.run();
    assert_eq!(good.source_port(), NonZeroU16::new(4711));
}

#[test]
fn a_broken_tunnel_fails_its_links_and_the_next_link_gets_a_new_one() {
    let (world, mut tasks) = (World::default(), Tasks::default());
    let mux = world.mux(&mut tasks);
    let connecting = mux.connect(target("node"));
    let link = outcome(&mut tasks, connecting);
    tasks.run();
    let link = link.take().expect("open").expect("open");
    let pending = read(&mut tasks, link);
    tasks.run();
    let reset = LinkError::new(LinkErrorKind::Reset);
    let far = world.accept();
    far.reset(reset);
    tasks.run();
    assert_eq!(pending.take().map(|read| read.0), Some(Err(reset)));

    world.0.refusal.set(Some(LinkError::TIMED_OUT));
    let refused = outcome(&mut tasks, mux.connect(target("node")));
    tasks.run();
    assert_eq!(
        refused.take().map(|link| link.err()),
        Some(Some(LinkError::TIMED_OUT))
    );

    world.0.refusal.set(None);
    let link = outcome(&mut tasks, mux.connect(target("node")));
    tasks.run();
    tasks.spawn(echo_relay(world.accept(), Rc::default()));
    let link = link.take().expect("open").expect("open");
    let contract = outcome(&mut tasks, link_contract(link));
    tasks.run();
    assert_eq!(contract.take(), Some(Ok(())));
    assert_eq!(world.0.dialed.get(), 3);
}

#[test]
fn a_peer_that_breaks_the_rules_is_left() {
    let (world, mut tasks) = (World::default(), Tasks::default());
    let mux = world.mux(&mut tasks);
    let link = outcome(&mut tasks, mux.connect(target("node")));
    tasks.run();
    let pending = read(&mut tasks, link.take().expect("open").expect("open"));
    let mut far = world.accept();
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(far.poll_write(cx, b"HTTP/1.1 200").is_ready());
    tasks.run();
    let error = pending.take().expect("it failed").0.expect_err("it failed");
    assert_eq!(
        error.to_string(),
        "link failed: tunnel: frame of unknown kind (code 1002)"
    );
    let closed = far.poll_read(cx, &mut BytesMut::with_capacity(1000));
    assert!(matches!(closed, Poll::Ready(Ok(_))), "what was sent before");
    let closed = far.poll_read(cx, &mut BytesMut::with_capacity(1000));
    assert_eq!(closed, Poll::Ready(Ok(0)));
}

#[test]
fn a_tunnel_that_does_not_answer_counts_as_dead_at_the_deadline() {
    let (world, mut tasks) = (World::default(), Tasks::default());
    let mux = world.mux(&mut tasks);
    // Answered: `silent` stays alive however long its target takes.
    let silent = outcome(&mut tasks, mux.connect(target("silent")));
    tasks.run();
    tasks.spawn(echo_relay(world.accept(), Rc::default()));
    tasks.run();
    let alive = read(&mut tasks, silent.take().expect("open").expect("open"));
    tasks.run();
    world.advance(Duration::from_secs(4));
    // Not answered: the far end is there and says nothing.
    let mux_to_nobody = world.mux(&mut tasks);
    let dead = outcome(&mut tasks, mux_to_nobody.connect(target("node")));
    tasks.run();
    let dead = read(&mut tasks, dead.take().expect("open").expect("open"));
    tasks.run();
    let _far = world.accept();
    world.advance(Duration::from_millis(999));
    tasks.run();
    assert!(dead.borrow().is_none());
    world.advance(Duration::from_millis(2));
    tasks.run();
    assert_eq!(
        dead.take().map(|read| read.0),
        Some(Err(LinkError::TIMED_OUT))
    );
    assert!(alive.borrow().is_none());
}

#[test]
fn new_links_go_round_a_relay_that_drains() {
    let (world, mut tasks) = (World::default(), Tasks::default());
    let mux = world.mux(&mut tasks);
    let old = outcome(&mut tasks, mux.connect(target("node")));
    tasks.run();
    let old = old.take().expect("open").expect("open");
    let mut far = world.accept();
    let mut tunnel = Tunnel::relay(Limits::relay());
    tunnel.drain();
    let drain = tunnel.poll_output(100).expect("a frame");
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(far.poll_write(cx, &drain).is_ready());
    tasks.run();
    let new = outcome(&mut tasks, mux.connect(target("node")));
    tasks.run();
    assert_eq!(world.0.dialed.get(), 2);
    let _new = new.take().expect("open").expect("open");
    let mut from_client = BytesMut::with_capacity(1000);
    assert!(far.poll_read(cx, &mut from_client).is_ready());
    assert!(
        far.poll_read(cx, &mut from_client).is_pending(),
        "still there"
    );
    drop(old);
    tasks.run();
    let last = far.poll_read(cx, &mut from_client);
    assert!(matches!(last, Poll::Ready(Ok(8))), "closed: {last:?}");
    let end = far.poll_read(cx, &mut from_client);
    assert_eq!(
        end,
        Poll::Ready(Ok(0)),
        "and with its last channel the link"
    );
}

#[test]
fn what_is_given_up_does_not_stay() {
    let (world, mut tasks) = (World::default(), Tasks::default());
    world.0.is_silent.set(true);
    let mux = world.mux(&mut tasks);
    drop(mux.connect(target("node")));
    tasks.run();
    let again = outcome(&mut tasks, mux.connect(target("node")));
    tasks.run();
    assert_eq!(world.0.dialed.get(), 2, "the first attempt was given up");
    // Without its pump, nothing is tried.
    drop(tasks.0.remove(0));
    tasks.run();
    let closed = Some(Some(LinkErrorKind::ClosedByUs));
    let kind = |slot: Slot<Result<ChannelLink, LinkError>>| {
        slot.take().map(|link| link.err().map(LinkError::kind))
    };
    assert_eq!(kind(again), closed);
    let late = outcome(&mut tasks, mux.connect(target("node")));
    tasks.run();
    assert_eq!(kind(late), closed);
}
