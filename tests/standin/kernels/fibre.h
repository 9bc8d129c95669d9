// SPDX-License-Identifier: GPL-3.0-or-later
// A fibre: a separate stack on the same thread, switched explicitly. The sanitizers are told of every switch, so that
// the address sanitizer knows the stacks and the thread sanitizer treats each fibre as a thread. For the thread
// sanitizer a switch creates no ordering: only orderBefore and orderAfter do, as a barrier does on a GPU.
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

    /// Switches from the running fibre, `from`, to this one; returns when `from` is switched to again.
    void switchFrom(Fibre& from);

    struct Inner;

private:
    std::unique_ptr<Inner> m_inner;
};

// STANDIN_TSAN is defined for all files of an engine that the thread sanitizer is told of.
/// Whether each GPU thread must have a fibre of its own, since the thread sanitizer checks their order.
#ifdef STANDIN_TSAN
constexpr bool fibresAreWatched = true;
/// Everything that the running fibre did so far happens before anything that a fibre does after a later orderAfter with
/// the same place.
void orderBefore(void* place);
void orderAfter(void* place);
#else
constexpr bool fibresAreWatched = false;
inline void orderBefore(void*) {}
inline void orderAfter(void*) {}
#endif

} // namespace standin
