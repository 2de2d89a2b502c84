//! The path from QEMU's PVH entry to the first Rust function.
//!
//! PVH starts the image in 32-bit protected mode, with flat segments and without paging. The loader
//! has cleared `.bss`. Rust code needs more: 64-bit mode, and therefore page tables (the first GiB
//! is mapped to itself); SSE, because the compiler uses its registers freely; and a stack.

use core::arch::global_asm;

global_asm!(
    r#"
    .section .note.pvh, "a", @note
    .balign 4
    .long 4                         /* length of the name */
    .long 8                         /* length of the entry's address */
    .long 18                        /* XEN_ELFNOTE_PHYS32_ENTRY */
    .asciz "Xen"
    .quad pvh_start

    .section .text.boot, "ax"
    .code32
    .global pvh_start
pvh_start:
    cli
    cld

    /* One table of each upper level, and 512 pages of 2 MiB: present, writable. */
    movl $page_directory_pointers + 3, page_map
    movl $page_directory + 3, page_directory_pointers
    xorl %ecx, %ecx
1:  movl %ecx, %eax
    shll $21, %eax
    orl $0x83, %eax
    movl %eax, page_directory(, %ecx, 8)
    incl %ecx
    cmpl $512, %ecx
    jne 1b
    movl $page_map, %eax
    movl %eax, %cr3

    /* CR4: PAE, OSFXSR and OSXMMEXCPT, the last two for SSE. */
    movl %cr4, %eax
    orl $0x620, %eax
    movl %eax, %cr4

    /* EFER: long mode. */
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x100, %eax
    wrmsr

    /* CR0: no emulation of the FPU; paging, write protection, FPU present, protected mode. */
    movl %cr0, %eax
    andl $~0x4, %eax
    orl $0x80010003, %eax
    movl %eax, %cr0

    lgdt segments_pointer
    ljmp $8, $long_mode

    .code64
long_mode:
    movw $16, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movl $stack_top, %esp
    xorl %ebp, %ebp
    call start
2:  hlt
    jmp 2b

    .section .rodata.boot, "a"
    .balign 8
segments:
    .quad 0
    .quad 0x00af9b000000ffff        /* 64-bit code */
    .quad 0x00cf93000000ffff        /* data */
segments_pointer:
    .word . - segments - 1
    .long segments

    .section .bss.boot, "aw", @nobits
    .balign 4096
page_map:
    .skip 4096
page_directory_pointers:
    .skip 4096
page_directory:
    .skip 4096
    .global stack_bottom
    .global stack_top
stack_bottom:
    .skip {stack}
stack_top:
    "#,
    stack = const crate::STACK_BYTES,
    options(att_syntax)
);
