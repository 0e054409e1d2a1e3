//! What the image takes, read from the linker's symbols and the painted stack.

use cortex_m_rt::STACK_PAINT_VALUE;

unsafe extern "C" {
    static __vector_table: u32;
    static __erodata: u32;
    static __sdata: u32;
    static __edata: u32;
    static __ebss: u32;
    static _stack_end: u32;
    static _stack_start: u32;
}

/// Bytes of flash: vectors, code, constants, and the initial values of `.data`.
pub fn flash_bytes() -> usize {
    let code = (&raw const __erodata).addr() - (&raw const __vector_table).addr();
    code + (&raw const __edata).addr() - (&raw const __sdata).addr()
}

/// Bytes of static RAM, the heap's arena included.
pub fn static_bytes() -> usize {
    (&raw const __ebss).addr() - (&raw const __sdata).addr()
}

/// Bytes of RAM that are left for the stack.
pub fn stack_bytes() -> usize {
    (&raw const _stack_start).addr() - (&raw const _stack_end).addr()
}

/// How deep the stack ever was: the distance from its top to the first word, seen from the far
/// end, that no longer carries the paint. Interrupt handlers use the same stack.
pub fn stack_peak_bytes() -> usize {
    let top = (&raw const _stack_start).addr();
    let mut word = &raw const _stack_end;
    while word.addr() < top {
        // SAFETY: between the two symbols lies RAM that cortex-m-rt painted at reset. It is also
        // our own stack, hence the volatile read: the compiler must not reason about it.
        if unsafe { word.read_volatile() } != STACK_PAINT_VALUE {
            break;
        }
        word = word.wrapping_add(1);
    }
    top - word.addr()
}
