//! Two embassy-net stacks on a cable in memory. The near one is the microcontroller, the far one
//! the rest of the world. Needs no privileges and touches no network of the host.

use core::cell::Cell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;

use embassy_futures::join::join4;
use embassy_futures::select::{Either, select};
use embassy_net::driver::{HardwareAddress, LinkState};
use embassy_net::{Ipv4Address, Ipv4Cidr, Stack, StackResources, StaticConfigV4};
use embassy_net_driver_channel as channel;
use embassy_time::{Duration, Instant, Timer, with_timeout};

/// Address of the near stack.
pub(crate) const NEAR: Ipv4Address = Ipv4Address::new(127, 0, 0, 100);
/// Address of the far stack: that of a node on the host, so that what the node tells of itself is
/// true on the cable too (see [`relay`]).
pub(crate) const FAR: Ipv4Address = Ipv4Address::new(127, 0, 0, 1);
/// An address in the same network that no one has.
pub(crate) const NOBODY: Ipv4Address = Ipv4Address::new(127, 0, 0, 99);

const MTU: usize = 1514;
const FRAMES: usize = 8;
const SOCKETS: usize = 12;
/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(20);

/// One end of the cable and its stack.
#[derive(Clone, Copy)]
pub(crate) struct Rig {
    /// The stack under test.
    pub(crate) near: Stack<'static>,
    /// Its peer.
    pub(crate) far: Stack<'static>,
    /// The wire in between.
    pub(crate) cable: &'static Cable,
}

/// What can happen to the wire.
pub(crate) struct Cable {
    cut: Cell<bool>,
    /// Of a thousand frames, this many are lost.
    lost_per_mille: Cell<u64>,
    delay: Cell<Duration>,
    dice: Cell<u64>,
    lost: Cell<u32>,
    near: channel::StateRunner<'static>,
}

impl Cable {
    /// Frames vanish without either side being told, until healed.
    pub(crate) fn cut(&self, cut: bool) {
        self.cut.set(cut);
    }

    /// From now on each frame is late by `delay`, and of a thousand `lost_per_mille` do not arrive;
    /// which ones, the seed decides.
    pub(crate) fn disturb(&self, seed: u64, lost_per_mille: u64, delay: Duration) {
        self.dice.set(seed);
        self.lost_per_mille.set(lost_per_mille);
        self.delay.set(delay);
    }

    /// Frames that were lost by the dice.
    pub(crate) fn lost(&self) -> u32 {
        self.lost.get()
    }

    fn loses(&self) -> bool {
        let dice = self.dice.get();
        let dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.dice.set(dice);
        let is_lost = (dice >> 33) % 1_000 < self.lost_per_mille.get();
        self.lost.set(self.lost.get() + u32::from(is_lost));
        is_lost || self.cut.get()
    }

    /// The near side notices that the plug is out, or in.
    pub(crate) fn plug(&self, state: LinkState) {
        self.near.set_link_state(state);
    }
}

/// Runs a test beside the two stacks, on one thread.
pub(crate) fn on_cable<F: Future<Output = ()>>(test: impl FnOnce(Rig) -> F) {
    let (near_ends, near_device) = device(1);
    let (far_ends, far_device) = device(2);
    let (near, mut near_runner) = stack(near_device, NEAR, 1);
    let (far, mut far_runner) = stack(far_device, FAR, 2);
    let (near_state, near_rx, near_tx) = near_ends.split();
    let (far_state, far_rx, far_tx) = far_ends.split();
    near_state.set_link_state(LinkState::Up);
    far_state.set_link_state(LinkState::Up);
    let cable: &'static Cable = leak(Cable {
        cut: Cell::new(false),
        lost_per_mille: Cell::new(0),
        delay: Cell::new(Duration::from_ticks(0)),
        dice: Cell::new(0),
        lost: Cell::new(0),
        near: near_state,
    });

    let background = join4(
        near_runner.run(),
        far_runner.run(),
        carry(near_tx, far_rx, cable),
        carry(far_tx, near_rx, cable),
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let test = with_timeout(LIMIT, test(Rig { near, far, cable }));
        match select(background, test).await {
            Either::First(_) => unreachable!("stacks and cable run for ever"),
            Either::Second(ended) => ended.expect("the test hangs"),
        }
    });
}

/// Memory for the life of the test process: stacks and sockets want `'static`, as in firmware.
pub(crate) fn leak<T>(value: T) -> &'static mut T {
    Box::leak(Box::new(value))
}

/// Polls once.
pub(crate) fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn device(last: u8) -> (channel::Runner<'static, MTU>, channel::Device<'static, MTU>) {
    let state = leak(channel::State::<MTU, FRAMES, FRAMES>::new());
    channel::new(state, HardwareAddress::Ethernet([2, 0, 0, 0, 0, last]))
}

fn stack(
    device: channel::Device<'static, MTU>,
    address: Ipv4Address,
    seed: u64,
) -> (
    Stack<'static>,
    embassy_net::Runner<'static, channel::Device<'static, MTU>>,
) {
    let config = embassy_net::Config::ipv4_static(StaticConfigV4 {
        address: Ipv4Cidr::new(address, 24),
        gateway: None,
        dns_servers: [FAR].into_iter().collect(),
    });
    embassy_net::new(device, config, leak(StackResources::<SOCKETS>::new()), seed)
}

async fn carry(
    mut from: channel::TxRunner<'static, MTU>,
    mut to: channel::RxRunner<'static, MTU>,
    cable: &Cable,
) {
    let mut late = VecDeque::new();
    loop {
        let arrival = async {
            match late.front() {
                Some((at, _)) => Timer::at(*at).await,
                None => core::future::pending().await,
            }
        };
        match select(from.tx_buf(), arrival).await {
            Either::First(frame) => {
                if !cable.loses() {
                    late.push_back((Instant::now() + cable.delay.get(), frame.to_vec()));
                }
                from.tx_done();
            }
            Either::Second(()) => {
                let Some((_, frame)) = late.pop_front() else {
                    continue;
                };
                let room = to.rx_buf().await;
                room[..frame.len()].copy_from_slice(&frame);
                to.rx_done(frame.len());
            }
        }
    }
}
