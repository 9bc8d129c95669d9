// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/machine/machinemeasure.h"

#include "core/base/diagnostic.h"
#include "core/base/median.h"
#include "executor/host/hostbackend.h"
#include "executor/runtime/clock.h"
#include "kernels/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace pipewright {

namespace {

std::span<float> floatsOf(const Allocation& memory)
{
    const Region region = memory.region();
    return {reinterpret_cast<float*>(region.data), static_cast<std::size_t>(region.bytes) / sizeof(float)};
}

double perSecond(double amount, Nanoseconds time)
{
    return time > 0 ? amount / static_cast<double>(time) * 1e9 : 0;
}

class Measuring {
public:
    Measuring(Backend& backend, const MachineMeasureOptions& options) : m_backend(backend), m_options(options) {}

    MachineMeasurement run()
    {
        const int count = m_backend.devices();
        MachineMeasurement result;
        m_steps = count + 2 + count * (count - 1) / 2 + 1;
        std::map<int, int> sharers; // of a pool of memory
        for (int d = 0; d < count; ++d)
            ++sharers[m_backend.device(d).memory().number];
        for (int d = 0; d < count; ++d) {
            MachineMeasurement::Device& device = result.devices.emplace_back();
            device.name = m_backend.device(d).name();
            const Device::Pool pool = m_backend.device(d).memory();
            device.memory = pool.bytes / sharers[pool.number];
            step(fmt::format("products on {} alone", device.name));
            onThreads({d}, [&](int, auto& together) { device.alone = productRate(d, together); });
        }
        std::vector<int> all;
        for (int d = 0; d < count; ++d)
            all.push_back(d);
        step("products on all devices together");
        onThreads(all, [&](int d, auto& together) {
            result.devices[static_cast<std::size_t>(d)].together = productRate(d, together);
        });
        step("copies on all devices together");
        onThreads(all, [&](int d, auto& together) {
            result.devices[static_cast<std::size_t>(d)].copying = copyRate(d, together);
        });
        for (int a = 0; a < count; ++a)
            for (int b = a + 1; b < count; ++b) {
                step(fmt::format("messages between device {} and device {}", a, b));
                const Nanoseconds small = messages({{a, b}}, m_options.smallMessage).front();
                const Nanoseconds large = messages({{a, b}}, m_options.largeMessage).front();
                const auto more = static_cast<double>(m_options.largeMessage - m_options.smallMessage);
                result.pairs.push_back({a, b, small, perSecond(more, std::max<Nanoseconds>(1, large - small))});
            }
        step("messages of two pairs at once");
        if (count >= 4) {
            const Nanoseconds alone = messages({{0, 1}}, m_options.largeMessage).front();
            const std::vector<Nanoseconds> crowded = messages({{0, 1}, {2, 3}}, m_options.largeMessage);
            result.crowding = static_cast<double>(*std::max_element(crowded.begin(), crowded.end()))
                              / static_cast<double>(std::max<Nanoseconds>(1, alone));
        }
        return result;
    }

private:
    using Together = std::barrier<>;

    void step(const std::string& what)
    {
        if (m_options.cancel && *m_options.cancel)
            throw Error("measuring", "cancelled", "nothing was written");
        if (m_options.progress)
            m_options.progress(static_cast<double>(m_done) / m_steps, what);
        ++m_done;
    }

    /// One thread per device, as in a run. Throws what the first one threw that failed.
    template<typename Work>
    void onThreads(const std::vector<int>& devices, Work work)
    {
        std::mutex mutex;
        std::exception_ptr failure;
        Together together(static_cast<std::ptrdiff_t>(devices.size()));
        {
            std::vector<std::jthread> threads;
            for (const int d : devices)
                threads.emplace_back([&, d] {
                    try {
                        work(d, together);
                    } catch (...) {
                        const std::lock_guard lock(mutex);
                        failure = failure ? failure : std::current_exception();
                        together.arrive_and_drop(); // the others need not wait for this one
                    }
                });
        }
        if (failure)
            std::rethrow_exception(failure);
    }

    /// The median time of what `once` issues.
    template<typename Once>
    Nanoseconds timeOf(Stream& stream, Together& together, Once once) const
    {
        once();
        stream.synchronize();
        together.arrive_and_wait();
        std::vector<Nanoseconds> times;
        for (int i = 0; i < m_options.repetitions; ++i) {
            const Nanoseconds start = steadyNow();
            once();
            stream.synchronize();
            times.push_back(steadyNow() - start);
        }
        return medianOf(times);
    }

    double productRate(int d, Together& together) const
    {
        Device& device = m_backend.device(d);
        const int n = m_options.productSize;
        const Bytes bytes = Bytes{4} * n * n;
        const auto input = device.allocate(bytes), weight = device.allocate(bytes), output = device.allocate(bytes);
        const auto stream = device.createStream();
        const auto operations = device.createOperations(*stream);
        for (const auto* each : {&input, &weight, &output})
            operations->run(kernels::Fill{floatsOf(**each), 1});
        kernels::LinearForward product;
        product.shape = {n, n, n};
        product.input = floatsOf(*input);
        product.weight = floatsOf(*weight);
        product.output = floatsOf(*output);
        const Nanoseconds time = timeOf(*stream, together, [&] { operations->run(product); });
        return perSecond(2.0 * n * n * n, time);
    }

    double copyRate(int d, Together& together) const
    {
        Device& device = m_backend.device(d);
        const auto from = device.allocate(m_options.copyBytes), to = device.allocate(m_options.copyBytes);
        const auto stream = device.createStream();
        const auto operations = device.createOperations(*stream);
        for (const auto* each : {&from, &to})
            operations->run(kernels::Fill{floatsOf(**each), 1});
        const Nanoseconds time = timeOf(
            *stream, together, [&] { operations->copy(std::span<const float>(floatsOf(*from)), floatsOf(*to)); });
        return perSecond(2.0 * static_cast<double>(m_options.copyBytes), time);
    }

    /// Half of a round trip of every pair, all pairs at once.
    std::vector<Nanoseconds> messages(const std::vector<std::pair<int, int>>& pairs, Bytes bytes)
    {
        LinkOptions link;
        link.postings = static_cast<std::size_t>(m_options.repetitions) + 1;
        struct Way {
            std::unique_ptr<Link> there, back;
            std::unique_ptr<Allocation> mine, theirs;
        };
        std::vector<Way> ways;
        std::vector<int> devices;
        for (const auto& [a, b] : pairs) {
            ways.push_back({m_backend.createLink(a, b, link), m_backend.createLink(b, a, link),
                            m_backend.device(a).allocate(bytes), m_backend.device(b).allocate(bytes)});
            devices.insert(devices.end(), {a, b});
        }
        std::vector<Nanoseconds> halves(pairs.size(), 0);
        onThreads(devices, [&](int d, Together& together) {
            std::size_t pair = 0;
            while (pairs[pair].first != d && pairs[pair].second != d)
                ++pair;
            const bool begins = pairs[pair].first == d;
            Way& way = ways[pair];
            Device& device = m_backend.device(d);
            const auto stream = device.createStream();
            const auto sent = device.createEvent(*stream), received = device.createEvent(*stream);
            const Region region = (begins ? way.mine : way.theirs)->region();
            Link &out = begins ? *way.there : *way.back, &in = begins ? *way.back : *way.there;
            const auto send = [&](TaskId number) {
                out.send(*stream, {number, {&region, 1}, sent.get()});
                stream->wait(*sent);
            };
            const auto receive = [&](TaskId number) {
                in.receive(*stream, {number, {&region, 1}, received.get()});
                stream->wait(*received);
            };
            together.arrive_and_wait();
            std::vector<Nanoseconds> times;
            for (int i = 0; i <= m_options.repetitions; ++i) {
                const auto number = static_cast<TaskId>(i);
                const Nanoseconds start = steadyNow();
                begins ? send(number) : receive(number);
                begins ? receive(number) : send(number);
                stream->synchronize();
                if (i > 0) // the first warms up
                    times.push_back((steadyNow() - start) / 2);
                sent->reset();
                received->reset();
            }
            if (begins)
                halves[pair] = medianOf(times);
        });
        return halves;
    }

    Backend& m_backend;
    const MachineMeasureOptions& m_options;
    int m_done = 0, m_steps = 1;
};

} // namespace

MachineMeasurement measureMachine(Backend& backend, const MachineMeasureOptions& options)
{
    return Measuring(backend, options).run();
}

std::unique_ptr<Backend> thisMachine(int devices)
{
    constexpr int most = 64; // every pair is measured
    if (devices < 1 || devices > most)
        throw Error("measuring", fmt::format("{} devices", devices),
                    fmt::format("this machine is measured as 1 to {} threads", most));
    const Bytes memory = static_cast<Bytes>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    return createHostBackend(devices, memory / devices);
}

Cluster clusterOf(const MachineMeasurement& machine, const std::string& name)
{
    Cluster cluster;
    cluster.name = name;
    for (const MachineMeasurement::Device& measured : machine.devices) {
        DeviceSpec& device = cluster.devices.emplace_back();
        device.name = measured.name;
        device.memory = measured.memory;
        device.peakFlops = std::max(measured.alone, measured.together);
        device.memoryBandwidth = measured.copying;
        device.efficiency = device.peakFlops > 0 ? measured.together / device.peakFlops : 1;
    }
    std::vector<Nanoseconds> latencies;
    std::vector<double> bandwidths;
    for (const MachineMeasurement::Pair& pair : machine.pairs) {
        latencies.push_back(pair.latency);
        bandwidths.push_back(pair.bandwidth);
    }
    const std::string bus = machine.linksShareAWire() ? "shared" : "";
    cluster.link.name = "measured";
    cluster.link.bus = bus;
    if (machine.pairs.empty())
        return cluster;
    cluster.link.latency = medianOf(latencies);
    std::nth_element(bandwidths.begin(), bandwidths.begin() + static_cast<std::ptrdiff_t>(bandwidths.size() / 2),
                     bandwidths.end());
    cluster.link.bandwidth = bandwidths[bandwidths.size() / 2];
    constexpr double another = 1.5;
    const auto differs = [](double a, double b) { return a > another * b || b > another * a; };
    for (const MachineMeasurement::Pair& pair : machine.pairs)
        if (differs(pair.bandwidth, cluster.link.bandwidth)
            || differs(static_cast<double>(pair.latency), static_cast<double>(cluster.link.latency)))
            for (const auto& way : {std::pair(pair.first, pair.second), std::pair(pair.second, pair.first)})
                cluster.linkOfPair[way] = {"measured", pair.latency, pair.bandwidth, bus};
    return cluster;
}

} // namespace pipewright
