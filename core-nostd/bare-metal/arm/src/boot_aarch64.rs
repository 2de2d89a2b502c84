//! The path from the processor's first instruction, at exception level 1, to the first Rust
//! function.
//!
//! Without an MMU all memory counts as device memory, in which atomic operations need not work.
//! Therefore one GiB, which contains the machine's memory, is mapped to itself as normal, shareable
//! memory. The loader has cleared `.bss`.

use core::arch::global_asm;

global_asm!(
    r#"
    .section .text.boot, "ax"
    .global entry
entry:
    msr daifset, #0xf
    ldr x0, =vectors
    msr vbar_el1, x0
    mov x0, #(3 << 20)              /* the compiler uses the vector registers freely */
    msr cpacr_el1, x0

    mov x0, #0xff                   /* attribute 0: normal, write-back */
    msr mair_el1, x0
    ldr x0, =0x803519               /* TCR: 39 bits, 4 KiB, cached and inner shareable walks */
    msr tcr_el1, x0
    ldr x0, =page_table
    msr ttbr0_el1, x0
    tlbi vmalle1
    dsb sy
    isb
    mrs x0, sctlr_el1
    mov x1, #0x1005                 /* MMU, data cache, instruction cache */
    orr x0, x0, x1
    msr sctlr_el1, x0
    isb

    ldr x0, =stack_top
    mov sp, x0
    mov x29, xzr
    mov x30, xzr
    bl start

    .balign 2048
vectors:
    .rept 16
    b fault
    .balign 128
    .endr

    .section .rodata.boot, "a"
    .balign 4096
page_table:
    .quad 0
    .quad 0x40000701                /* a block of 1 GiB: accessed, inner shareable, attribute 0 */
    .skip 510 * 8

    .section .bss.boot, "aw", %nobits
    .balign 4096
    .global stack_bottom
    .global stack_top
stack_bottom:
    .skip {stack}
stack_top:
    "#,
    stack = const crate::STACK_BYTES,
);
