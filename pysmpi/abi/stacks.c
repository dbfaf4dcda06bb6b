/* Functions that run on another stack, for each processor. */

#include "process.h"

#if defined(__x86_64__)
__asm__(".text\n.globl psm_on_stack\n.hidden psm_on_stack\n.type psm_on_stack,@function\n"
        "psm_on_stack:\n"
        "  push %rbp\n  mov %rsp, %rbp\n  mov %rsp, (%rcx)\n"
        "  mov %rdi, %rsp\n  mov %rdx, %rdi\n  call *%rsi\n"
        "  mov %rbp, %rsp\n  pop %rbp\n  ret\n"
        ".size psm_on_stack,.-psm_on_stack\n"
        ".globl psm_start\n.hidden psm_start\n.type psm_start,@function\n"
        "psm_start:\n"
        "  mov %rdi, %rsp\n  xor %edx, %edx\n  xor %ebp, %ebp\n  jmp *%rsi\n"
        ".size psm_start,.-psm_start\n"
        ".section .note.GNU-stack,\"\",@progbits\n.text\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl psm_on_stack\n.hidden psm_on_stack\n.type psm_on_stack,%function\n"
        "psm_on_stack:\n"
        "  stp x29, x30, [sp, #-16]!\n  mov x29, sp\n  mov x9, sp\n  str x9, [x3]\n"
        "  mov sp, x0\n  mov x0, x2\n  blr x1\n"
        "  mov sp, x29\n  ldp x29, x30, [sp], #16\n  ret\n"
        ".size psm_on_stack,.-psm_on_stack\n"
        ".globl psm_start\n.hidden psm_start\n.type psm_start,%function\n"
        "psm_start:\n"
        "  mov sp, x0\n  mov x0, #0\n  mov x29, #0\n  mov x30, #0\n  br x1\n"
        ".size psm_start,.-psm_start\n.text\n");
#endif
