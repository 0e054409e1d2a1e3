//! messina-embassy against the contracts of [`Link`], [`Timer`] and [`Transport`], and against the
//! traps of embassy-net that it promises to own: two stacks on a cable in memory, real time.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "tls/authority.rs"]
mod authority;
#[path = "embassy/cable.rs"]
mod cable;
#[path = "embassy/cancellation.rs"]
mod cancellation;
#[path = "embassy/names.rs"]
mod names;
#[path = "embassy/one_task.rs"]
mod one_task;
#[path = "embassy/partial.rs"]
mod partial;
#[path = "embassy/relay.rs"]
mod relay;
#[path = "embassy/session.rs"]
mod session;
#[path = "embassy/small_session.rs"]
mod small_session;
#[path = "embassy/tls.rs"]
mod tls;

use core::future::poll_fn;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU16;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use bytes::BytesMut;
use embassy_futures::join::join;
use embassy_futures::select::select;
use embassy_net::driver::LinkState;
use embassy_net::tcp::{Error as TcpError, TcpSocket};
use embassy_net::{ConfigV4, Ipv4Address, Stack};
use messina_core::drive::{
    Clock, Endpoint, Link, Name, Resolved, Steering, SteeringKind, Target, Timer, Transport,
};
use messina_core::error::{LinkError, LinkErrorKind};
use messina_core::testing::link_contract;
use messina_core::time::Instant;
use messina_embassy::{
    EmbassyLink, EmbassyTransport, LINK_DOWN, Liveness, NO_ADDRESS, NO_FREE_SOCKET, Options, Seed,
    SocketBuffers, SocketPool, SteeringCounts,
};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use cable::{FAR, NOBODY, Rig, leak, on_cable, poll_once};
use relay::relay;

type Pool = SocketPool<'static, 2>;

const PORT: u16 = 9042;
const PATIENCE: Duration = Duration::from_secs(5);

fn transport(
    stack: Stack<'static>,
    options: Options,
) -> (EmbassyTransport<'static>, &'static Pool) {
    transport_at_boot(stack, options, 0)
}

fn transport_at_boot(
    stack: Stack<'static>,
    options: Options,
    boot: u8,
) -> (EmbassyTransport<'static>, &'static Pool) {
    let buffers = leak(SocketBuffers::<2, 2048, 1024>::new());
    let pool: &'static Pool = leak(SocketPool::new(stack, buffers));
    let transport = EmbassyTransport::new(pool, &mut seed(boot), options);
    (transport, pool)
}

/// A seed for runs that repeat, in release builds too.
fn seed(boot: u8) -> Seed {
    let mut last = boot;
    let mut source = |into: &mut [u8]| {
        for byte in into {
            last = last.wrapping_mul(109).wrapping_add(89);
            *byte = last;
        }
        Ok(())
    };
    Seed::from_entropy(&mut source).unwrap()
}

fn with_liveness(probe_ms: u64, give_up_ms: u64) -> Options {
    let liveness = Liveness::new(
        Duration::from_millis(probe_ms),
        Duration::from_millis(give_up_ms),
    );
    let mut options = Options::default();
    options.liveness = Some(liveness);
    options
}

fn far_socket(rig: Rig) -> TcpSocket<'static> {
    TcpSocket::new(rig.far, leak([0; 4096]), leak([0; 4096]))
}

fn target(
    transport: &EmbassyTransport<'_>,
    address: Ipv4Address,
    port: u16,
    within: Duration,
) -> Target {
    let remote = SocketAddr::new(IpAddr::V4(address), port);
    Target::new(
        Endpoint::Addr(remote),
        transport.clock().now().saturating_add(within),
    )
}

/// Connects near to far; gives both ends.
async fn pair(
    rig: Rig,
    transport: &EmbassyTransport<'static>,
) -> (EmbassyLink<'static>, TcpSocket<'static>) {
    let mut far = far_socket(rig);
    let connecting = transport.connect(target(transport, FAR, PORT, PATIENCE));
    let (link, accepted) = join(connecting, far.accept(PORT)).await;
    accepted.unwrap();
    (link.unwrap(), far)
}

async fn read(link: &mut EmbassyLink<'_>, capacity: usize) -> Result<BytesMut, LinkError> {
    let mut into = BytesMut::with_capacity(capacity);
    let len = poll_fn(|cx| link.poll_read(cx, &mut into)).await?;
    assert_eq!(len, into.len());
    Ok(into)
}

async fn write_all(link: &mut EmbassyLink<'_>, mut bytes: &[u8]) -> Result<(), LinkError> {
    while !bytes.is_empty() {
        let len = poll_fn(|cx| link.poll_write(cx, bytes)).await?;
        assert!((1..=bytes.len()).contains(&len));
        bytes = &bytes[len..];
    }
    Ok(())
}

async fn close(link: &mut EmbassyLink<'_>) -> Result<(), LinkError> {
    poll_fn(|cx| link.poll_close(cx)).await
}

fn elapsed(since: Instant, transport: &EmbassyTransport<'_>) -> Duration {
    transport.clock().now().saturating_since(since)
}

fn byte_at(position: usize) -> u8 {
    (position.wrapping_mul(0x9E37_79B1) >> 24) as u8
}

#[test]
fn the_link_contract_holds() {
    on_cable(async |rig| {
        let (transport, pool) = transport(rig.near, Options::default());
        let (link, mut far) = pair(rig, &transport).await;
        let source_port = link.source_port().unwrap().get();
        assert_eq!(source_port, far.remote_endpoint().unwrap().port);
        let echo = echo(&mut far);
        let (outcome, ()) = join(link_contract(link), echo).await;
        assert_eq!(outcome, Ok(()));
        assert_eq!(pool.free(), 2);
    });
}

/// A lost frame costs a second and more, so few are.
#[test]
fn the_link_contract_holds_on_a_cable_that_loses_frames() {
    on_cable(async |rig| {
        let (transport, pool) = transport(rig.near, Options::default());
        let (link, mut far) = pair(rig, &transport).await;
        rig.cable
            .disturb(36, 1, embassy_time::Duration::from_micros(300));
        let echo = echo(&mut far);
        let (outcome, ()) = join(link_contract(link), echo).await;
        assert_eq!(outcome, Ok(()));
        assert!(rig.cable.lost() > 0, "the seed loses none");
        assert_eq!(pool.free(), 2);
    });
}

/// Sends everything back until the peer closes.
async fn echo(far: &mut TcpSocket<'_>) {
    let mut buffer = [0; 700];
    while let Ok(len @ 1..) = far.read(&mut buffer).await {
        let mut rest = &buffer[..len];
        while !rest.is_empty() {
            let Ok(written) = far.write(rest).await else {
                return;
            };
            rest = &rest[written..];
        }
    }
    far.close();
}

#[test]
fn a_server_on_the_host_is_reached_through_the_relay() {
    on_cable(async |rig| {
        let server = tokio::net::TcpListener::bind(("127.0.0.1", 0))
            .await
            .unwrap();
        let port = server.local_addr().unwrap().port();
        let serve = async {
            for _ in 0..6 {
                let (mut stream, _) = server.accept().await.unwrap();
                let mut word = [0; 5];
                stream.read_exact(&mut word).await.unwrap();
                word.reverse();
                stream.write_all(&word).await.unwrap();
            }
        };
        let (transport, _) = transport(rig.near, Options::default());
        let client = async {
            for _ in 0..6 {
                let connecting = transport.connect(target(&transport, FAR, port, PATIENCE));
                let mut link = connecting.await.unwrap();
                write_all(&mut link, b"hello").await.unwrap();
                assert_eq!(read(&mut link, 64).await.unwrap(), "olleh");
                assert_eq!(read(&mut link, 64).await.unwrap(), "");
                close(&mut link).await.unwrap();
            }
        };
        select(relay(rig, port), join(serve, client)).await;
    });
}

#[test]
fn a_read_keeps_to_the_spare_capacity() {
    on_cable(async |rig| {
        let (transport, _) = transport(rig.near, Options::default());
        let (mut link, mut far) = pair(rig, &transport).await;
        far.write(b"abcdef").await.unwrap();
        far.flush().await.unwrap();
        let mut into = BytesMut::with_capacity(8);
        let capacity = into.capacity();
        into.extend_from_slice(&vec![b'-'; capacity - 2]);
        assert_eq!(poll_fn(|cx| link.poll_read(cx, &mut into)).await, Ok(2));
        assert_eq!(into.capacity(), capacity);
        assert_eq!(into[capacity - 2..], *b"ab");
        assert_eq!(read(&mut link, 64).await.unwrap(), "cdef");
    });
}

#[test]
fn refused_silent_and_unplugged_are_told_apart() {
    on_cable(async |rig| {
        let (transport, pool) = transport(rig.near, Options::default());
        let begin = transport.clock().now();
        let refused = transport
            .connect(target(&transport, FAR, 1, PATIENCE))
            .await;
        assert_eq!(refused.unwrap_err().kind(), LinkErrorKind::Refused);
        assert!(elapsed(begin, &transport) < Duration::from_secs(3));

        let wait = Duration::from_millis(300);
        let begin = transport.clock().now();
        let silent = transport
            .connect(target(&transport, NOBODY, PORT, wait))
            .await;
        assert_eq!(silent.unwrap_err(), LinkError::TIMED_OUT);
        assert!((wait..wait * 10).contains(&elapsed(begin, &transport)));

        rig.cable.plug(LinkState::Down);
        rig.near.wait_link_down().await;
        let unplugged = transport.connect(target(&transport, FAR, PORT, wait)).await;
        assert_eq!(unplugged.unwrap_err(), LINK_DOWN);
        assert_eq!(pool.free(), 2);

        let elsewhere = Ipv4Address::new(192, 0, 2, 1);
        rig.cable.plug(LinkState::Up);
        rig.near.wait_link_up().await;
        let no_route = transport
            .connect(target(&transport, elsewhere, PORT, wait))
            .await;
        assert_eq!(no_route.unwrap_err(), LinkError::TIMED_OUT);

        // A lease that was lost; as long as there was an address, the way out was known.
        rig.near.set_config_v4(ConfigV4::None);
        let nameless = transport.connect(target(&transport, FAR, PORT, wait)).await;
        assert_eq!(nameless.unwrap_err(), NO_ADDRESS);
        assert_eq!(pool.free(), 2);
    });
}

#[test]
fn the_end_of_the_peer_is_no_error_and_ours_may_follow() {
    on_cable(async |rig| {
        let (transport, pool) = transport(rig.near, Options::default());
        let (mut link, mut far) = pair(rig, &transport).await;
        far.write(b"last words").await.unwrap();
        far.close();
        assert_eq!(read(&mut link, 64).await.unwrap(), "last words");
        assert_eq!(read(&mut link, 64).await.unwrap(), "");
        assert_eq!(read(&mut link, 64).await.unwrap(), "");
        write_all(&mut link, b"answer").await.unwrap();
        let mut answer = [0; 16];
        assert_eq!(far.read(&mut answer).await, Ok(6));
        close(&mut link).await.unwrap();
        assert_eq!(far.read(&mut answer).await, Ok(0));
        drop(link);
        assert_eq!(pool.free(), 2);
    });
}

#[test]
fn a_reset_is_sticky() {
    on_cable(async |rig| {
        let (transport, _) = transport(rig.near, Options::default());
        let (mut link, mut far) = pair(rig, &transport).await;
        far.abort();
        far.flush().await.unwrap();
        let reset = LinkError::new(LinkErrorKind::Reset);
        for _ in 0..2 {
            assert_eq!(read(&mut link, 64).await, Err(reset));
            assert_eq!(write_all(&mut link, b"x").await, Err(reset));
            assert_eq!(poll_fn(|cx| link.poll_flush(cx)).await, Err(reset));
            assert_eq!(close(&mut link).await, Err(reset));
        }
    });
}

#[test]
fn closing_delivers_what_was_written_and_ends_reads() {
    on_cable(async |rig| {
        let (transport, _) = transport(rig.near, Options::default());
        let (mut link, mut far) = pair(rig, &transport).await;
        let sent: Vec<u8> = (0..1000).map(byte_at).collect();
        write_all(&mut link, &sent).await.unwrap();
        poll_fn(|cx| link.poll_flush(cx)).await.unwrap();
        close(&mut link).await.unwrap();
        assert_eq!(read(&mut link, 64).await.unwrap(), "");
        let closed_by_us = LinkError::new(LinkErrorKind::ClosedByUs);
        assert_eq!(write_all(&mut link, b"x").await, Err(closed_by_us));

        let mut received = Vec::new();
        let mut buffer = [0; 300];
        loop {
            match far.read(&mut buffer).await.unwrap() {
                0 => break,
                len => received.extend_from_slice(&buffer[..len]),
            }
        }
        assert_eq!(received, sent);
    });
}

/// embassy-net's own write and flush report success in both.
#[test]
fn closing_over_a_cut_cable_ends_as_a_failure() {
    on_cable(async |rig| {
        let (transport, pool) = transport(rig.near, with_liveness(5_000, 20_000));
        let (mut link, _far) = pair(rig, &transport).await;
        rig.cable.cut(true);
        write_all(&mut link, b"lost").await.unwrap();
        let begin = transport.clock().now();
        assert_eq!(close(&mut link).await, Err(LinkError::TIMED_OUT));
        let took = elapsed(begin, &transport);
        let bounds = Duration::from_secs(3)..Duration::from_secs(8);
        assert!(bounds.contains(&took), "{took:?}");
        assert_eq!(close(&mut link).await, Err(LinkError::TIMED_OUT), "sticky");
        drop(link);
        assert_eq!(pool.free(), 2);
    });
}

#[test]
fn closing_while_the_peer_resets_is_no_success() {
    on_cable(async |rig| {
        let (transport, _) = transport(rig.near, Options::default());
        let (mut link, mut far) = pair(rig, &transport).await;
        write_all(&mut link, b"lost").await.unwrap();
        far.abort();
        let (closed, _) = join(close(&mut link), far.flush()).await;
        assert_eq!(closed, Err(LinkError::new(LinkErrorKind::Reset)));
    });
}

#[test]
fn a_dropped_link_resets_the_peer_and_its_socket_connects_again() {
    on_cable(async |rig| {
        let (transport, pool) = transport(rig.near, Options::default());
        let (kept, _kept_far) = pair(rig, &transport).await;
        for round in 0..20_u8 {
            let (mut link, mut far) = pair(rig, &transport).await;
            assert_eq!(pool.free(), 0);
            write_all(&mut link, &[round]).await.unwrap();
            let mut byte = [0];
            assert_eq!(far.read(&mut byte).await, Ok(1));
            assert_eq!(byte, [round], "bytes of an earlier connection");
            // The peer's delayed acknowledgement must not be what draws the reset.
            embassy_time::Timer::after_millis(30).await;
            drop(link);
            // At once: the reset has not left when the next connect begins.
            let again = transport.connect(target(&transport, FAR, PORT + 1, PATIENCE));
            let (refused, end) = join(again, far.read(&mut byte)).await;
            assert_eq!(refused.unwrap_err().kind(), LinkErrorKind::Refused);
            assert_eq!(end, Err(TcpError::ConnectionReset));
        }
        drop(kept);
        assert_eq!(pool.free(), 2);
    });
}

#[test]
fn an_abandoned_connect_gives_its_socket_back() {
    on_cable(async |rig| {
        let (transport, pool) = transport(rig.near, Options::default());
        let mut first = transport.connect(target(&transport, NOBODY, PORT, PATIENCE));
        let mut second = transport.connect(target(&transport, NOBODY, PORT, PATIENCE));
        assert!(poll_once(Pin::new(&mut first)).is_pending());
        assert!(poll_once(Pin::new(&mut second)).is_pending());
        assert_eq!(pool.free(), 0);
        let third = transport
            .connect(target(&transport, FAR, PORT, PATIENCE))
            .await;
        assert_eq!(third.unwrap_err(), NO_FREE_SOCKET);
        drop((first, second));
        assert_eq!(pool.free(), 2);
        let (_link, _far) = pair(rig, &transport).await;
    });
}

#[test]
fn an_address_that_is_lost_ends_what_is_open_and_what_opens() {
    on_cable(async |rig| {
        let (transport, pool) = transport(rig.near, Options::default());
        let (mut link, _far) = pair(rig, &transport).await;
        let connecting = transport.connect(target(&transport, NOBODY, PORT, PATIENCE));
        let lose = async {
            embassy_time::Timer::after_millis(20).await;
            rig.near.set_config_v4(ConfigV4::None);
        };
        let begin = transport.clock().now();
        let (connected, (read, ())) = join(connecting, join(read(&mut link, 64), lose)).await;
        assert_eq!(connected.unwrap_err(), NO_ADDRESS);
        assert_eq!(read, Err(NO_ADDRESS));
        assert!(elapsed(begin, &transport) < Duration::from_secs(3));
        drop(link);
        assert_eq!(pool.free(), 2);
    });
}

#[test]
fn keep_alive_lets_an_idle_connection_live() {
    on_cable(async |rig| {
        // A peer on smoltcp answers at most one probe a second.
        let (transport, _) = transport(rig.near, with_liveness(500, 1_500));
        let (mut link, mut far) = pair(rig, &transport).await;
        embassy_time::Timer::after_millis(3_500).await;
        far.write(b"still here").await.unwrap();
        assert_eq!(read(&mut link, 64).await.unwrap(), "still here");
    });
}

#[test]
fn a_vanished_peer_times_out_and_a_pulled_plug_is_unreachable() {
    for (plug, expected) in [
        (LinkState::Up, LinkError::TIMED_OUT),
        (LinkState::Down, LINK_DOWN),
    ] {
        on_cable(async |rig| {
            let (transport, _) = transport(rig.near, with_liveness(100, 400));
            let (mut link, _far) = pair(rig, &transport).await;
            rig.cable.cut(true);
            rig.cable.plug(plug);
            let begin = transport.clock().now();
            assert_eq!(read(&mut link, 64).await, Err(expected));
            let took = elapsed(begin, &transport);
            assert!(took < Duration::from_secs(3), "{took:?}");
        });
    }
}

#[test]
fn every_shard_is_reached_by_steering() {
    on_cable(async |rig| {
        let mut options = Options::default();
        options.steering = true;
        let (transport, pool) = transport(rig.near, options);
        assert_eq!(transport.steering(), SteeringKind::BestEffortShard);
        for of in [1, 2, 3, 14].map(|of| NonZeroU16::new(of).unwrap()) {
            for shard in (0..of.get()).rev() {
                let mut far = far_socket(rig);
                let mut target = target(&transport, FAR, PORT, PATIENCE);
                target.steering = Steering::Shard { shard, of };
                let (link, accepted) = join(transport.connect(target), far.accept(PORT)).await;
                accepted.unwrap();
                let seen = far.remote_endpoint().unwrap().port;
                assert_eq!(seen % of, shard, "port {seen}, {of} shards");
                assert_eq!(link.unwrap().source_port(), NonZeroU16::new(seen));
            }
        }
        let counts = pool.steering();
        assert_eq!((counts.wished, counts.missed), (1 + 2 + 3 + 14, 0));
    });
}

#[test]
fn a_shard_that_no_port_is_found_for_is_counted_and_the_connection_opens_all_the_same() {
    on_cable(async |rig| {
        let mut options = Options::default();
        options.steering = true;
        let (transport, pool) = transport(rig.near, options);
        // Further away than ports are drawn; that the allocator starts by the seed makes it sure.
        let (of, far_away) = (60_000, 59_000);
        let mut far = far_socket(rig);
        let mut target = target(&transport, FAR, PORT, PATIENCE);
        target.steering = Steering::Shard {
            shard: far_away,
            of: NonZeroU16::new(of).unwrap(),
        };
        let (link, accepted) = join(transport.connect(target), far.accept(PORT)).await;
        accepted.unwrap();
        let seen = far.remote_endpoint().unwrap().port;
        assert_eq!(link.unwrap().source_port(), NonZeroU16::new(seen));
        assert_eq!((pool.steering().wished, pool.steering().missed), (1, 1));
    });
}

/// Steering assumes nothing of the stack's allocator but is only cheap if it counts up by one. When
/// this fails after an update of embassy-net, measure the draws and write down what they cost.
#[test]
fn the_allocator_of_source_ports_counts_up_by_one() {
    on_cable(async |rig| {
        let (transport, pool) = transport(rig.near, Options::default());
        let mut last: Option<u16> = None;
        for _ in 0..20 {
            let (link, _far) = pair(rig, &transport).await;
            let port = link.source_port().unwrap().get();
            if let Some(last) = last {
                let changed = "embassy-net has another way to give source ports";
                assert_eq!(port, last + 1, "{changed}");
            }
            last = Some(port);
        }
        assert_eq!(pool.steering(), SteeringCounts::default());
    });
}

#[test]
fn ports_differ_from_boot_to_boot_even_if_the_stack_has_the_same_seed() {
    let mut first_ports = Vec::new();
    for boot in 0..4_u8 {
        on_cable(async |rig| {
            let (transport, _) = transport_at_boot(rig.near, Options::default(), boot);
            let (link, _far) = pair(rig, &transport).await;
            first_ports.push(link.source_port().unwrap());
        });
    }
    first_ports.sort_unstable();
    first_ports.dedup();
    assert_eq!(first_ports.len(), 4, "{first_ports:?}");
}

#[test]
fn literal_names_resolve_and_others_fail_in_time() {
    on_cable(async |rig| {
        let mut options = Options::default();
        options.resolve_timeout = Duration::from_millis(300);
        let (transport, _) = transport(rig.near, options);
        let found = transport.resolve(&Name::from("127.0.0.1")).await.unwrap();
        let Resolved::Addrs(addrs) = found else {
            panic!("{found:?}")
        };
        assert_eq!(addrs[..], [IpAddr::V4(FAR)]);

        let begin = transport.clock().now();
        let missing = transport
            .resolve(&Name::from("node.invalid"))
            .await
            .unwrap_err();
        let kind = missing.kind();
        assert!(
            matches!(kind, LinkErrorKind::Resolve | LinkErrorKind::TimedOut),
            "{kind:?}"
        );
        assert!(elapsed(begin, &transport) < Duration::from_secs(2));

        let by_name = Endpoint::Name {
            host: Name::from("127.0.0.1"),
            port: PORT,
        };
        let deadline = transport.clock().now().saturating_add(PATIENCE);
        let mut far = far_socket(rig);
        let connecting = transport.connect(Target::new(by_name, deadline));
        let (link, accepted) = join(connecting, far.accept(PORT)).await;
        accepted.unwrap();
        link.unwrap();
        let local = Endpoint::Local(Name::from("/run/socket"));
        let nowhere = transport.connect(Target::new(local, deadline)).await;
        assert_eq!(nowhere.unwrap_err().kind(), LinkErrorKind::Unreachable);
    });
}

#[test]
fn a_timer_is_level_triggered_never_early_and_may_be_moved() {
    on_cable(async |rig| {
        let (transport, _) = transport(rig.near, Options::default());
        let clock = transport.clock();
        let mut timer = transport.timer();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(timer.poll_fired(&mut cx).is_pending(), "not armed");
        timer.arm(Some(Instant::ZERO));
        assert!(
            timer.poll_fired(&mut cx).is_ready(),
            "the past fires at once"
        );
        assert!(timer.poll_fired(&mut cx).is_ready(), "level-triggered");
        for never in [None, Some(Instant::FAR_FUTURE)] {
            timer.arm(never);
            assert!(timer.poll_fired(&mut cx).is_pending());
        }
        for micros in [1, 999, 20_001] {
            timer.arm(Some(Instant::FAR_FUTURE));
            assert!(timer.poll_fired(&mut cx).is_pending());
            let at = clock.now().saturating_add(Duration::from_micros(micros));
            timer.arm(Some(at));
            pin!(poll_fn(|cx| timer.poll_fired(cx))).await;
            assert!(clock.now() >= at, "early");
        }
        assert_eq!(clock.wall_clock(), None);
    });
}
