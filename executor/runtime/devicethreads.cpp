// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/runtime/devicethreads.h"

#include "core/base/diagnostic.h"

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace pipewright {

void onDeviceThreads(std::size_t devices, const std::function<void(std::size_t)>& work,
                     const std::function<void(std::size_t)>& letGo)
{
    std::mutex mutex;
    std::exception_ptr failure; // the first
    const auto keep = [&](std::exception_ptr why) {
        const std::lock_guard lock(mutex);
        failure = failure ? failure : std::move(why);
    };
    {
        std::vector<std::jthread> threads;
        threads.reserve(devices);
        try {
            for (std::size_t device = 0; device < devices; ++device)
                threads.emplace_back([&, device] {
                    try {
                        work(device);
                    } catch (...) {
                        keep(std::current_exception());
                        letGo(device);
                    }
                });
        } catch (const std::exception& error) { // no thread or no memory available
            const std::size_t started = threads.size();
            keep(std::make_exception_ptr(noThread(static_cast<int>(started), error.what())));
            for (std::size_t device = started; device < devices; ++device)
                letGo(device);
        }
    } // all have ended
    if (failure)
        std::rethrow_exception(failure);
}

Error noThread(int device, const std::string& why)
{
    return Error(fmt::format("device {}", device), fmt::format("its thread cannot be started: {}", why),
                 "allow more threads or memory (ulimit -u, ulimit -v), or use fewer devices");
}

} // namespace pipewright
