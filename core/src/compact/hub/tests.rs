//! Windows lent and given back.

use super::*;
use crate::config::Config;
use alloc::sync::Arc;
use alloc::task::Wake;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

struct Still;

impl Clock for Still {
    fn now(&self) -> Instant {
        Instant::ZERO
    }
}

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_reader_wakes_the_runner_once_for_room_that_was_wanted() {
    let clock: Local<dyn Clock> = Local::new(Still);
    let hub = Hub::new(clock, Config::mcu(), 1, SteeringKind::None, Security::Plain);
    let ticket = hub.with(|state| state.desk.seat(3, true));
    let ticket = ticket.expect("no panic").expect("a seat");
    let woken = Arc::new(Count::default());
    let wakes = || {
        // It leaves its waker again with each poll.
        let waker = Waker::from(Arc::clone(&woken));
        hub.with(|state| state.runner = Some(waker));
        woken.0.load(Relaxed)
    };
    let lend = || hub.with(|state| state.desk.lend_window(3)).flatten();
    let mut cx = Context::from_waker(Waker::noop());
    let mut window = BytesMut::with_capacity(8);

    assert_eq!(wakes(), 0);
    for _ in 0..3 {
        assert!(hub.poll_flow(ticket, &mut window, &mut cx).is_pending());
        assert_eq!((wakes(), window.capacity()), (0, 0));
    }
    let mut lent = lend().expect("it waits");
    assert!(lent.capacity() >= 8);
    lent.extend_from_slice(b"row");
    let reader = hub.with(|state| state.desk.return_window(3, lent, true, false));
    assert!(reader.flatten().is_some() && lend().is_none());
    let next = hub.poll_flow(ticket, &mut window, &mut cx);
    assert!(matches!(next, Poll::Ready(Ok(Next::Filled))));
    assert_eq!((wakes(), &window[..], lend()), (0, &b"row"[..], None));
    for _ in 0..3 {
        assert!(hub.poll_flow(ticket, &mut window, &mut cx).is_pending());
        assert_eq!(wakes(), 1);
    }
    let lent = lend().expect("it waits again");
    hub.with(|state| state.desk.return_window(3, lent, false, true));
    assert_eq!(
        hub.cancel(ticket).expect("the window").as_ref(),
        b"row".as_slice()
    );
    assert!(lend().is_none());
}
