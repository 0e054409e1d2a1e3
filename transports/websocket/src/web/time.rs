//! `performance.now()` as a clock and `setTimeout` as a timer.

use alloc::rc::Rc;
use core::cell::RefCell;
use core::fmt;
use core::task::{Context, Poll, Waker};

use messina_core::drive::{Clock, Timer};
use messina_core::time::{Instant, UnixMicros};
use wasm_bindgen::prelude::{Closure, JsValue, wasm_bindgen};

#[wasm_bindgen]
extern "C" {
    // Found in pages, workers and servers alike, where `window` is not.
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(handler: &Closure<dyn FnMut()>, millis: f64) -> JsValue;
    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(handle: &JsValue);
}

/// The host's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct WebClock;

impl Clock for WebClock {
    fn now(&self) -> Instant {
        Instant::from_micros(micros(performance_now()))
    }

    fn wall_clock(&self) -> Option<UnixMicros> {
        let micros = micros(js_sys::Date::now());
        i64::try_from(micros).ok().map(UnixMicros)
    }
}

/// Saturates, and takes what is no number as 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "such casts saturate"
)]
fn micros(millis: f64) -> u64 {
    (millis * 1000.0) as u64
}

/// A timer over `setTimeout`, which is asked anew only for an earlier time.
pub struct WebTimer {
    at: Option<Instant>,
    /// When the host calls, and by which handle.
    asked: Option<(Instant, JsValue)>,
    state: Rc<RefCell<State>>,
    handler: Closure<dyn FnMut()>,
}

#[derive(Default)]
struct State {
    waker: Option<Waker>,
    was_called: bool,
}

impl WebTimer {
    pub(super) fn new() -> Self {
        let state = Rc::<RefCell<State>>::default();
        let called = Rc::clone(&state);
        Self {
            at: None,
            asked: None,
            state,
            handler: Closure::new(move || {
                let mut state = called.borrow_mut();
                state.was_called = true;
                let waker = state.waker.take();
                drop(state);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }),
        }
    }

    fn forget(&mut self) {
        if let Some((_, handle)) = self.asked.take() {
            clear_timeout(&handle);
        }
    }
}

impl Timer for WebTimer {
    fn arm(&mut self, at: Option<Instant>) {
        self.at = at;
    }

    fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else {
            return Poll::Pending;
        };
        let now = WebClock.now();
        if at <= now {
            return Poll::Ready(());
        }
        let old = {
            let mut state = self.state.borrow_mut();
            if core::mem::take(&mut state.was_called) {
                self.asked = None;
            }
            state.waker.replace(cx.waker().clone())
        };
        drop(old);
        if self.asked.as_ref().is_none_or(|(asked, _)| *asked > at) {
            self.forget();
            let wait = at.saturating_since(now).min(WAIT_MAX);
            // Two more: what is cut off here, and what hosts may round down.
            let whole = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
            let millis = f64::from(whole.saturating_add(2));
            let handle = set_timeout(&self.handler, millis);
            self.asked = Some((now.saturating_add(wait), handle));
        }
        Poll::Pending
    }
}

impl Drop for WebTimer {
    fn drop(&mut self) {
        self.forget();
    }
}

impl fmt::Debug for WebTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebTimer").field("at", &self.at).finish()
    }
}

/// Longer waits are cut: hosts hold milliseconds in 32 bits.
const WAIT_MAX: core::time::Duration = core::time::Duration::from_secs(3600);
