//! messina-embassy against the kernel's TCP, over a TAP device in a network namespace of its own: no
//! address translation, so that source ports arrive as they were drawn, and a node for each address.
//!
//! `cargo xtask tests` makes the namespace.
#![expect(clippy::unwrap_used, reason = "tests")]

use core::future::poll_fn;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU16;
use core::pin::Pin;
use core::task::Poll;
use core::time::Duration;
use std::process::Command;

use bytes::BytesMut;
use embassy_futures::join::join;
use embassy_futures::select::{Either, select};
use embassy_net::{Ipv4Address, Ipv4Cidr, StackResources, StaticConfigV4};
use embassy_net_tuntap::TunTapDevice;
use messina_core::config::{Config, PoolSize};
use messina_core::drive::{
    Clock, Driver, Endpoint, Link, Session, Steering, Target, Transport, start,
};
use messina_core::error::{Error, LinkErrorKind};
use messina_core::testing::link_contract;
use messina_embassy::{EmbassyTransport, Options, Seed, SocketBuffers, SocketPool};
use messina_sim::node;
use messina_sim::tcp::SimServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const DEVICE: &str = "messina0";
const US: Ipv4Address = Ipv4Address::new(192, 168, 69, 100);
/// The kernel's, one for each node.
const NODES: [Ipv4Address; 3] = [
    Ipv4Address::new(192, 168, 69, 1),
    Ipv4Address::new(192, 168, 69, 2),
    Ipv4Address::new(192, 168, 69, 3),
];
const SHARDS: u16 = 5;
/// The whole of it.
const LIMIT: embassy_time::Duration = embassy_time::Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(10);

type Pool = SocketPool<'static, 17>;

/// All in one, since there is one device. Without a harness, so that a run without a namespace does not
/// count as a test that passed.
fn main() {
    if std::env::var_os("MESSINA_NAMESPACE").is_none() {
        eprintln!("not run: messina-embassy over TAP wants a network namespace of its own");
        return;
    }
    set_up_device();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let config = embassy_net::Config::ipv4_static(StaticConfigV4 {
            address: Ipv4Cidr::new(US, 24),
            gateway: None,
            dns_servers: Default::default(),
        });
        let device = TunTapDevice::new(DEVICE).unwrap();
        let resources = leak(StackResources::<20>::new());
        let mut seed = seed();
        let (stack, mut runner) = embassy_net::new(device, config, resources, seed.next_u64());
        let pool: &Pool = leak(SocketPool::new(
            stack,
            leak(SocketBuffers::<17, 4096, 2048>::new()),
        ));
        let mut options = Options::default();
        options.steering = true;
        let transport = EmbassyTransport::new(pool, &mut seed, options);
        let test = async {
            the_link_contract_holds(transport).await;
            ports_arrive_as_they_were_drawn(transport).await;
            a_closed_port_refuses(transport).await;
            every_shard_of_every_node_has_a_connection(transport, pool, &mut seed).await;
            assert_eq!(pool.free(), 17);
        };
        let test = embassy_time::with_timeout(LIMIT, test);
        match select(runner.run(), test).await {
            Either::First(_) => unreachable!("the stack runs for ever"),
            Either::Second(ended) => ended.expect("it hangs"),
        }
    });
    eprintln!("messina-embassy over TAP: ok");
}

fn set_up_device() {
    let ip = |arguments: &str| {
        let status = Command::new("ip").args(arguments.split(' ')).status();
        assert!(status.unwrap().success(), "ip {arguments}");
    };
    ip("link set lo up");
    ip(&format!("tuntap add dev {DEVICE} mode tap"));
    for node in NODES {
        ip(&format!("addr add {node}/24 dev {DEVICE}"));
    }
    ip(&format!("link set {DEVICE} up"));
}

async fn the_link_contract_holds(transport: EmbassyTransport<'static>) {
    let listener = TcpListener::bind((NODES[0], 0)).await.unwrap();
    let connecting = transport.connect(to(transport, listener.local_addr().unwrap()));
    let (link, accepted) = join(connecting, listener.accept()).await;
    let (link, (mut kernel, peer)) = (link.unwrap(), accepted.unwrap());
    assert_eq!(peer.ip(), IpAddr::V4(US));
    assert_eq!(link.source_port().map(NonZeroU16::get), Some(peer.port()));
    let echo = async {
        let (mut read, mut write) = kernel.split();
        tokio::io::copy(&mut read, &mut write).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let (outcome, ()) = join(link_contract(link), echo).await;
    assert_eq!(outcome, Ok(()));
}

async fn ports_arrive_as_they_were_drawn(transport: EmbassyTransport<'static>) {
    let listener = TcpListener::bind((NODES[1], 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    for shard in (0..SHARDS).rev() {
        let mut target = to(transport, address);
        let of = NonZeroU16::new(SHARDS).unwrap();
        target.steering = Steering::Shard { shard, of };
        let (link, accepted) = join(transport.connect(target), listener.accept()).await;
        let (mut link, (mut kernel, peer)) = (link.unwrap(), accepted.unwrap());
        assert_eq!(peer.port() % SHARDS, shard);
        kernel.write_all(b"hello").await.unwrap();
        let mut read = BytesMut::with_capacity(16);
        poll_fn(|cx| link.poll_read(cx, &mut read)).await.unwrap();
        assert_eq!(read, "hello");
        // Dropped in the middle: the kernel is told.
        drop(link);
        let end = kernel.read(&mut [0; 16]).await;
        assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    }
}

async fn a_closed_port_refuses(transport: EmbassyTransport<'static>) {
    let closed = SocketAddr::from((NODES[2], 1));
    let refused = transport.connect(to(transport, closed)).await;
    assert_eq!(refused.unwrap_err().kind(), LinkErrorKind::Refused);
}

/// What SUPPORTED says of the shard is what the port was drawn for.
async fn every_shard_of_every_node_has_a_connection(
    transport: EmbassyTransport<'static>,
    pool: &Pool,
    seed: &mut Seed,
) {
    let mut options = node::Options::uniform(NODES.len(), SHARDS.into());
    options.base_address = IpAddr::V4(NODES[0]);
    options.port = 0;
    options.shard_aware_port = Some(0);
    let server = SimServer::start(options).await.unwrap();
    let mut config = Config::mcu();
    config.pool.size = PoolSize::PerShard(NonZeroU16::MIN);
    config
        .contact_points
        .push(Endpoint::Addr(server.contacts()[0]));
    let (session, driver) = start(config, transport, seed).unwrap();
    let work = async {
        let outcome = connections(&session).await;
        session.close().await;
        outcome
    };
    let ((), connections) = join(drive(driver), work).await;
    let mut connections = connections.unwrap();
    connections.sort_unstable();
    let expected = (0..NODES.len()).flat_map(|node| (0..SHARDS).map(move |shard| (node, shard)));
    assert!(connections.iter().copied().eq(expected), "{connections:?}");
    let counts = pool.steering();
    assert_eq!(counts.missed, 0);
    // Ports count up, so each shard is among the next five.
    assert!(
        counts.drawn <= u32::from(SHARDS) * counts.wished,
        "{counts:?}"
    );
    server.stop().await;
}

/// Node and shard of each connection, once there is one for each.
async fn connections(session: &Session) -> Result<Vec<(usize, u16)>, Error> {
    session.ready().await?;
    loop {
        let status = session.status();
        let nodes = status.nodes.iter().enumerate();
        let connections: Vec<_> = nodes
            .flat_map(|(node, status)| status.connections.iter().map(move |one| (node, one)))
            .filter_map(|(node, one)| Some((node, one.shard?, one.local_port?)))
            .collect();
        // The first to each node goes to the port that spreads shards by turns.
        let steered = |one: &&(usize, u16, NonZeroU16)| one.2.get() % SHARDS == one.1;
        let others = connections.len() - connections.iter().filter(steered).count();
        assert!(others <= NODES.len(), "{connections:?}");
        let mut shards: Vec<_> = connections.iter().map(|one| (one.0, one.1)).collect();
        shards.sort_unstable();
        shards.dedup();
        if shards.len() == NODES.len() * usize::from(SHARDS) {
            return Ok(shards);
        }
        embassy_time::Timer::after_millis(5).await;
    }
}

/// Runs a session in the task that awaits it.
async fn drive<T: Transport>(mut driver: Driver<T>) {
    let mut connections = Vec::new();
    let mut is_done = false;
    poll_fn(|cx| {
        while !is_done {
            match driver.poll_next(cx) {
                Poll::Ready(Some(connection)) => connections.push(connection),
                Poll::Ready(None) => is_done = true,
                Poll::Pending => break,
            }
        }
        connections.retain_mut(|connection| Pin::new(connection).poll(cx).is_pending());
        match is_done && connections.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

fn to(transport: EmbassyTransport<'_>, address: SocketAddr) -> Target {
    let deadline = transport.clock().now().saturating_add(PATIENCE);
    Target::new(Endpoint::Addr(address), deadline)
}

fn leak<T>(value: T) -> &'static mut T {
    Box::leak(Box::new(value))
}

fn seed() -> Seed {
    let mut last = 0_u8;
    let mut source = |into: &mut [u8]| {
        for byte in into {
            last = last.wrapping_mul(109).wrapping_add(89);
            *byte = last;
        }
        Ok(())
    };
    Seed::from_entropy(&mut source).unwrap()
}
