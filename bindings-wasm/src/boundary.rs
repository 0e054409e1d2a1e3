//! The exports, the allocator and the panic handler. The only file with unsafe code, and only on
//! WASM: exporting a symbol is unsafe by rule, and a global needs `Sync`.
//!
//! Memory is shared without pointers in Rust's hands: `input` says where the shell may write before
//! its next call, `outputs` and `panic_message` say where it may read until then.
#![expect(
    unsafe_code,
    reason = "exported symbols and one global without threads"
)]

use core::cell::RefCell;
use core::fmt::Write;
use core::panic::PanicInfo;

use crate::instance::Instance;
use crate::options::RunOptions;

#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

static INSTANCE: OneThread<Option<Instance>> = OneThread(RefCell::new(None));

static PANIC: OneThread<PanicText> = OneThread(RefCell::new(PanicText {
    len: 0,
    text: [0; PANIC_TEXT_MAX],
}));

/// A global of a module that has one thread.
struct OneThread<T>(RefCell<T>);

// SAFETY: built without the `atomics` target feature (checked below), a WebAssembly instance cannot
// share its memory with another thread, so no two threads ever see this value.
unsafe impl<T> Sync for OneThread<T> {}

#[cfg(target_feature = "atomics")]
compile_error!("the module's globals are for one thread");

/// The text of a panic, in memory that no allocation can deny.
#[repr(C)]
struct PanicText {
    len: u32,
    text: [u8; PANIC_TEXT_MAX],
}

const PANIC_TEXT_MAX: usize = 508;

impl Write for PanicText {
    fn write_str(&mut self, part: &str) -> core::fmt::Result {
        for byte in part.bytes() {
            let Some(place) = self.text.get_mut(self.len as usize) else {
                break;
            };
            *place = byte;
            self.len += 1;
        }
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    if let Ok(mut panic) = PANIC.0.try_borrow_mut() {
        panic.len = 0;
        let _ = write!(panic, "{info}");
    }
    core::arch::wasm32::unreachable()
}

fn with<R>(action: impl FnOnce(&mut Instance) -> R) -> R {
    let mut instance = INSTANCE.0.borrow_mut();
    action(instance.get_or_insert_with(Instance::new))
}

/// Where the text of the panic stands, its length in front as a word.
// SAFETY (here and below): the names are the module's own; nothing else exports them.
#[unsafe(no_mangle)]
extern "C" fn panic_message() -> usize {
    let panic = PANIC.0.as_ptr();
    panic.expose_provenance()
}

/// Room for at least `len` bytes, in which what was written stays. It is there until the next call
/// of this, or until a call that reads more than 64 KiB from it.
#[unsafe(no_mangle)]
extern "C" fn input(len: usize) -> usize {
    with(|instance| instance.input(len).as_mut_ptr().expose_provenance())
}

/// Room for `len` bytes that came from a link, which the next call of `feed` takes.
#[unsafe(no_mangle)]
extern "C" fn incoming(len: usize) -> usize {
    with(|instance| instance.incoming(len).as_mut_ptr().expose_provenance())
}

#[unsafe(no_mangle)]
extern "C" fn tick(now: f64, wall: f64) {
    with(|instance| instance.tick(now, wall));
}

#[unsafe(no_mangle)]
extern "C" fn start(len: usize, seed_low: u32, seed_high: u32) -> u32 {
    with(|instance| instance.start(len, (u64::from(seed_high) << 32) | u64::from(seed_low)))
}

#[unsafe(no_mangle)]
extern "C" fn prepare(len: usize) -> u32 {
    with(|instance| instance.prepare(len))
}

#[unsafe(no_mangle)]
extern "C" fn query(
    len: usize,
    timeout: u32,
    page_size: u32,
    flags: u32,
    paging_len: usize,
) -> u32 {
    let options = options(timeout, page_size, flags, paging_len);
    with(|instance| instance.query(len, options))
}

#[unsafe(no_mangle)]
extern "C" fn execute(
    len: usize,
    statement: u32,
    count: u32,
    timeout: u32,
    page_size: u32,
    flags: u32,
    paging_len: usize,
) -> u32 {
    let options = options(timeout, page_size, flags, paging_len);
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    with(|instance| instance.execute(len, statement, count, options))
}

#[unsafe(no_mangle)]
extern "C" fn batch(
    len: usize,
    kind: u32,
    timeout: u32,
    page_size: u32,
    flags: u32,
    paging_len: usize,
) -> u32 {
    let options = options(timeout, page_size, flags, paging_len);
    with(|instance| instance.batch(len, kind, options))
}

#[unsafe(no_mangle)]
extern "C" fn release(statement: u32) {
    with(|instance| instance.release(statement));
}

#[unsafe(no_mangle)]
extern "C" fn cancel(request: u32) {
    with(|instance| instance.cancel(request));
}

#[unsafe(no_mangle)]
extern "C" fn close() -> u32 {
    with(Instance::close)
}

#[unsafe(no_mangle)]
extern "C" fn feed(link: u32) {
    with(|instance| instance.feed(link));
}

#[unsafe(no_mangle)]
extern "C" fn link_opened(link: u32) {
    with(|instance| instance.handle_opened(link));
}

#[unsafe(no_mangle)]
extern "C" fn link_failed(link: u32, reason: usize) {
    with(|instance| instance.handle_failed(link, reason));
}

#[unsafe(no_mangle)]
extern "C" fn link_closed(link: u32) {
    with(|instance| instance.handle_closed(link));
}

/// 1 if somebody waited for that.
#[unsafe(no_mangle)]
extern "C" fn link_sent(link: u32, len: usize) -> u32 {
    with(|instance| u32::from(instance.handle_sent(link, len)))
}

/// Where the outputs stand; `outputs_len` bytes.
#[unsafe(no_mangle)]
extern "C" fn outputs() -> usize {
    with(|instance| instance.outputs().as_ptr().expose_provenance())
}

/// Where the bytes for a later session stand; `outputs_len` bytes.
#[unsafe(no_mangle)]
extern "C" fn warm_start(len_max: usize) -> usize {
    with(|instance| instance.warm_start(len_max).as_ptr().expose_provenance())
}

/// Where the picture of the cluster stands; `outputs_len` bytes.
#[unsafe(no_mangle)]
extern "C" fn cluster(tablets_max: usize) -> usize {
    with(|instance| instance.cluster(tablets_max).as_ptr().expose_provenance())
}

/// The length of what `outputs`, `warm_start` or `cluster` told last.
#[unsafe(no_mangle)]
extern "C" fn outputs_len() -> usize {
    with(|instance| instance.outputs_len())
}

fn options(timeout: u32, page_size: u32, flags: u32, paging_len: usize) -> RunOptions {
    RunOptions {
        timeout,
        page_size,
        flags,
        paging_len,
    }
}
