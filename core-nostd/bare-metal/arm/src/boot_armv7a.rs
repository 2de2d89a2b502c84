//! The path from the processor's first instruction, in supervisor mode, to the first Rust function.
//!
//! Without an MMU all memory is strongly ordered, and atomic operations need not work in it.
//! Therefore the machine's 128 MiB of memory are mapped to themselves as normal, shareable memory.
//! The loader has cleared `.bss`.

use core::arch::global_asm;

global_asm!(
    r#"
    .section .text.boot, "ax"
    .arm
    .global entry
entry:
    cpsid aif
    ldr r0, =vectors
    mcr p15, 0, r0, c12, c0, 0      /* VBAR */

    /* 128 sections of 1 MiB from 1 GiB on: write-back, shareable, readable and writable. */
    ldr r0, =page_table + 0x400 * 4
    ldr r1, =0x40011c0e
    mov r2, #128
1:  str r1, [r0], #4
    add r1, r1, #0x100000
    subs r2, r2, #1
    bne 1b

    ldr r0, =page_table
    mcr p15, 0, r0, c2, c0, 0       /* TTBR0 */
    mov r0, #0
    mcr p15, 0, r0, c2, c0, 2       /* TTBCR: one table for all */
    mcr p15, 0, r0, c8, c7, 0       /* forget old translations */
    mov r0, #1
    mcr p15, 0, r0, c3, c0, 0       /* DACR: domain 0 obeys the table */
    dsb
    isb
    mrc p15, 0, r0, c1, c0, 0
    ldr r1, =0x1005                 /* MMU, data cache, instruction cache */
    orr r0, r0, r1
    mcr p15, 0, r0, c1, c0, 0
    isb

    ldr sp, =stack_top
    mov r11, #0
    bl start

    .balign 32
vectors:
    .rept 8
    b fault_at_last
    .endr
fault_at_last:
    ldr sp, =stack_top              /* other modes have stacks of their own; this is the end */
    b fault
    .ltorg

    .section .bss.boot, "aw", %nobits
    .balign 16384
page_table:
    .skip 16384
    .global stack_bottom
    .global stack_top
stack_bottom:
    .skip {stack}
stack_top:
    "#,
    stack = const crate::STACK_BYTES,
);
