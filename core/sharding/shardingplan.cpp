// SPDX-License-Identifier: GPL-3.0-or-later
// Alternating optimisation from several start ratios: synthesis for fixed ratios, then the linear program for the fixed
// program, until the cost falls by less than a billionth. Each round costs one A* search; converges to a local optimum.
#include "core/sharding/shardingplan.h"

#include "core/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright::sharding {

namespace {

constexpr int mostRounds = 12;
constexpr double noticeable = 1e-9;    // relative; less is no improvement
constexpr double longestStep = 8.64e6; // 100 days, as units.h has it

struct Start {
    std::string name;
    Ratios ratios;
};

bool alike(const Ratios& a, const Ratios& b)
{
    for (std::size_t s = 0; s < a.size(); ++s)
        for (std::size_t d = 0; d < a[s].size(); ++d)
            if (std::abs(a[s][d] - b[s][d]) > noticeable)
                return false;
    return true;
}

class Planner {
public:
    Planner(const TensorGraph& graph, const Machine& machine, const PlanOptions& options)
        : m_graph(graph), m_machine(machine), m_options(options)
    {
    }

    ShardingPlan plan()
    {
        if (m_options.ratios) {
            checkRatios(*m_options.ratios, m_graph, m_machine);
            turn({"given", *m_options.ratios}, true);
        } else {
            search(factsOf(m_options.strategy).shares);
        }
        if (!m_best)
            throw Error(whatIsNeeded());
        checkDuration();
        m_best->expansions = m_expansions;
        m_best->rounds = m_rounds;
        m_best->memory = memoryOf(m_best->program, m_best->ratios);
        return *m_best;
    }

private:
    bool late() const { return m_options.deadline.passed(); }

    Ratios everywhere(const std::vector<double>& shares) const
    {
        return Ratios(static_cast<std::size_t>(m_graph.segments()), shares);
    }

    Theory theoryAt(const Ratios& ratios) const
    {
        return theoryOf(m_graph, m_machine, ratios, m_options.rules, m_options.strategy);
    }

    void search(ShareChoice shares)
    {
        switch (shares) {
        case ShareChoice::Even: turn({"even", everywhere(m_machine.even())}, true); return;
        case ShareChoice::ByRate: turn({"proportional", everywhere(m_machine.proportional())}, true); return;
        case ShareChoice::Found: break;
        }
        for (const Start& start : starts())
            if (!late() || !m_best)
                turn(start, false);
        apart();
    }

    std::vector<Start> starts() const
    {
        std::vector<Start> all{{"proportional", everywhere(m_machine.proportional())},
                               {"even", everywhere(m_machine.even())}};
        std::vector<double> capacity = m_machine.memory;
        if (std::all_of(capacity.begin(), capacity.end(), [](double bytes) { return bytes > 0; })) {
            const double sum = std::accumulate(capacity.begin(), capacity.end(), 0.0);
            for (double& bytes : capacity)
                bytes /= sum;
            all.push_back({"by memory", everywhere(capacity)});
        }
        for (std::size_t i = 0; i < all.size();)
            if (std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i),
                            [&](const Start& other) { return alike(other.ratios, all[i].ratios); }))
                all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
            else
                ++i;
        return all;
    }

    SynthesisOptions searchOptions() const { return {m_options.maxExpansions, m_options.deadline, 1}; }

    std::optional<Ratios> improve(const ShardingProgram& program, bool untied = false) const
    {
        return bestRatios(ratioProblemOf(program, m_graph, m_machine, m_graph.segments(), untied));
    }

    void keep(const ShardingProgram& program, const Ratios& ratios, double cost, const SynthesisResult& result,
              bool searched)
    {
        if (m_best && cost >= m_best->cost * (1 - noticeable))
            return;
        m_best =
            ShardingPlan{program, ratios, cost, searched ? result.bound : 0, searched && result.proved, 0, 0, {}, {}};
        m_best->gap = searched ? result.gap() : 1;
    }

    void turn(const Start& start, bool fixed)
    {
        Ratios ratios = start.ratios;
        double before = std::numeric_limits<double>::infinity();
        for (int round = 0; round < mostRounds; ++round) {
            const Theory theory = theoryAt(ratios);
            const SynthesisResult result = synthesise(theory, searchOptions());
            m_expansions += result.expansions;
            if (result.programs.empty()) {
                // Nothing fits at these ratios; the program with the least memory may fit at others.
                const auto other = fixed ? std::nullopt : improve(leanestProgram(theory));
                if (!other || alike(*other, ratios) || round > 2)
                    return;
                ratios = *other;
                continue;
            }
            const ShardingProgram& program = result.programs.front().program;
            const double cost = result.programs.front().cost;
            m_rounds.push_back({start.name, cost, cost});
            // The same pair from a finished search: its bound is known now.
            if (m_best && alike(m_best->ratios, ratios) && cost <= m_best->cost * (1 + noticeable))
                m_best.reset();
            keep(program, ratios, cost, result, true);
            if (fixed || cost >= before * (1 - noticeable))
                return;
            before = cost;
            const auto better = improve(program);
            if (!better)
                return;
            const double improved = costOf(program, m_machine, *better);
            if (alike(*better, ratios) || improved >= cost * (1 - noticeable))
                return;
            m_rounds.back().improved = improved;
            keep(program, *better, improved, result, false);
            if (late())
                return;
            ratios = *better;
        }
    }

    /// Segments with equal cuts keep them during the rounds, since the program has no exchange between them. This
    /// starts once more from the best ratios of each segment alone.
    void apart()
    {
        if (m_graph.segments() == 1 || !m_best || late())
            return;
        if (const auto wishes = improve(m_best->program, true); wishes && !alike(*wishes, m_best->ratios))
            turn({"segments apart", *wishes}, false);
    }

    void checkDuration() const
    {
        if (m_best->cost > longestStep)
            throw Error("cluster", fmt::format("one step would take {:.3g} days", m_best->cost / 86400),
                        "rates are in FLOP per second and bandwidths in bytes per second; look for a mistaken unit");
    }

    Diagnostics whatIsNeeded() const
    {
        const Ratios even(static_cast<std::size_t>(m_graph.segments()),
                          m_options.ratios ? m_options.ratios->front() : m_machine.even());
        const Theory theory = theoryAt(m_options.ratios ? *m_options.ratios : even);
        const std::vector<double> bytes = memoryOf(leanestProgram(theory), theory.ratios());
        Diagnostics found;
        for (const int d : devicesOverfull(bytes, m_machine))
            found.push_back({Severity::Error, fmt::format("cluster.devices.{}.memory", d),
                             fmt::format("device {} has {}, but the leanest program found keeps {} there{}", d,
                                         formatSize(static_cast<Bytes>(m_machine.memory[d])),
                                         formatSize(static_cast<Bytes>(std::ceil(bytes[d]))),
                                         m_options.ratios ? "" : " with even shares"),
                             m_options.ratios ? "give it a smaller share, or let the ratios be found"
                                              : "add devices or memory, or make the batch smaller"});
        if (found.empty()) // each segment alone fits, but not all together
            found.push_back({Severity::Error, "cluster.devices",
                             "no program and no ratios were found that keep every device within its memory",
                             "add devices or memory, or make the batch smaller"});
        return found;
    }

    const TensorGraph& m_graph;
    const Machine& m_machine;
    const PlanOptions& m_options;
    std::optional<ShardingPlan> m_best;
    std::vector<PlanRound> m_rounds;
    std::int64_t m_expansions = 0;
};

} // namespace

void checkShares(const std::vector<double>& shares, const Machine& machine)
{
    if (static_cast<int>(shares.size()) != machine.devices())
        throw Error("ratios", fmt::format("{} shares for {} devices", shares.size(), machine.devices()),
                    "give one share per device");
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    if (std::any_of(shares.begin(), shares.end(), [](double share) { return !(share >= 0); })
        || !(std::abs(sum - 1) < 1e-6))
        throw Error("ratios", "the shares are negative or do not add up to 1",
                    "give shares such as 2:1, or 0.667,0.333");
}

void checkRatios(const Ratios& ratios, const TensorGraph& graph, const Machine& machine)
{
    if (static_cast<int>(ratios.size()) != graph.segments())
        throw Error("ratios",
                    fmt::format("ratios of {} segments, but the graph has {}", ratios.size(), graph.segments()),
                    "give one list per segment");
    for (const auto& shares : ratios)
        checkShares(shares, machine);
}

ShardingPlan planSharding(const TensorGraph& graph, const Machine& machine, const PlanOptions& options)
{
    if (Diagnostics found = graph.check(); !found.empty())
        throw Error(std::move(found));
    return Planner(graph, machine, options).plan();
}

} // namespace pipewright::sharding
