// SPDX-License-Identifier: GPL-3.0-or-later
#include "launches.h"

#include "machine.h"

#include <atomic>

namespace standin {

void pushActivity(Stream& stream, Activity activity, std::function<void()> body)
{
    activity.device = static_cast<std::uint32_t>(stream.device);
    activity.context = stream.context;
    activity.stream = stream.number;
    stream.push([activity, body = std::move(body)](const Running& running) {
        Activity seen = activity;
        seen.start = now();
        body();
        seen.end = now();
        seen.correlation = running.correlation;
        seen.graphNode = running.graphNode;
        if (Observer* const seer = observer.load())
            seer->happened(seen);
    });
}

bool launchKernel(Stream& stream, std::string name, std::function<void()> body)
{
    // CUDA C++ Programming Guide, "Stream and Event Behavior": "A kernel launch will fail if it is issued to a stream
    // that is not associated to the current device".
    if (stream.device != currentDevice())
        return false;
    count("kernels");
    if (failsNow("lost"))
        body = [device = stream.device] { lose(device); };
    pushActivity(stream, {.kind = Activity::Kernel, .name = std::move(name)}, std::move(body));
    return true;
}

bool launchByDriver(Stream& stream, std::string name, std::function<void()> body)
{
    const Call call(Domain::Driver, "cuLaunchKernelEx");
    return launchKernel(stream, std::move(name), std::move(body));
}

} // namespace standin
