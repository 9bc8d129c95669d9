// SPDX-License-Identifier: GPL-3.0-or-later
// This file is compiled without the thread sanitizer and calls its interface explicitly (STANDIN_TSAN).
#include "fibre.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define STANDIN_ASAN
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define STANDIN_ASAN
#endif
#ifdef STANDIN_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef STANDIN_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__) && !defined(STANDIN_UCONTEXT)
// ucontext makes a system call for the signal mask at every switch, which takes 20 times as long as the switch itself,
// so x86-64 has its own switch. It saves the callee-saved registers (System V ABI for x86-64, 3.2.1).
#define STANDIN_BY_HAND
extern "C" void standinSwitchStacks(void** from, void* to);
asm(R"(
.text
.globl standinSwitchStacks
.hidden standinSwitchStacks
.type standinSwitchStacks, @function
standinSwitchStacks:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size standinSwitchStacks, .-standinSwitchStacks
)");
#endif

namespace standin {

namespace {

constexpr std::size_t stackBytes = 256 << 10;

/// Offset of a stack's begin from its end. If all stacks began at the same offset of a page, they would map to the same
/// sets of the processor's cache, which holds only a few lines per set.
std::size_t nextOffset()
{
    constexpr std::size_t line = 64, lines = 64; // of a page
    static std::atomic<std::size_t> made = 0;
    return made++ % lines * line;
}

/// The lowest page is a guard page: an overflow ends the program.
std::byte* newStack()
{
    void* stack = mmap(nullptr, stackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, std::size_t(sysconf(_SC_PAGESIZE)), PROT_NONE) != 0) {
        std::perror("stand-in GPU: no memory for the stack of a GPU thread");
        std::abort();
    }
    return static_cast<std::byte*>(stack);
}

} // namespace

struct Fibre::Inner {
    std::byte* stack = nullptr; ///< null: the thread's own
#ifdef STANDIN_BY_HAND
    void* top = nullptr;
#else
    ucontext_t context{};
#endif
#ifdef STANDIN_ASAN
    void* fake = nullptr;
    const void* bottom = nullptr;
    std::size_t size = 0;
#endif
#ifdef STANDIN_TSAN
    void* watched = nullptr;
#endif
    void (*begin)() = nullptr;

    static void enter();
    void arrived();
};

namespace {
thread_local Fibre::Inner* s_running = nullptr;
thread_local Fibre::Inner* s_left = nullptr;
} // namespace

/// Called first after every switch.
void Fibre::Inner::arrived()
{
#ifdef STANDIN_ASAN
    const void* bottom = nullptr;
    std::size_t size = 0;
    __sanitizer_finish_switch_fiber(fake, &bottom, &size);
    if (!s_left->stack) { // only now the bounds of the thread's own stack are known
        s_left->bottom = bottom;
        s_left->size = size;
    }
#endif
}

void Fibre::Inner::enter()
{
    s_running->arrived();
    s_running->begin();
    std::abort(); // begin() must not return
}

Fibre::Fibre() : m_inner(std::make_unique<Inner>())
{
#ifdef STANDIN_TSAN
    m_inner->watched = __tsan_get_current_fiber();
#endif
}

Fibre::Fibre(void (*begin)()) : m_inner(std::make_unique<Inner>())
{
    m_inner->stack = newStack();
    const std::size_t used = stackBytes - nextOffset();
    m_inner->begin = begin;
#ifdef STANDIN_BY_HAND
    // The stack as standinSwitchStacks leaves it: six registers and a return address, with a null return address above.
    // On entry a function expects its stack pointer 8 bytes off a multiple of 16.
    auto** top = reinterpret_cast<void**>(m_inner->stack + used) - 1;
    *top = nullptr;
    *--top = reinterpret_cast<void*>(&Inner::enter);
    for (int i = 0; i < 6; ++i)
        *--top = nullptr;
    m_inner->top = top;
#else
    getcontext(&m_inner->context);
    m_inner->context.uc_stack = {m_inner->stack, 0, used};
    makecontext(&m_inner->context, &Inner::enter, 0);
#endif
#ifdef STANDIN_ASAN
    m_inner->bottom = m_inner->stack;
    m_inner->size = stackBytes;
#endif
#ifdef STANDIN_TSAN
    m_inner->watched = __tsan_create_fiber(0);
#endif
}

Fibre::~Fibre()
{
    if (!m_inner->stack)
        return;
#ifdef STANDIN_TSAN
    __tsan_destroy_fiber(m_inner->watched);
#endif
    munmap(m_inner->stack, stackBytes);
}

void Fibre::switchFrom(Fibre& from)
{
    Inner *left = from.m_inner.get(), *next = m_inner.get();
    s_left = left;
    s_running = next;
#ifdef STANDIN_ASAN
    __sanitizer_start_switch_fiber(&left->fake, next->bottom, next->size);
#endif
#ifdef STANDIN_TSAN
    __tsan_switch_to_fiber(next->watched, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef STANDIN_BY_HAND
    standinSwitchStacks(&left->top, next->top);
#else
    swapcontext(&left->context, &next->context);
#endif
    left->arrived();
}

#ifdef STANDIN_TSAN
void orderBefore(void* place)
{
    __tsan_release(place);
}

void orderAfter(void* place)
{
    __tsan_acquire(place);
}
#endif

} // namespace standin
