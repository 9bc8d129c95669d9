// SPDX-License-Identifier: GPL-3.0-or-later
// Medians of repeated timings: products of growing size alone and on all devices at once, copies, and round trips of a
// small and a large message for every pair of devices; then every two pairs at the same time, since pairs that slow
// each other down share a bus. O(devices^4) round trips, 210 combinations for eight devices.
#include "executor/machine/machinemeasure.h"

#include "core/base/diagnostic.h"
#include "core/base/median.h"
#include "executor/host/hostbackend.h"
#include "executor/runtime/devicethreads.h"
#include "executor/runtime/steadyclock.h"
#include "kernels/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
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

/// Largest number of devices for which every two pairs are measured together: 210 combinations.
constexpr int mostInCrowds = 8;

class Measuring {
public:
    Measuring(Backend& backend, const MachineMeasureOptions& options) : m_backend(backend), m_options(options) {}

    MachineMeasurement run()
    {
        const int count = m_backend.devices();
        MachineMeasurement result;
        for (int a = 0; a < count; ++a)
            for (int b = a + 1; b < count; ++b)
                result.pairs.push_back({a, b, 0, 0, m_options.wayBetween ? m_options.wayBetween(a, b) : LinkWay{}});
        result.crowds = crowdsOf(result.pairs);
        m_steps = static_cast<std::size_t>(count) + 2 + result.pairs.size() + result.crowds.size();
        std::map<int, int> sharers; // per pool of memory: how many devices share it
        for (int d = 0; d < count; ++d)
            ++sharers[m_backend.device(d).memory().number];
        for (int d = 0; d < count; ++d) {
            MachineMeasurement::Device& device = result.devices.emplace_back();
            device.name = m_backend.device(d).name();
            const Device::Pool pool = m_backend.device(d).memory();
            device.memory = pool.bytes / sharers[pool.number];
            step(fmt::format("products on {} alone", device.name));
            onThreads({d}, [&](int, auto& together) {
                device.productSize = productSizeFor(device, d);
                device.alone = productRate(d, device.productSize, together);
            });
        }
        std::vector<int> all;
        for (int d = 0; d < count; ++d)
            all.push_back(d);
        const auto of = [&result](int d) -> MachineMeasurement::Device& { return result.devices[d]; };
        step("products on all devices together");
        onThreads(all, [&](int d, auto& together) { of(d).together = productRate(d, of(d).productSize, together); });
        step("copies on all devices together");
        onThreads(all, [&](int d, auto& together) { of(d).copying = copyRate(of(d), d, together); });
        for (MachineMeasurement::Pair& pair : result.pairs) {
            step(fmt::format("messages between device {} and device {}", pair.first, pair.second));
            measure(pair, std::min(of(pair.first).memory, of(pair.second).memory));
        }
        for (MachineMeasurement::Crowd& crowd : result.crowds) {
            const MachineMeasurement::Pair &a = result.pairs[crowd.first], &b = result.pairs[crowd.second];
            step(fmt::format("messages between {} and {} beside those between {} and {}", a.first, a.second, b.first,
                             b.second));
            const std::vector<Nanoseconds> times =
                messages({{a.first, a.second}, {b.first, b.second}}, m_largeMessage, 1);
            const auto factor = [this](const MachineMeasurement::Pair& pair, Nanoseconds time) {
                const double alone =
                    static_cast<double>(pair.latency) + static_cast<double>(m_largeMessage) / pair.bandwidth * 1e9;
                return static_cast<double>(time) / std::max(1.0, alone);
            };
            crowd.factor = std::max(factor(a, times[0]), factor(b, times[1]));
        }
        return result;
    }

private:
    using Together = std::barrier<>;

    static std::vector<MachineMeasurement::Crowd> crowdsOf(const std::vector<MachineMeasurement::Pair>& pairs)
    {
        std::vector<MachineMeasurement::Crowd> crowds;
        for (std::size_t i = 0; i < pairs.size(); ++i)
            for (std::size_t j = i + 1; j < pairs.size(); ++j) {
                const MachineMeasurement::Pair &a = pairs[i], &b = pairs[j];
                const bool apart =
                    a.first != b.first && a.first != b.second && a.second != b.first && a.second != b.second;
                if (apart && std::max(a.second, b.second) < mostInCrowds)
                    crowds.push_back({i, j, 1});
            }
        return crowds;
    }

    void step(const std::string& what)
    {
        if (m_options.cancel && *m_options.cancel)
            throw Error("measuring", "cancelled", "nothing was written");
        if (m_options.progress)
            m_options.progress(static_cast<double>(m_done) / static_cast<double>(m_steps), what);
        ++m_done;
    }

    /// Runs one thread per device, as a run does. Throws the first failure.
    template<typename Work>
    void onThreads(const std::vector<int>& devices, Work work, const std::function<void()>& letGo = {})
    {
        Together together(static_cast<std::ptrdiff_t>(devices.size()));
        onDeviceThreads(
            devices.size(), [&](std::size_t i) { work(devices[i], together); },
            [&](std::size_t) {
                together.arrive_and_drop(); // the others must not wait for this one
                if (letGo)
                    letGo();
            });
    }

    /// Doubles the size, from `least` on, until the work takes long enough.
    template<typename Size, typename TimeAt>
    Size grown(Size least, Size most, TimeAt timeAt) const
    {
        while (m_options.atLeast > 0 && 2 * least <= most && timeAt(least) < m_options.atLeast)
            least *= 2;
        return least;
    }
    /// How often work of this duration is repeated within one timing.
    int timesFor(Nanoseconds each) const
    {
        constexpr Nanoseconds most = 64;
        return static_cast<int>(std::clamp<Nanoseconds>(m_options.atLeast / std::max<Nanoseconds>(1, each), 1, most));
    }

    template<typename Once>
    static Nanoseconds timeOfOne(Stream& stream, Once once)
    {
        once();
        stream.synchronize();
        const Nanoseconds start = steadyNow();
        once();
        stream.synchronize();
        return steadyNow() - start;
    }

    /// The median time of the work that `once` issues.
    template<typename Once>
    Nanoseconds timeOf(Stream& stream, Together& together, Once once) const
    {
        const int often = timesFor(timeOfOne(stream, once));
        together.arrive_and_wait();
        std::vector<Nanoseconds> times;
        for (int i = 0; i < m_options.repetitions; ++i) {
            const Nanoseconds start = steadyNow();
            for (int again = 0; again < often; ++again)
                once();
            stream.synchronize();
            times.push_back((steadyNow() - start) / often);
        }
        return medianOf(times);
    }

    /// Calls `use` with a stream and a function that issues a product of n rows, inputs and outputs.
    template<typename Use>
    auto withProduct(int d, int n, Use use) const
    {
        Device& device = m_backend.device(d);
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
        return use(*stream, [&] { operations->run(product); });
    }

    int productSizeFor(const MachineMeasurement::Device& device, int d) const
    {
        int most = m_options.mostProductSize;
        while (device.memory > 0 && Bytes{12} * most * most > device.memory / 4)
            most /= 2;
        return grown(m_options.productSize, most, [&](int n) {
            return withProduct(d, n, [](Stream& stream, const auto& product) { return timeOfOne(stream, product); });
        });
    }

    double productRate(int d, int n, Together& together) const
    {
        const Nanoseconds time =
            withProduct(d, n, [&](Stream& stream, const auto& product) { return timeOf(stream, together, product); });
        return perSecond(2.0 * n * n * n, time);
    }

    double copyRate(const MachineMeasurement::Device& of, int d, Together& together) const
    {
        Device& device = m_backend.device(d);
        const auto stream = device.createStream();
        const auto operations = device.createOperations(*stream);
        std::unique_ptr<Allocation> from, to;
        const auto copy = [&operations](const Allocation& out, const Allocation& in) {
            operations->copy(std::span<const float>(floatsOf(out)), floatsOf(in));
        };
        const auto there = [&] { copy(*from, *to); };
        const auto prepare = [&](Bytes bytes) {
            from.reset();
            to.reset();
            from = device.allocate(bytes);
            to = device.allocate(bytes);
            copy(*to, *from); // writes the pages of `from` first, so that reading them is real memory traffic
            stream->synchronize();
        };
        const Bytes bytes = grown(m_options.copyBytes, mostOf(of.memory, m_options.mostCopyBytes), [&](Bytes each) {
            prepare(each);
            return timeOfOne(*stream, there);
        });
        prepare(bytes);
        return perSecond(2.0 * static_cast<double>(bytes), timeOf(*stream, together, there));
    }

    static Bytes mostOf(Bytes memory, Bytes most) ///< leaves room for two of them
    {
        return memory > 0 ? std::min(most, memory / 8) : most;
    }

    void measure(MachineMeasurement::Pair& pair, Bytes memory)
    {
        const std::vector<std::pair<int, int>> alone{{pair.first, pair.second}};
        const auto time = [&](Bytes bytes, int trips) { return messages(alone, bytes, trips).front(); };
        m_largeMessage = grown(std::max(m_largeMessage, m_options.largeMessage),
                               mostOf(memory, m_options.mostLargeMessage), [&](Bytes bytes) { return time(bytes, 1); });
        const Nanoseconds once = time(m_options.smallMessage, 1);
        const Nanoseconds small = time(m_options.smallMessage, timesFor(2 * once)), large = time(m_largeMessage, 1);
        const auto more = static_cast<double>(m_largeMessage - m_options.smallMessage);
        pair.latency = small;
        pair.bandwidth = perSecond(more, std::max<Nanoseconds>(1, large - small));
    }

    /// Half of a round trip per pair, all pairs at the same time. `trips` round trips are issued before any is waited
    /// for.
    std::vector<Nanoseconds> messages(const std::vector<std::pair<int, int>>& pairs, Bytes bytes, int trips)
    {
        LinkOptions link;
        const auto postings = static_cast<std::size_t>(trips) * static_cast<std::size_t>(m_options.repetitions + 1);
        link.postings = postings;
        link.mayBeSlowed = false;
        struct Side {
            std::unique_ptr<Allocation> memory;
            std::unique_ptr<Stream> stream;
            std::vector<std::unique_ptr<Event>> sent, received;
        };
        struct Way {
            std::unique_ptr<Link> there, back;
            Side sides[2];
        };
        std::vector<Way> ways;
        std::vector<int> devices;
        for (const auto& [a, b] : pairs) {
            Way& way = ways.emplace_back();
            way.there = m_backend.createLink(a, b, link);
            way.back = m_backend.createLink(b, a, link);
            for (const auto& [d, side] : {std::pair(a, &way.sides[0]), {b, &way.sides[1]}}) {
                side->memory = m_backend.device(d).allocate(bytes);
                side->stream = m_backend.device(d).createStream();
                for (int i = 0; i < trips; ++i) {
                    side->sent.push_back(m_backend.device(d).createEvent(*side->stream));
                    side->received.push_back(m_backend.device(d).createEvent(*side->stream));
                }
                devices.push_back(d);
            }
        }
        std::vector<Nanoseconds> halves(pairs.size(), 0);
        const auto letGo = [&ways] {
            for (Way& way : ways)
                for (Side& side : way.sides)
                    side.stream->interrupt();
        };
        const auto exchange = [&](int d, Together& together) {
            std::size_t pair = 0;
            while (pairs[pair].first != d && pairs[pair].second != d)
                ++pair;
            const bool begins = pairs[pair].first == d;
            Way& way = ways[pair];
            Side& own = way.sides[begins ? 0 : 1];
            Stream& stream = *own.stream;
            const Region region = own.memory->region();
            Link &out = begins ? *way.there : *way.back, &in = begins ? *way.back : *way.there;
            const auto send = [&](TaskId number, Event& sent) {
                out.send(stream, {number, {&region, 1}, &sent});
                stream.wait(sent);
            };
            const auto receive = [&](TaskId number, Event& received) {
                in.receive(stream, {number, {&region, 1}, &received});
                stream.wait(received);
            };
            together.arrive_and_wait();
            std::vector<Nanoseconds> times;
            for (int i = 0; i <= m_options.repetitions; ++i) {
                const Nanoseconds start = steadyNow();
                for (std::size_t trip = 0; trip < own.sent.size(); ++trip) {
                    const auto number = static_cast<TaskId>(static_cast<std::size_t>(i) * own.sent.size() + trip);
                    begins ? send(number, *own.sent[trip]) : receive(number, *own.received[trip]);
                    begins ? receive(number, *own.received[trip]) : send(number, *own.sent[trip]);
                }
                if (!stream.synchronize())
                    return; // the other side has failed
                if (i > 0)  // the first one is the warm-up
                    times.push_back((steadyNow() - start) / (2 * trips));
                for (std::size_t trip = 0; trip < own.sent.size(); ++trip) {
                    own.sent[trip]->reset();
                    own.received[trip]->reset();
                }
            }
            if (begins)
                halves[pair] = medianOf(times);
        };
        onThreads(devices, exchange, letGo);
        return halves;
    }

    Backend& m_backend;
    const MachineMeasureOptions& m_options;
    Bytes m_largeMessage = 0; ///< the largest that any pair needed so far
    std::size_t m_done = 0, m_steps = 1;
};

} // namespace

bool MachineMeasurement::linksShareAWire() const
{
    return std::any_of(crowds.begin(), crowds.end(), [](const Crowd& crowd) { return crowd.shares(); });
}

double MachineMeasurement::crowding() const
{
    double most = 0;
    for (const Crowd& crowd : crowds)
        most = std::max(most, crowd.factor);
    return most;
}

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

namespace {

/// Per pair: the bus of its link; empty: it shares none.
std::vector<std::string> busesOf(const MachineMeasurement& machine)
{
    const auto& pairs = machine.pairs;
    const auto shares = [&pairs](const MachineMeasurement::Crowd& crowd) {
        return crowd.shares() && pairs[crowd.first].way.wire == pairs[crowd.second].way.wire;
    };
    const bool oneWire = std::all_of(pairs.begin(), pairs.end(),
                                     [&pairs](const auto& pair) { return pair.way.wire == pairs[0].way.wire; });
    if (oneWire && !machine.crowds.empty() && std::all_of(machine.crowds.begin(), machine.crowds.end(), shares))
        return std::vector<std::string>(pairs.size(), pairs[0].way.wire);
    // Pairs that slow down the same third pair are on the same bus.
    std::vector<std::size_t> bus(pairs.size());
    std::iota(bus.begin(), bus.end(), std::size_t{0});
    for (const MachineMeasurement::Crowd& crowd : machine.crowds)
        if (shares(crowd))
            std::replace(bus.begin(), bus.end(), std::max(bus[crowd.first], bus[crowd.second]),
                         std::min(bus[crowd.first], bus[crowd.second]));
    std::vector<std::string> names(bus.size());
    std::map<std::size_t, std::string> named;
    std::map<std::string, int> numbers;
    for (std::size_t i = 0; i < bus.size(); ++i) {
        if (std::count(bus.begin(), bus.end(), bus[i]) < 2)
            continue;
        std::string& name = named[bus[i]];
        if (name.empty())
            name = fmt::format("{} {}", pairs[i].way.wire, ++numbers[pairs[i].way.wire]);
        names[i] = name;
    }
    return names;
}

} // namespace

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
    cluster.link.name = "measured";
    if (machine.pairs.empty())
        return cluster;
    std::vector<Nanoseconds> latencies;
    std::vector<double> bandwidths;
    std::map<std::string, int> ways;
    for (const MachineMeasurement::Pair& pair : machine.pairs) {
        latencies.push_back(pair.latency);
        bandwidths.push_back(pair.bandwidth);
        ++ways[pair.way.name];
    }
    const std::vector<std::string> buses = busesOf(machine);
    const auto nameOf = [](const std::string& way) { return way + ", measured"; };
    cluster.link.name = nameOf(std::max_element(ways.begin(), ways.end(), [](const auto& a, const auto& b) {
                                   return a.second < b.second;
                               })->first);
    if (std::all_of(buses.begin(), buses.end(), [&buses](const std::string& bus) { return bus == buses[0]; }))
        cluster.link.bus = buses[0];
    cluster.link.latency = medianOf(latencies);
    std::nth_element(bandwidths.begin(), bandwidths.begin() + static_cast<std::ptrdiff_t>(bandwidths.size() / 2),
                     bandwidths.end());
    cluster.link.bandwidth = bandwidths[bandwidths.size() / 2];
    constexpr double another = 1.5;
    const auto differs = [](double a, double b) { return a > another * b || b > another * a; };
    for (std::size_t i = 0; i < machine.pairs.size(); ++i) {
        const MachineMeasurement::Pair& pair = machine.pairs[i];
        if (differs(pair.bandwidth, cluster.link.bandwidth)
            || differs(static_cast<double>(pair.latency), static_cast<double>(cluster.link.latency))
            || nameOf(pair.way.name) != cluster.link.name || buses[i] != cluster.link.bus)
            for (const auto& way : {std::pair(pair.first, pair.second), std::pair(pair.second, pair.first)})
                cluster.linkOfPair[way] = {nameOf(pair.way.name), pair.latency, pair.bandwidth, buses[i]};
    }
    return cluster;
}

} // namespace pipewright
