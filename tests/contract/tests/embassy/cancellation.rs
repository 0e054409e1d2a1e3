//! Whatever waits can be dropped at any moment: each operation is polled k times and dropped, for
//! every k until it ends by itself. Afterwards all sockets are back, no byte is lost or doubled, and
//! the next connection works.

use super::*;

/// Polls after which every operation here is cut short. How many it takes to its end is a matter of
/// time: whatever else goes on wakes it too.
const POLLS_MAX: u32 = 400;

/// More than any operation takes.
const TO_ITS_END: u32 = 1 << 30;

/// Polls `operation` at most `polls` times; `None` if it has not ended by then.
pub(crate) async fn cut_short<F: Future>(operation: F, polls: u32) -> Option<F::Output> {
    let mut operation = Box::pin(operation);
    let mut left = polls;
    poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match operation.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Cuts an operation short after every number of polls until one run ends by itself. Gives how many
/// polls that took.
pub(crate) async fn at_every_poll(mut run: impl AsyncFnMut(u32) -> bool) -> u32 {
    for polls in 0..POLLS_MAX {
        if run(polls).await {
            return polls;
        }
    }
    assert!(run(TO_ITS_END).await, "it never ends");
    POLLS_MAX
}

/// A whole exchange.
async fn exchange(rig: Rig, transport: &EmbassyTransport<'static>) {
    let (mut link, mut far) = pair(rig, transport).await;
    let (sent, ()) = join(
        async {
            write_all(&mut link, b"whole").await?;
            let read = read(&mut link, 64).await?;
            close(&mut link).await?;
            Ok::<_, LinkError>(read)
        },
        echo(&mut far),
    )
    .await;
    assert_eq!(sent.unwrap(), "whole");
}

#[test]
fn a_connect_may_be_dropped_after_any_poll() {
    on_cable(async |rig| {
        let mut options = Options::default();
        options.steering = true;
        let (transport, pool) = transport(rig.near, options);
        let polls = at_every_poll(async |polls| {
            let mut far = far_socket(rig);
            let mut target = target(&transport, FAR, PORT, PATIENCE);
            let of = NonZeroU16::new(3).unwrap();
            target.steering = Steering::Shard { shard: 1, of };
            let connected = join(
                cut_short(transport.connect(target), polls),
                // Its own end may come before or after ours.
                cut_short(far.accept(PORT), polls + 3),
            );
            let (connected, _) = connected.await;
            let has_ended = connected.map(Result::unwrap).is_some();
            assert_eq!(pool.free(), 2, "after {polls} polls");
            drop(far);
            exchange(rig, &transport).await;
            has_ended
        })
        .await;
        assert!(polls > 2, "nothing was cut short");
    });
}

#[test]
fn a_look_up_may_be_dropped_after_any_poll() {
    on_cable(async |rig| {
        let mut options = Options::default();
        options.resolve_timeout = Duration::from_millis(50);
        let (transport, pool) = transport(rig.near, options);
        let by_name = || Endpoint::Name {
            host: Name::from("silent.test"),
            port: PORT,
        };
        // More look-ups than the stack has room for at once: all that were dropped have left it.
        for _ in 0..3 {
            let polls = at_every_poll(async |polls| {
                let resolved = transport.resolve(&Name::from("silent.test"));
                let resolved = cut_short(resolved, polls).await;
                let deadline = transport.clock().now().saturating_add(PATIENCE);
                let connecting = transport.connect(Target::new(by_name(), deadline));
                let connected = cut_short(connecting, polls).await;
                assert_eq!(pool.free(), 2, "after {polls} polls");
                resolved.is_some() && connected.is_some()
            })
            .await;
            assert!(polls > 1, "nothing was cut short");
        }
        exchange(rig, &transport).await;
    });
}

#[test]
fn reads_and_writes_may_be_dropped_after_any_poll() {
    on_cable(async |rig| {
        let (transport, _) = transport(rig.near, Options::default());
        let (mut link, mut far) = pair(rig, &transport).await;
        let test = async {
            let (mut sent, mut received) = (0, 0);
            // Always more on the way than is read, so that both directions wait at times.
            for round in 0..3_000_u32 {
                let bytes: Vec<u8> = (sent..sent + 400).map(byte_at).collect();
                let write = poll_fn(|cx| link.poll_write(cx, &bytes));
                if let Some(written) = cut_short(write, round % 3).await {
                    sent += written.unwrap();
                }
                let mut into = BytesMut::with_capacity(1 + round as usize % 300);
                let read = poll_fn(|cx| link.poll_read(cx, &mut into));
                if let Some(read) = cut_short(read, round / 3 % 3).await {
                    assert_eq!(read.unwrap(), into.len());
                }
                for byte in &into {
                    assert_eq!(*byte, byte_at(received), "byte {received}");
                    received += 1;
                }
            }
            while received < sent {
                for byte in read(&mut link, 999).await.unwrap() {
                    assert_eq!(byte, byte_at(received), "byte {received}");
                    received += 1;
                }
            }
            assert!(sent > 10_000, "only {sent} bytes");
            close(&mut link).await.unwrap();
        };
        join(test, echo(&mut far)).await;
    });
}

#[test]
fn a_close_may_be_dropped_after_any_poll() {
    on_cable(async |rig| {
        let (transport, pool) = transport(rig.near, Options::default());
        let polls = at_every_poll(async |polls| {
            let (mut link, mut far) = pair(rig, &transport).await;
            write_all(&mut link, b"last words").await.unwrap();
            let closed = cut_short(close(&mut link), polls).await;
            drop(link);
            assert_eq!(pool.free(), 2, "after {polls} polls");
            let mut words = [0; 16];
            match far.read(&mut words).await {
                Ok(len) => assert_eq!(words[..len], b"last words"[..len]),
                Err(TcpError::ConnectionReset) => assert!(closed.is_none()),
            }
            drop(far);
            exchange(rig, &transport).await;
            closed.map(Result::unwrap).is_some()
        })
        .await;
        assert!(polls > 1, "nothing was cut short");
    });
}
