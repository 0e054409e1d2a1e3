//! Copies of bytes, for processors that read and write words at any address.
//!
//! The one that comes with the compiler is for processors that cannot: where source and destination do not
//! lie alike in their words it takes four instructions for each byte, and so would every answer on its way
//! out of the network stack. This one takes five for eight bytes, and less flash.

use core::arch::global_asm;

// r0: destination, which is also the result; r1: source; r2: length. Sixteen bytes at a time, then what the
// lower four bits of the length tell.
global_asm!(
    ".syntax unified",
    ".thumb",
    ".pushsection .text.memcpy, \"ax\", %progbits",
    ".p2align 2",
    ".global memcpy, __aeabi_memcpy, __aeabi_memcpy4, __aeabi_memcpy8",
    ".type memcpy, %function",
    ".type __aeabi_memcpy, %function",
    ".type __aeabi_memcpy4, %function",
    ".type __aeabi_memcpy8, %function",
    ".thumb_func",
    "memcpy:",
    ".thumb_func",
    "__aeabi_memcpy:",
    ".thumb_func",
    "__aeabi_memcpy4:",
    ".thumb_func",
    "__aeabi_memcpy8:",
    "push {{r4, lr}}",
    "mov r12, r0",
    "b 2f",
    "1:",
    "ldr r3, [r1], #4",
    "ldr r4, [r1], #4",
    "str r3, [r12], #4",
    "str r4, [r12], #4",
    "ldr r3, [r1], #4",
    "ldr r4, [r1], #4",
    "str r3, [r12], #4",
    "str r4, [r12], #4",
    "2:",
    "subs r2, #16",
    "bhs 1b",
    // Bits 3 and 2 into carry and sign, then bits 1 and 0.
    "lsls r3, r2, #29",
    "itttt cs",
    "ldrcs r3, [r1], #4",
    "ldrcs r4, [r1], #4",
    "strcs r3, [r12], #4",
    "strcs r4, [r12], #4",
    "itt mi",
    "ldrmi r3, [r1], #4",
    "strmi r3, [r12], #4",
    "lsls r3, r2, #31",
    "itt cs",
    "ldrhcs r4, [r1], #2",
    "strhcs r4, [r12], #2",
    "itt mi",
    "ldrbmi r4, [r1]",
    "strbmi r4, [r12]",
    "pop {{r4, pc}}",
    ".popsection",
);
