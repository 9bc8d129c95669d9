// SPDX-License-Identifier: GPL-3.0-or-later
// OpenBLAS computes on the threads that call it (kernels/host/gemm.h), but its library starts a thread per processor
// before main(). Each of them tries for ever to get 128 MiB of address space (blas_memory_alloc, 0.3.21), and a fork
// waits for it; where a thread cannot be started, the library interrupts the process. So, before libraries are
// initialised, this file says in the environment that one thread is enough. In an empty environment there is no place
// for that, and the threads are started.
#pragma once

namespace pipewright::app {

/// Puts the environment back as it was given, for the programs that this one starts. At the start of main().
void restoreEnvironment();

} // namespace pipewright::app
