// SPDX-License-Identifier: GPL-3.0-or-later
// Starts one worker per thread on a common incumbent, reports progress from the calling thread some forty times a
// second, and puts the result together with its bounds. All threads end at the time limit, at a stop or when the best
// schedule meets a lower bound.
#include "core/search/search.h"

#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/search/modelled.h"
#include "core/search/periodic.h"
#include "core/search/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <thread>

namespace pipewright {

namespace {

/// Limit on threads × blocks: every thread has tables of all blocks, some 300 bytes per block.
constexpr std::size_t mostTasksOfThreads = 16'000'000;

std::string limitText(const MemoryLimit& limit)
{
    return limit.factor  ? fmt::format("{}x", *limit.factor)
           : limit.bytes ? exactSize(*limit.bytes)
                         : "the devices' memory";
}

/// ": one microbatch by itself needs 4 GiB on device 0"; empty where no device lacks memory for it.
std::string oneMicrobatchText(const Design& design, const SearchModel& model)
{
    if (!model.exactBytes)
        return {};
    const Metrics metrics = predict(withMicrobatches(design, 1)).metrics;
    for (const DeviceIndex d : model.limitOfDevice.indices())
        if (const Bytes peak = metrics.devices[d].peakBytes;
            model.capacity[d] != SearchModel::noCapacity && peak > model.limitOfDevice[d])
            return fmt::format(": one microbatch by itself needs {} on device {}", exactSize(peak), int{d});
    return {};
}

/// Extra time for reading the blocks, beyond the time limit, while the search has no schedule yet.
constexpr std::chrono::seconds graceOfStart{1};

/// Runs every worker in a thread of its own, so that the calling thread can report progress. `prediction`: seconds that
/// one took.
void runThreads(const Design& design, const SearchModel& model, const SearchOptions& options, Incumbent& incumbent,
                double prediction)
{
    std::atomic<bool> over{false};
    std::atomic<int> running{options.threads};
    std::mutex mutex;
    std::condition_variable changed;
    const double limit = std::chrono::duration<double>(options.timeLimit).count();
    const auto stop = [&] {
        return over.load() || incumbent.proved() || options.stop.stop_requested()
               || (limit > 0 && incumbent.seconds() >= limit);
    };
    // With millions of blocks the work between two calls of the stop condition takes seconds. The next piece of work
    // may take as long as the longest one of any thread so far, so it is only begun when that much time is left.
    std::atomic<double> longest{prediction};
    std::vector<std::exception_ptr> failures(options.threads);
    std::vector<std::jthread> threads;
    const auto work = [&](int index) {
        double asked = incumbent.seconds();
        const auto stopInTime = [&] {
            const double now = incumbent.seconds(), took = now - asked;
            asked = now;
            for (double known = longest; took > known && !longest.compare_exchange_weak(known, took);) {
            }
            return stop() || (limit > 0 && now + longest >= limit && incumbent.best() != Incumbent::noValue);
        };
        try {
            SearchWorker(design, model, options, incumbent, index).run(stopInTime);
        } catch (...) {
            failures[index] = std::current_exception();
            over = true;
        }
        const std::lock_guard lock(mutex);
        --running;
        changed.notify_all();
    };
    try {
        for (int index = 0; index < options.threads; ++index)
            threads.emplace_back(work, index);
    } catch (...) { // no further thread can be started: the running ones stop
        over = true;
        throw;
    }
    {
        std::unique_lock lock(mutex);
        while (!changed.wait_for(lock, std::chrono::milliseconds(25), [&] { return running.load() == 0; }))
            if (options.progress) {
                const Nanoseconds best = incumbent.best();
                options.progress({incumbent.seconds(), best == Incumbent::noValue ? 0 : best, incumbent.bound()});
            }
    }
    threads.clear();
    for (const std::exception_ptr& failure : failures)
        if (failure)
            std::rethrow_exception(failure);
}

Schedule scheduleOf(const SearchModel& model, const Design& design, const Lanes& lanes)
{
    return model.lanesOf(design.schedule) == lanes ? design.schedule : model.scheduleOf(lanes, design.schedule);
}

/// Index in `found` of the schedule that is fastest under noise; fills result.noisy.
std::size_t bestUnderNoise(const Design& design, const SearchModel& model, const std::vector<Lanes>& found,
                           const SearchOptions& options, SearchResult& result)
{
    std::size_t best = found.size() - 1;
    Nanoseconds least = 0;
    for (std::size_t i = found.size(); i-- > 0;) { // among equals the last wins: it is the shortest without noise
        const Program program = compile(scheduleOf(model, design, found[i]), design.costs, design.dataflow);
        const StepSpread noisy = spreadOfStep(program, design.costs, *options.noise);
        const Nanoseconds time = rankedTime(options.by, result.history[i].value, noisy);
        if (i + 1 == found.size() || time < least) {
            best = i;
            least = time;
            result.noisy = noisy;
        }
    }
    return best;
}

} // namespace

SearchResult search(const Design& design, const SearchOptions& given)
{
    const Incumbent::Clock::time_point began = Incumbent::Clock::now();
    SearchOptions options = given;
    if (options.limit.factor && !design.schedule.recompute.empty())
        throw Error(
            "--memory-limit",
            fmt::format("{}x counts in saved activations, which recomputation does not keep", *options.limit.factor),
            "state the limit in bytes, such as 40GiB");
    const auto within = [&options, began] { // while there is no schedule to return yet
        if (options.stop.stop_requested())
            throw Error("search", "cancelled before its first schedule");
        if (options.timeLimit.count() > 0 && Incumbent::Clock::now() - began >= options.timeLimit + graceOfStart)
            throw Error("search",
                        fmt::format("its time, {}, was over before it had looked at every block once",
                                    formatDuration(std::chrono::nanoseconds(options.timeLimit).count())),
                        "allow more time: it has many");
    };
    const SearchModel model(design, options.limit, options.locked, Patience(within));
    const auto most = static_cast<int>(std::min<std::size_t>(256, mostTasksOfThreads / (model.tasks.size() + 1)));
    options.threads = std::clamp(options.threads, 1, std::max(1, most));
    if (const Diagnostics impossible = whyImpossible(model, options.limit, Patience(within)); hasErrors(impossible))
        throw Error(impossible);
    SearchResult result;
    result.bounds = lowerBounds(model, options.objective, Patience(within));
    result.bound = result.bounds.front();
    Incumbent incumbent(design, model, options, result.bound.value, began);
    const double before = incumbent.seconds();
    incumbent.offerGiven();
    runThreads(design, model, options, incumbent, incumbent.seconds() - before);

    result.history = incumbent.history();
    result.cancelled = options.stop.stop_requested();
    if (result.history.empty())
        throw Error("search",
                    fmt::format("no schedule within {} was found{}", limitText(options.limit),
                                result.cancelled ? " before it was cancelled" : ""),
                    "allow more time or memory, or lock fewer blocks" + oneMicrobatchText(design, model));
    std::vector<Lanes> found = incumbent.takeLanes();
    const std::size_t chosen = options.noise ? bestUnderNoise(design, model, found, options, result) : 0;
    result.value = options.noise ? result.history[chosen].value : incumbent.best();
    result.unproved = whyNotProved(design);
    result.proved = result.value <= incumbent.bound() && result.unproved.empty();
    if (const std::string why = incumbent.exhausted(); !why.empty())
        result.bound = {incumbent.bound(), 0, "exhausted", why};
    result.gap = result.value > 0
                     ? static_cast<double>(result.value - result.bound.value) / static_cast<double>(result.value)
                     : 0;
    result.schedule = scheduleOf(model, design, found[chosen]);
    return result;
}

} // namespace pipewright
