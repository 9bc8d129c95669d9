// SPDX-License-Identifier: GPL-3.0-or-later
// What a run can give up: links, sums, communicators and the stages' maths have work in flight that waits for other
// devices. Ending it takes two steps, since a thread may be stuck in a call that only the first step brings back, and
// what that call uses may be freed only after the second. Backend::giveUp() takes them for all together: one that was
// ended and freed alone could wait for the work of another that still spins.
#pragma once

namespace pipewright {

class Abortable {
public:
    virtual ~Abortable() = default;
    /// From any thread: ends what is in flight. Waits for no other thread. Nothing else can be started afterwards.
    virtual void abort() {}
    /// After abort(): returns when no thread is still in a call that was ended.
    virtual void awaitCalls() {}
};

} // namespace pipewright
