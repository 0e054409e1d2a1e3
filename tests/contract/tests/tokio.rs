//! The link contract over TCP, and what connecting can meet.

use core::net::SocketAddr;
use core::num::NonZeroU16;

use messina_core::drive::{Clock, Endpoint, Steering, Target, Timer, Transport};
use messina_core::error::LinkErrorKind;
use messina_core::testing::link_contract;
use messina_core::time::Instant;
use messina_tokio::TokioTransport;
use tokio::net::TcpListener;

async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = client.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    addr
}

fn target(addr: SocketAddr) -> Target {
    Target::new(Endpoint::Addr(addr), Instant::FAR_FUTURE)
}

#[tokio::test]
async fn tcp_keeps_the_contract_of_links() {
    let link = TokioTransport::new()
        .connect(target(echo().await))
        .await
        .unwrap();
    link_contract(link).await.unwrap();
}

#[tokio::test]
async fn a_refused_port_is_told_apart() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let error = TokioTransport::new()
        .connect(target(closed))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), LinkErrorKind::Refused);
}

#[tokio::test]
async fn a_source_port_is_taken_or_given() {
    let (transport, addr) = (TokioTransport::new(), echo().await);
    let free = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = NonZeroU16::new(free.local_addr().unwrap().port()).unwrap();
    let mut steered = target(addr);
    steered.steering = Steering::Port(port);
    let error = transport.connect(steered.clone()).await.unwrap_err();
    assert_eq!(
        error.kind(),
        LinkErrorKind::PortInUse,
        "a listener holds it"
    );
    drop(free);
    let link = transport.connect(steered.clone()).await.unwrap();
    assert_eq!(messina_core::drive::Link::source_port(&link), Some(port));
    let error = transport.connect(steered).await.unwrap_err();
    assert_eq!(
        error.kind(),
        LinkErrorKind::PortInUse,
        "the first link holds it"
    );
}

#[tokio::test]
async fn the_timer_keeps_its_contract() {
    let transport = TokioTransport::new();
    let (mut timer, clock) = (transport.timer(), transport.clock());
    let fired = |timer: &mut messina_tokio::TokioTimer| {
        let mut cx = core::task::Context::from_waker(core::task::Waker::noop());
        timer.poll_fired(&mut cx).is_ready()
    };
    assert!(!fired(&mut timer), "not armed");
    timer.arm(Some(Instant::ZERO));
    assert!(fired(&mut timer), "the past fires at once");
    assert!(fired(&mut timer), "and again until re-armed");
    let soon = clock
        .now()
        .saturating_add(core::time::Duration::from_millis(20));
    timer.arm(Some(soon));
    assert!(!fired(&mut timer));
    core::future::poll_fn(|cx| timer.poll_fired(cx)).await;
    assert!(clock.now() >= soon, "never early");
    timer.arm(None);
    assert!(!fired(&mut timer));
}
