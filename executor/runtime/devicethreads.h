// SPDX-License-Identifier: GPL-3.0-or-later
// One thread per device, for work in which the devices wait for each other. A device that fails, or whose thread the
// system refuses, must not leave the others waiting: whoever uses this says how they are let go.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace pipewright {

class Error;

/// Calls work(0) … work(devices - 1), all at once, and returns when every call has. letGo(device), which is called from
/// any thread for each device that throws or cannot start, ends what the others wait for. Throws what the first one
/// threw; a thread that cannot be started is an Error as of noThread().
void onDeviceThreads(std::size_t devices, const std::function<void(std::size_t)>& work,
                     const std::function<void(std::size_t)>& letGo);

/// What is said when the system gives a device no thread; `why` is its own word.
Error noThread(int device, const std::string& why);

} // namespace pipewright
