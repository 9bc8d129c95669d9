// SPDX-License-Identifier: GPL-3.0-or-later
// How good and how quick the search is, as Markdown tables: for every row and limit of the published tables the printed
// bubble rate, the rate that the search finds within the same memory, the lower bound and the gap between the two;
// known optima; and for models the fastest family with the even split against layers, devices and order searched
// together within that family's memory. Exits with 1 when a row is worse than the published rate, the known optimum or
// the family.
//   bench_search [TEXT…]    only the rows whose name has one of the texts in it, such as "p16 m48 1.25x" or "partition"
// A search first gets a fifth of its time, and the rest if it has then neither beaten the published rate nor found a
// proof. PIPEWRIGHT_SEARCH_SECONDS sets that time (10), PIPEWRIGHT_SEARCH_THREADS the threads (as many as the machine
// has). It is processor time: on a shared machine the wall-clock time is longer, by a factor that is measured before
// each search. The tables are in resources/experiments/search-against-published.md.
#include "bench/publishedrates.h"

#include "core/design/designbuilder.h"
#include "core/design/newdesign.h"
#include "core/predict/predict.h"
#include "core/presets/presets.h"
#include "core/search/partition.h"
#include "core/search/tradeoffs.h"
#include "core/search/variants.h"
#include "makers/designs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

using namespace pipewright;
using namespace pipewright::published;

namespace {

double secondsOfProcessor()
{
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Wall-clock seconds for one second of processor time on every thread, measured now.
double stretch(int threads)
{
    using Clock = std::chrono::steady_clock;
    const double before = secondsOfProcessor();
    const auto began = Clock::now();
    {
        std::vector<std::jthread> busy;
        for (int i = 0; i < threads; ++i)
            busy.emplace_back([began] {
                while (Clock::now() < began + std::chrono::milliseconds(200)) {
                }
            });
    }
    const double clock = std::chrono::duration<double>(Clock::now() - began).count();
    return std::clamp(clock * threads / std::max(1e-3, secondsOfProcessor() - before), 1.0, 20.0);
}

double mebibytesAtMost()
{
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (double kibibytes = 0; word == "VmHWM:" && status >> kibibytes)
            return kibibytes / 1024;
    return 0;
}

double fromEnvironment(const char* name, double otherwise)
{
    const char* text = std::getenv(name);
    return text != nullptr ? std::atof(text) : otherwise;
}

Design designOf(const char* family, const Instance& row, double limit, int chunks = 0)
{
    DesignRequest request = test::requestFor(family, row.devices, row.microbatches);
    request.memoryLimit = limit;
    if (chunks > 0)
        request.chunks = chunks;
    request.forward = row.forward * 1000;
    request.inputGrad = row.inputGrad * 1000;
    request.weightGrad = row.weightGrad * 1000;
    request.transfer = row.transfer * 1000;
    request.saved = Bytes{12'000} * row.kept; // chunks get whole shares
    request.savedForWeightGrad = Bytes{12'000} * row.keptForWeightGrad;
    return makeDesign(request);
}

class Tables {
public:
    explicit Tables(std::vector<std::string> texts) : m_texts(std::move(texts)) {}

    /// Whether a row is worse than it may be.
    bool failed() const { return m_worse > 0; }

    void publishedRates()
    {
        begin("Published bubble rates",
              "instance | limit | published | by | found | bound | gap | proved | against it | best after s | CPU s");
        for (const TableFive& row : tableFive) {
            const double h2 = (2.0 * row.instance.devices - 1) / row.instance.devices;
            linear(row.instance, 1, row.zbOnce, "ZB-1p");
            linear(row.instance, h2, row.zbH2, "ZB-H2");
            linear(row.instance, 2, row.zbTwice, "ZB-2p");
            looped(row.instance, row.chunks, row.interleaved);
        }
        for (const FigureNine& row : figureNine) {
            for (std::size_t i = 0; i < row.linear.size(); ++i)
                linear(row.instance, 1 + static_cast<double>(i) / 8, row.linear[i],
                       i == 0 ? "ZB-H1, ZB-1p" : "ZB heuristic");
            if (row.zbH2 > 0)
                linear(row.instance, (2.0 * row.instance.devices - 1) / row.instance.devices, row.zbH2, "ZB-H2");
            for (std::size_t i = 0; i < row.v.size(); ++i)
                folded(row.instance, 1 + static_cast<double>(i) / 8, row.v[i], "ZB-V");
            if (row.interleaved > 0)
                looped(row.instance, 2, row.interleaved);
        }
        for (int quarters = 4; quarters <= 12; ++quarters) {
            const double limit = quarters / 4.0;
            linear(largest, limit, rateOf(designOf("zb-auto", largest, limit)), "zb-auto, computed");
            folded(largest, limit, rateOf(designOf("zb-v", largest, limit)), "zb-v, computed");
        }
        end();
    }

    void knownOptima()
    {
        begin(
            "Known optima",
            "instance | in memory | known ms | found ms | bound ms | gap | proved | against it | best after s | CPU s");
        for (const Optimum& row : optima) {
            const Instance instance{"",
                                    row.devices,
                                    row.microbatches,
                                    1000 * row.forward,
                                    1000 * row.inputGrad,
                                    1000 * row.weightGrad,
                                    0,
                                    1,
                                    1};
            const std::string name = fmt::format("optimum p{} m{} {}/{}/{}", row.devices, row.microbatches, row.forward,
                                                 row.inputGrad, row.weightGrad);
            if (!wanted(name))
                continue;
            const Timed found = timed(designOf("zb-h1", instance, 1), static_cast<double>(row.inMemory) / row.devices,
                                      [](const SearchResult&) { return false; });
            const auto milliseconds = [](Nanoseconds time) { return 1e-6 * static_cast<double>(time); };
            const Nanoseconds known = Nanoseconds{1'000'000} * row.span;
            const char* verdict = row.span == 0 ? "–" : judge(found.result.value - known);
            fmt::print("| {} | {} | {} | {:g} | {:g} | {:.2f} % | {} | {} | {:.2f} | {:.1f} |\n", name, row.inMemory,
                       row.span == 0 ? "–" : std::to_string(row.span), milliseconds(found.result.value),
                       milliseconds(found.result.bound.value), 100 * found.result.gap,
                       found.result.proved ? "yes" : "no", verdict, found.result.history.back().seconds, found.seconds);
            std::fflush(stdout);
        }
        end();
    }

    void partitions()
    {
        begin("Layers, devices and order together", "model | family, even split | its ms | its GiB | found ms | gain | "
                                                    "bound ms | layers per stage | devices | CPU s");
        for (const char* model : {"llama-3-8b", "llama-3-70b", "deepseek-v3"})
            for (const int devices : {4, 8})
                partition(model, devices);
        end();
    }

private:
    struct Timed {
        SearchResult result;
        double seconds = 0; ///< of the processor, all threads
    };

    bool wanted(const std::string& name) const
    {
        if (m_texts.empty())
            return true;
        for (const std::string& text : m_texts)
            if (name.find(text) != std::string::npos)
                return true;
        return false;
    }

    void begin(const char* title, const std::string& columns)
    {
        m_verdicts.clear();
        const auto count = std::count(columns.begin(), columns.end(), '|') + 1;
        fmt::print("\n## {}\n\n| {} |\n|", title, columns);
        for (std::ptrdiff_t i = 0; i < count; ++i)
            fmt::print(" --- |");
        fmt::print("\n");
    }
    void end()
    {
        std::vector<std::string> counts;
        for (const auto& [verdict, count] : m_verdicts)
            counts.push_back(fmt::format("{} {}", count, verdict));
        if (!counts.empty())
            fmt::print("\nRows: {}.\n", fmt::join(counts, ", "));
    }

    /// The verdict, by the sign of the distance from the value to reach.
    template<typename Distance>
    const char* judge(Distance distance)
    {
        const char* verdict = distance > 0 ? "worse" : distance < 0 ? "better" : "equal";
        m_worse += distance > 0;
        ++m_verdicts[verdict];
        return verdict;
    }

    /// `share` of the time.
    static SearchOptions options(double share)
    {
        SearchOptions options;
        options.threads = static_cast<int>(
            fromEnvironment("PIPEWRIGHT_SEARCH_THREADS", std::max(1u, std::thread::hardware_concurrency())));
        const double seconds = share * fromEnvironment("PIPEWRIGHT_SEARCH_SECONDS", 10) * stretch(options.threads);
        options.timeLimit = std::chrono::milliseconds(static_cast<int>(1000 * seconds));
        return options;
    }

    /// Ends early when the result is enough or proved.
    static Timed timed(const Design& design, double limit, const std::function<bool(const SearchResult&)>& enough)
    {
        Timed timed;
        for (const double share : {0.2, 0.8}) {
            SearchOptions given = options(share);
            given.objective = SearchObjective::Span;
            given.limit.factor = limit;
            if (!timed.result.history.empty())
                given.hints.push_back(timed.result.schedule);
            const double before = secondsOfProcessor();
            timed.result = search(design, given);
            timed.seconds += secondsOfProcessor() - before;
            if (timed.result.proved || enough(timed.result))
                break;
        }
        return timed;
    }

    static double rateOf(const Design& design) { return predict(design).metrics.rateSpan; }

    void linear(const Instance& row, double limit, double rate, const char* by)
    {
        published("linear", designOf("zb-auto", row, limit), row, limit, rate, by);
    }
    void folded(const Instance& row, double limit, double rate, const char* by)
    {
        published("V", designOf("zb-v", row, limit), row, limit, rate, by);
    }
    /// Within the memory of the first device, which holds most.
    void looped(const Instance& row, int chunks, double rate)
    {
        std::vector<Block> nothingLocked;
        const Design full = designOf("interleaved-1f1b", row, 1, chunks);
        const double limit =
            static_cast<double>(2 * (row.devices - 1) + (chunks - 1) * row.devices + 1) / (chunks * row.devices);
        published(fmt::format("{} chunks", chunks), withBackward(full, BackwardStyle::Split, nothingLocked), row, limit,
                  rate, "1F1B-I");
    }

    /// The rate is compared in the four digits that are printed.
    void published(const std::string& placement, const Design& design, const Instance& row, double limit, double rate,
                   const char* by)
    {
        const std::string name = fmt::format("{} {} p{} m{}", placement, row.model, row.devices, row.microbatches);
        if (!wanted(fmt::format("{} {:.4g}x", name, limit)))
            return;
        const Nanoseconds ideal = predict(design).metrics.ideal;
        const auto rateFor = [&](Nanoseconds span) {
            return static_cast<double>(span - ideal) / static_cast<double>(span);
        };
        const auto digits = [](double value) { return std::lround(1e4 * value); };
        const Timed found =
            timed(design, limit, [&](const SearchResult& now) { return digits(rateFor(now.value)) < digits(rate); });
        const char* verdict = judge(digits(rateFor(found.result.value)) - digits(rate));
        fmt::print("| {} | {:.4g}x | {:.4f} | {} | {:.4f} | {:.4f} | {:.2f} % | {} | {} | {:.2f} | {:.1f} |\n", name,
                   limit, rate, by, rateFor(found.result.value), rateFor(found.result.bound.value),
                   100 * found.result.gap, found.result.proved ? "yes" : "no", verdict,
                   found.result.history.back().seconds, found.seconds);
        std::fflush(stdout);
    }

    /// The fastest synchronous family of the even split.
    static TradeOff fastestFamily(const Design& base)
    {
        TradeOff fastest;
        for (const TradeOffCandidate& candidate : tradeOffCandidates(base)) {
            const TradeOff tried = evaluateTradeOff(base, candidate);
            if (tried.possible && (!fastest.possible || tried.makespan < fastest.makespan))
                fastest = tried;
        }
        return fastest;
    }

    void partition(const char* model, int devices)
    {
        const int microbatches = 4 * devices;
        const std::string name = fmt::format("partition {} p{} m{}", model, devices, microbatches);
        if (!wanted(name))
            return;
        const PresetLibrary presets;
        NewDesign choice;
        choice.workload = presets.workload(model);
        choice.cluster = presets.cluster("h200-node", devices);
        choice.microbatches = microbatches;
        const Design base = designFromModel(choice);
        const TradeOff fastest = fastestFamily(base);
        PartitionOptions given;
        given.search = options(1);
        given.search.objective = SearchObjective::Makespan;
        given.search.limit = {fastest.peakBytes, std::nullopt};
        given.shapes = {PlacementShape::Free};
        const double before = secondsOfProcessor();
        const PartitionResult found = searchPartition(base, given);
        const double seconds = secondsOfProcessor() - before;
        judge(found.result.value - fastest.makespan);
        const auto milliseconds = [](Nanoseconds time) { return 1e-6 * static_cast<double>(time); };
        fmt::print("| {} | {} | {:.2f} | {:.1f} | {:.2f} | {:.2f} % | {:.2f} | {} | {} | {:.1f} |\n", name,
                   fastest.candidate.label(), milliseconds(fastest.makespan),
                   static_cast<double>(fastest.peakBytes) / (1 << 30), milliseconds(found.result.value),
                   100 * (1 - milliseconds(found.result.value) / milliseconds(fastest.makespan)),
                   milliseconds(found.result.bound.value), fmt::join(found.design.layersPerStage, " "),
                   fmt::join(found.design.schedule.deviceOfStage, " "), seconds);
        std::fflush(stdout);
    }

    std::vector<std::string> m_texts;
    std::map<std::string, int> m_verdicts;
    int m_worse = 0;
};

} // namespace

int main(int count, char** words)
{
    Tables tables(std::vector<std::string>(words + 1, words + count));
    tables.publishedRates();
    tables.knownOptima();
    tables.partitions();
    fmt::print("\nMost memory: {:.0f} MiB.\n", mebibytesAtMost());
    return tables.failed() ? 1 : 0;
}
