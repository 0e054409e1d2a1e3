//! What the host gives: the command line, entropy, and an exit code.
//!
//! Semihosting calls are breakpoints that the emulator (or a debug probe) answers. A product gets
//! entropy from its random number generator.

use cortex_m_semihosting::{debug, nr, syscall};

/// Ends the emulator: exit code 0 when all went well, 1 otherwise.
pub fn exit(success: bool) -> ! {
    let status = if success {
        debug::EXIT_SUCCESS
    } else {
        debug::EXIT_FAILURE
    };
    loop {
        debug::exit(status);
    }
}

/// The words given by `arg=` in QEMU's `-semihosting-config`, separated by spaces. Empty when there
/// are none or they do not fit.
pub fn command_line(buffer: &mut [u8]) -> &str {
    #[repr(C)]
    struct Block {
        buffer: *mut u8,
        len: usize,
    }
    let block = Block {
        buffer: buffer.as_mut_ptr(),
        len: buffer.len(),
    };
    // SAFETY: the host writes at most `len` bytes to `buffer` and the length to the block; both live.
    let status = unsafe { syscall(nr::GET_CMDLINE, &block) };
    // SAFETY: the host may have written it behind the compiler's back.
    let len = unsafe { (&raw const block.len).read_volatile() };
    match buffer.get(..len) {
        Some(text) if status == 0 => str::from_utf8(text)
            .unwrap_or_default()
            .trim_end_matches('\0'),
        _ => "",
    }
}

/// Eight bytes of the host's own generator, where the host has such a file.
pub fn entropy() -> Option<u64> {
    let mut bytes = [0; 8];
    let len = read_file("/dev/urandom", &mut bytes)?;
    (len == bytes.len()).then_some(u64::from_le_bytes(bytes))
}

/// Reads a file of the host from its beginning, as much as there is room for, and tells how much
/// that was. A product has such things in flash.
pub fn read_file(path: &str, into: &mut [u8]) -> Option<usize> {
    let mut name = [0; 128];
    // One byte is left for the zero at the end.
    name.get_mut(..path.len())?.copy_from_slice(path.as_bytes());
    if *name.last()? != 0 {
        return None;
    }
    // SAFETY: path, mode and length without the terminator, as the call wants them.
    let file = unsafe {
        syscall(
            nr::OPEN,
            &[name.as_ptr().addr(), nr::open::R_BINARY, path.len()],
        )
    };
    if file == usize::MAX {
        return None;
    }
    let room = into.len();
    // SAFETY: handle, buffer and its length; the host writes at most `room` bytes to it.
    let missing = unsafe { syscall(nr::READ, &[file, into.as_mut_ptr().addr(), room]) };
    // SAFETY: the handle is ours and used no more.
    unsafe { syscall(nr::CLOSE, &[file]) };
    // The host wrote behind the compiler's back, which must not keep older contents.
    core::hint::black_box(into);
    room.checked_sub(missing)
}
