// SPDX-License-Identifier: GPL-3.0-or-later
// One thread per device, for work in which the devices wait for each other. A device that fails, or whose thread the
// system refuses, must not leave the others waiting: the caller passes a function that releases them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace pipewright {

class Error;

/// Calls work(0) … work(devices - 1), all at once, and returns when every call has. For each device that throws or
/// cannot start, letGo(device) is called, from any thread; it must end the waits of the others. Throws the first
/// exception; for a thread that cannot be started, the Error of noThread().
void onDeviceThreads(std::size_t devices, const std::function<void(std::size_t)>& work,
                     const std::function<void(std::size_t)>& letGo);

/// The error when the system gives a device no thread; `why` is the system's message.
Error noThread(int device, const std::string& why);

} // namespace pipewright
