// SPDX-License-Identifier: GPL-3.0-or-later
// A* without memory limits first. If its program does not fit, a price of memory found by bisection (one search per
// round) gives programs and a lower bound; a search with memory in the state then closes the gap.
#include "core/sharding/synthesis.h"

#include "core/sharding/astar.h"

#include <algorithm>

namespace pipewright::sharding {

namespace {

constexpr int beamWidth = 12;
constexpr int priceRounds = 24;

double shareFilled(const std::vector<double>& bytes, const Machine& machine)
{
    double fullest = 0;
    for (int d = 0; d < machine.devices(); ++d)
        if (const double limit = machine.memory[d]; limit > 0)
            fullest = std::max(fullest, bytes[d] / limit);
    return fullest;
}

SynthesisResult resultOf(const Theory& theory, const SearchSpace& space, const AStar& search)
{
    SynthesisResult result;
    for (const auto& moves : search.solutions()) {
        Candidate candidate{space.programOf(moves), 0};
        candidate.cost = costOf(candidate.program, theory.machine(), theory.ratios());
        result.programs.push_back(std::move(candidate));
    }
    result.bound = search.bound();
    result.proved = search.exhausted();
    result.expansions = search.expansions();
    return result;
}

/// Lagrangian relaxation of the memory limits: bisection on one price of filling a device; each round is a whole
/// search. By weak duality the priced cost minus the priced limits is a lower bound.
class PricedSearch {
public:
    PricedSearch(const Theory& theory, const SynthesisOptions& options) : m_theory(theory), m_options(options)
    {
        m_options.programs = 1;
    }

    void search(const SynthesisResult& unlimited)
    {
        m_bound = unlimited.bound;
        const double scale = unlimited.programs.front().cost;
        double low = 0, high = infinite, price = 1; // of filling one device, relative to the whole cost
        for (int round = 0; round < priceRounds && !m_late; ++round) {
            const SearchSpace probe(m_theory);
            std::vector<double> prices;
            double worth = 0;
            for (std::size_t i = 0; i < probe.limitedDevices().size(); ++i) {
                const double limit = probe.memoryLimit(static_cast<int>(i));
                prices.push_back(price * scale / limit);
                worth += price * scale;
            }
            const SearchSpace space(m_theory, prices);
            AStar search(space, m_options, false, infinite);
            search.beam(beamWidth);
            search.run();
            expansions += search.expansions();
            const auto found = search.solutions();
            m_late = !search.exhausted() || m_options.deadline.passed();
            if (found.empty())
                return;
            m_bound = std::max(m_bound, search.bound() - worth);
            Candidate candidate{space.programOf(found.front()), 0};
            candidate.cost = costOf(candidate.program, m_theory.machine(), m_theory.ratios());
            const bool fits =
                devicesOverfull(memoryOf(candidate.program, m_theory.ratios()), m_theory.machine()).empty();
            if (fits && (!best || candidate.cost < best->cost))
                best = std::move(candidate);
            (fits ? high : low) = price;
            price = high == infinite ? price * 8 : low == 0 ? price / 8 : (low + high) / 2;
            if (price > 1e9 || price < 1e-9)
                return;
        }
    }
    double bound() const { return m_bound; }
    std::optional<Candidate> best;
    std::int64_t expansions = 0;

private:
    const Theory& m_theory;
    SynthesisOptions m_options;
    double m_bound = 0;
    bool m_late = false;
};

} // namespace

double SynthesisResult::gap() const
{
    return proved || programs.empty() || programs.front().cost <= 0 ? 0
                                                                    : std::max(0.0, 1 - bound / programs.front().cost);
}

SynthesisResult synthesise(const Theory& theory, const SynthesisOptions& options)
{
    const SearchSpace space(theory);
    AStar free(space, options, false, infinite);
    free.beam(beamWidth);
    free.run();
    SynthesisResult result = resultOf(theory, space, free);
    std::erase_if(result.programs, [&theory](const Candidate& candidate) {
        return !devicesOverfull(memoryOf(candidate.program, theory.ratios()), theory.machine()).empty();
    });
    const bool enough = static_cast<int>(result.programs.size()) >= std::max(1, options.programs);
    if (space.limitedDevices().empty() || enough || !result.proved)
        if (space.limitedDevices().empty() || !result.programs.empty())
            return result;

    const SynthesisResult unlimited = resultOf(theory, space, free);
    PricedSearch priced(theory, options);
    priced.search(unlimited);
    AStar exact(space, options, true, priced.best && options.programs <= 1 ? priced.best->cost : infinite);
    exact.beam(beamWidth);
    exact.run();
    SynthesisResult limited = resultOf(theory, space, exact);
    limited.expansions += unlimited.expansions + priced.expansions;
    if (priced.best && (limited.programs.empty() || limited.programs.front().cost > priced.best->cost * (1 + 1e-12)))
        limited.programs.insert(limited.programs.begin(), *priced.best);
    if (!limited.proved)
        limited.bound = std::max(limited.bound, priced.bound());
    else if (!limited.programs.empty())
        limited.bound = limited.programs.front().cost;
    return limited;
}

ShardingProgram leanestProgram(const Theory& theory)
{
    const SearchSpace probe(theory);
    SynthesisOptions options;
    options.maxExpansions = 200'000;
    ShardingProgram leanest;
    double least = infinite;
    // The limiting device is not known: price each alone, then all together.
    const std::size_t limits = probe.limitedDevices().size();
    for (std::size_t which = 0; which <= limits; ++which) {
        std::vector<double> prices;
        for (std::size_t i = 0; i < limits; ++i)
            prices.push_back((which == limits || which == i ? 1e12 : 1e6) / probe.memoryLimit(static_cast<int>(i)));
        const SearchSpace space(theory, prices);
        AStar search(space, options, false, infinite);
        search.beam(beamWidth);
        search.run();
        if (search.solutions().empty())
            continue;
        ShardingProgram program = space.programOf(search.solutions().front());
        if (const double filled = shareFilled(memoryOf(program, theory.ratios()), theory.machine()); filled < least) {
            least = filled;
            leanest = std::move(program);
        }
    }
    return leanest;
}

} // namespace pipewright::sharding
