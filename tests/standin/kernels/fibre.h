// SPDX-License-Identifier: GPL-3.0-or-later
// A fibre: a stack of its own on the same thread, switched to and from by hand. The sanitizers are told of every
// switch, so that the address sanitizer knows the stacks and the thread sanitizer takes each fibre for a thread.
// Switching orders nothing in its eyes: only orderBefore and orderAfter do, as a barrier does on a GPU.
#pragma once

#include <cstddef>
#include <memory>

namespace standin {

class Fibre {
public:
    Fibre();                    ///< the calling thread itself
    explicit Fibre(void (*)()); ///< begins at the first switch; must not return
    ~Fibre();
    Fibre(const Fibre&) = delete;
    Fibre& operator=(const Fibre&) = delete;

    /// Leaves the running fibre, `from`, for this one; returns when somebody comes back to `from`.
    void switchFrom(Fibre& from);

    struct Inner;

private:
    std::unique_ptr<Inner> m_inner;
};

/// Whether each GPU thread must have a fibre of its own, since somebody watches their order.
bool fibresAreWatched();
/// What the running fibre did until now comes before what fibres do that call orderAfter with the same place later.
void orderBefore(void* place);
void orderAfter(void* place);

} // namespace standin
