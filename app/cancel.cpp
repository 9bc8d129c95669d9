// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cancel.h"

#include <csignal>

namespace pipewright::app {

namespace {

// A signal handler can only reach objects of static lifetime.
std::atomic<bool> cancelRequested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void requestCancel(int)
{
    cancelRequested.store(true);
}

} // namespace

const std::atomic<bool>* cancelOnSignals()
{
    struct sigaction action {};
    action.sa_handler = requestCancel;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    return &cancelRequested;
}

} // namespace pipewright::app
