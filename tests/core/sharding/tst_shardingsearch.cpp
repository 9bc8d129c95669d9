// SPDX-License-Identifier: GPL-3.0-or-later
// The search against trying everything, its lower bound against true costs, its limits, and the linear program
// against exact fractions.
#include "core/model/modelgraph.h"
#include "core/sharding/shardingplan.h"
#include "core/sharding/synthesis.h"
#include "core/sharding/tensorgraphs.h"
#include "testmain.h"

#include <QTest>

#include <functional>
#include <numeric>

using namespace pipewright;
using namespace pipewright::sharding;
using namespace pipewright::test;

namespace {

/// What is still to pay from a state, by the moves of the search space but without its bound.
class TrueCosts {
public:
    explicit TrueCosts(const SearchSpace& space) : m_space(space) {}
    double from(int position, const std::vector<Mask>& masks)
    {
        if (position == m_space.positions())
            return 0;
        if (const auto known = m_known.find({position, masks}); known != m_known.end())
            return known->second;
        double best = std::numeric_limits<double>::infinity();
        m_space.forEachMove(position, masks.data(), [&](const Move& move, const std::vector<Mask>& next) {
            consistent = consistent && m_space.atLeast(position) <= move.cost + m_space.atLeast(position + 1) + 1e-9;
            best = std::min(best, move.cost + from(position + 1, next));
        });
        admissible = admissible && m_space.atLeast(position) <= best * (1 + 1e-12) + 1e-12;
        loose = loose || m_space.atLeast(position) > 0;
        return m_known[{position, masks}] = best;
    }
    bool admissible = true, consistent = true, loose = false;

private:
    const SearchSpace& m_space;
    std::map<std::pair<int, std::vector<Mask>>, double> m_known;
};

/// Exact, of integers that stay small.
struct Fraction {
    __int128 over = 0, under = 1;
    Fraction(long long whole = 0) : over(whole) {}
    Fraction(__int128 a, __int128 b)
    {
        const __int128 divisor = gcd(a < 0 ? -a : a, b < 0 ? -b : b);
        over = (b < 0 ? -a : a) / (divisor ? divisor : 1);
        under = (b < 0 ? -b : b) / (divisor ? divisor : 1);
    }
    static __int128 gcd(__int128 a, __int128 b) { return b == 0 ? a : gcd(b, a % b); }
    Fraction operator+(Fraction o) const { return {over * o.under + o.over * under, under * o.under}; }
    Fraction operator-(Fraction o) const { return {over * o.under - o.over * under, under * o.under}; }
    Fraction operator*(Fraction o) const { return {over * o.over, under * o.under}; }
    Fraction operator/(Fraction o) const { return {over * o.under, under * o.over}; }
    bool operator<(Fraction o) const { return over * o.under < o.over * under; }
    bool operator==(Fraction o) const { return over * o.under == o.over * under; }
    double value() const { return static_cast<double>(over) / static_cast<double>(under); }
};

/// Terms of whole numbers: constant + slope · share, and rows whole + split · share <= limit.
struct ExactProblem {
    struct Term {
        std::vector<long long> constant, slope; ///< per device
    };
    int devices = 2;
    std::vector<Term> terms;
    std::vector<std::array<long long, 4>> memory; ///< device, whole, split, limit

    Fraction value(const std::vector<Fraction>& b) const
    {
        Fraction sum;
        for (const Term& term : terms) {
            Fraction longest;
            for (int d = 0; d < devices; ++d) {
                const Fraction line =
                    Fraction(term.constant[std::size_t(d)]) + Fraction(term.slope[std::size_t(d)]) * b[std::size_t(d)];
                longest = longest < line ? line : longest;
            }
            sum = sum + longest;
        }
        return sum;
    }
    bool allows(const std::vector<Fraction>& b) const
    {
        for (const Fraction share : b)
            if (share < Fraction(0))
                return false;
        for (const auto& [d, whole, split, limit] : memory)
            if (Fraction(limit) < Fraction(whole) + Fraction(split) * b[std::size_t(d)])
                return false;
        return true;
    }

    /// A piecewise linear function over a polytope has its minimum where enough of its creases and edges meet.
    std::optional<Fraction> minimum() const
    {
        std::vector<std::vector<Fraction>> planes; // coefficients of the shares, then the right-hand side
        const auto plane = [&](int i, Fraction a, int j, Fraction b, Fraction right) {
            std::vector<Fraction> one(std::size_t(devices) + 1);
            one[std::size_t(i)] = a;
            if (j >= 0)
                one[std::size_t(j)] = b;
            one.back() = right;
            planes.push_back(one);
        };
        for (int d = 0; d < devices; ++d)
            plane(d, 1, -1, 0, 0);
        for (const Term& term : terms)
            for (int i = 0; i < devices; ++i)
                for (int j = i + 1; j < devices; ++j)
                    plane(i, term.slope[std::size_t(i)], j, Fraction(0) - Fraction(term.slope[std::size_t(j)]),
                          term.constant[std::size_t(j)] - term.constant[std::size_t(i)]);
        for (const auto& [d, whole, split, limit] : memory)
            plane(int(d), split, -1, 0, limit - whole);
        std::optional<Fraction> best;
        std::vector<std::size_t> chosen;
        const std::function<void(std::size_t)> choose = [&](std::size_t from) {
            if (chosen.size() + 1 == std::size_t(devices)) {
                std::vector<std::vector<Fraction>> system{std::vector<Fraction>(std::size_t(devices) + 1, Fraction(1))};
                for (const std::size_t c : chosen)
                    system.push_back(planes[c]);
                if (const auto b = solved(system); b && allows(*b))
                    if (const Fraction v = value(*b); !best || v < *best)
                        best = v;
                return;
            }
            for (std::size_t p = from; p < planes.size(); ++p) {
                chosen.push_back(p);
                choose(p + 1);
                chosen.pop_back();
            }
        };
        choose(0);
        return best;
    }

    static std::optional<std::vector<Fraction>> solved(std::vector<std::vector<Fraction>> rows)
    {
        const std::size_t n = rows.size();
        for (std::size_t c = 0; c < n; ++c) {
            std::size_t pivot = c;
            while (pivot < n && rows[pivot][c] == Fraction(0))
                ++pivot;
            if (pivot == n)
                return std::nullopt;
            std::swap(rows[c], rows[pivot]);
            for (std::size_t r = 0; r < n; ++r)
                if (r != c) {
                    const Fraction factor = rows[r][c] / rows[c][c];
                    for (std::size_t k = c; k <= n; ++k)
                        rows[r][k] = rows[r][k] - factor * rows[c][k];
                }
        }
        std::vector<Fraction> x;
        for (std::size_t c = 0; c < n; ++c)
            x.push_back(rows[c][n] / rows[c][c]);
        return x;
    }
};

Machine machineWith(std::vector<double> rates)
{
    Cluster cluster;
    for (const double rate : rates)
        cluster.devices.push_back({"device", 0, rate, 0, 1});
    cluster.link = {"wire", 10'000, 1e9};
    return machineOf(cluster);
}

} // namespace

class ShardingSearchTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void nothingIsCheaperThanWhatIsFound()
    {
        RandomGraphs random(7);
        int communicating = 0, segmented = 0;
        for (int trial = 0; trial < 200; ++trial) {
            const int devices = 1 + random.below(3), segments = 1 + (random.below(4) == 0);
            // Segments square the number of programs: few graphs have two, and they are an operation shorter.
            const TensorGraph graph = random.graph(7 - segments, segments);
            const Machine machine = random.machine(devices);
            const Theory theory(graph, machine, random.ratios(graph.segments(), devices),
                                random.below(4) == 0 ? RuleSet::Published : RuleSet::All);
            const SynthesisResult found = synthesise(theory);
            QCOMPARE(found.programs.size(), std::size_t(1));
            QVERIFY(found.proved);
            const double best = EveryProgram(theory).cheapest();
            QVERIFY2(std::abs(found.programs.front().cost - best) <= 1e-9 * (1 + best),
                     qPrintable(
                         QString("trial %1: %2 instead of %3").arg(trial).arg(found.programs.front().cost).arg(best)));
            QVERIFY(std::abs(found.bound - best) <= 1e-9 * (1 + best));
            communicating += costParts(found.programs.front().program, machine, theory.ratios()).communication > 0;
            segmented += graph.segments() > 1;
        }
        QVERIFY(communicating > 30 && segmented > 15);
    }

    void theLowerBoundIsNeverTooHigh()
    {
        RandomGraphs random(11);
        for (int trial = 0; trial < 200; ++trial) {
            const int devices = 2 + random.below(2);
            const TensorGraph graph = random.graph(8, 1);
            const Theory theory(graph, random.machine(devices), random.ratios(1, devices));
            const SearchSpace space(theory);
            TrueCosts costs(space);
            const double best = costs.from(0, {});
            QVERIFY2(costs.admissible && costs.consistent, qPrintable(QString::number(trial)));
            QVERIFY(costs.loose || best == 0 || parameterElements(graph) == 0
                    || theory.machine().memoryBandwidth[0] == 0);
            QVERIFY(std::abs(synthesise(theory).programs.front().cost - best) <= 1e-9 * (1 + best));
        }
    }

    void programsWithinMemoryAreTheCheapestOnes()
    {
        RandomGraphs random(13);
        constexpr int enough = 500;
        int limited = 0, impossible = 0, undecided = 0;
        for (int trial = 0; trial < 100; ++trial) {
            const TensorGraph graph = random.graph(4, 1);
            Machine machine = random.machine(2);
            const Ratios ratios = random.ratios(1, 2);
            const SynthesisResult free = synthesise(Theory(graph, machine, ratios));
            const std::vector<double> wanted = memoryOf(free.programs.front().program, ratios);
            machine.memory = wanted;
            const std::vector<double> least = memoryOf(leanestProgram(Theory(graph, machine, ratios)), ratios);
            for (std::size_t d = 0; d < 2; ++d)
                machine.memory[d] =
                    std::ceil(std::min(least[d], wanted[d]) + std::abs(wanted[d] - least[d]) * random.real(-0.1, 0.9));
            const Theory theory(graph, machine, ratios);
            const SynthesisResult found = synthesise(theory);
            QVERIFY(found.proved);
            // Every program, cheapest first, until one fits: mostly among the first few.
            Machine roomy = machine;
            roomy.memory.assign(2, 1e15); // so much that it only keeps ways apart that need different memory
            const Theory unlimited(graph, roomy, ratios);
            double best = -1;
            std::size_t seen = 0, asked = 0;
            for (const int count : {20, enough}) {
                SynthesisOptions some;
                some.programs = count;
                asked = static_cast<std::size_t>(count);
                const auto programs = synthesise(unlimited, some).programs;
                for (seen = 0; seen < programs.size() && best < 0; ++seen)
                    if (devicesOverfull(memoryOf(programs[seen].program, ratios), machine).empty())
                        best = programs[seen].cost;
                if (best >= 0 || seen < asked)
                    break;
            }
            if (best < 0) {
                QVERIFY(seen == asked || found.programs.empty());
                undecided += seen == asked;
                ++impossible;
                continue;
            }
            QVERIFY(!found.programs.empty());
            QVERIFY2(found.programs.front().cost <= best * (1 + 1e-9),
                     qPrintable(QString("%1: %2 instead of %3").arg(trial).arg(found.programs.front().cost).arg(best)));
            QVERIFY(devicesOverfull(memoryOf(found.programs.front().program, ratios), machine).empty());
            limited += best > free.programs.front().cost * (1 + 1e-9);
        }
        QVERIFY2(limited > 10 && impossible > 0 && undecided < 5,
                 qPrintable(QString("%1 limited, %2 impossible, of them %3 undecided")
                                .arg(limited)
                                .arg(impossible)
                                .arg(undecided)));
    }

    void theSearchGivesTheSameProgramEveryTime()
    {
        ModelShape shape;
        shape.layers = 2;
        const TensorGraph graph = transformerGraph(shape, {4, 4, 8});
        const Machine machine = machineWith({3e9, 2e9, 1e9});
        const ShardingPlan a = planSharding(graph, machine), b = planSharding(graph, machine);
        QCOMPARE(a.cost, b.cost);
        QVERIFY(a.ratios == b.ratios);
        QCOMPARE(a.expansions, b.expansions);
        QCOMPARE(a.program.instructions.size(), b.program.instructions.size());
        for (std::size_t i = 0; i < a.program.instructions.size(); ++i)
            QCOMPARE(actionText(a.program.instructions[i], graph), actionText(b.program.instructions[i], graph));
    }

    void anEarlyStopStatesTheGap()
    {
        ModelShape shape;
        shape.layers = 4;
        const TensorGraph graph = transformerGraph(shape, {4, 4, 8});
        const Theory theory(graph, machineWith({3e9, 1e9}), {{0.75, 0.25}});
        SynthesisOptions options;
        const SynthesisResult whole = synthesise(theory, options);
        options.maxExpansions = 20;
        const SynthesisResult early = synthesise(theory, options);
        QVERIFY(whole.proved && whole.gap() == 0);
        QVERIFY(!early.proved && early.expansions <= 20 && !early.programs.empty());
        QVERIFY(early.bound > 0 && early.bound <= whole.programs.front().cost);
        QVERIFY(early.programs.front().cost >= whole.programs.front().cost);
        QVERIFY(std::abs(early.gap() - (1 - early.bound / early.programs.front().cost)) < 1e-12);
        // Who no longer waits gets what there is without a search.
        std::stop_source stop;
        stop.request_stop();
        options = {};
        options.deadline.stop = stop.get_token();
        const SynthesisResult stopped = synthesise(theory, options);
        QVERIFY(!stopped.proved && stopped.expansions < whole.expansions && !stopped.programs.empty());
        PlanOptions wanted;
        wanted.deadline.stop = stop.get_token();
        const ShardingPlan plan = planSharding(graph, theory.machine(), wanted);
        QVERIFY(!plan.proved && plan.expansions <= stopped.expansions);
    }

    void theNextBestProgramsComeInOrder()
    {
        RandomGraphs random(17);
        for (int trial = 0; trial < 30; ++trial) {
            const TensorGraph graph = random.graph(5, 1);
            const Theory theory(graph, random.machine(2), random.ratios(1, 2));
            SynthesisOptions options;
            options.programs = 20;
            const auto programs = synthesise(theory, options).programs;
            QVERIFY(std::abs(programs.front().cost - synthesise(theory).programs.front().cost)
                    <= 1e-9 * (1 + programs.front().cost));
            for (std::size_t i = 1; i < programs.size(); ++i)
                QVERIFY(programs[i - 1].cost <= programs[i].cost * (1 + 1e-9));
        }
    }

    void ratiosAreExact()
    {
        RandomGraphs random(23);
        int limited = 0, impossible = 0;
        for (int trial = 0; trial < 300; ++trial) {
            ExactProblem exact;
            exact.devices = 2 + random.below(2);
            RatioProblem problem;
            problem.devices = exact.devices;
            for (int t = 1 + random.below(3); t > 0; --t) {
                ExactProblem::Term& term = exact.terms.emplace_back();
                RatioProblem::Term& lines = problem.terms.emplace_back();
                for (int d = 0; d < exact.devices; ++d) {
                    term.constant.push_back(random.below(6));
                    term.slope.push_back(1 + random.below(30));
                    lines.lines.push_back({double(term.constant.back()), double(term.slope.back()), d, 0});
                }
            }
            for (int d = 0; d < exact.devices; ++d)
                if (random.below(2)) {
                    const long long whole = random.below(10), split = 1 + random.below(20),
                                    limit = 5 + random.below(20);
                    exact.memory.push_back({d, whole, split, limit});
                    problem.memory.push_back({d, double(whole), {double(split)}, double(limit)});
                }
            const auto best = exact.minimum();
            const auto ratios = bestRatios(problem);
            QCOMPARE(ratios.has_value(), best.has_value());
            impossible += !best;
            limited += !exact.memory.empty();
            if (best)
                QVERIFY2(std::abs(valueOf(problem, *ratios) - best->value()) < 1e-12 * (1 + best->value()),
                         qPrintable(QString("%1: %2 instead of %3")
                                        .arg(trial)
                                        .arg(valueOf(problem, *ratios), 0, 'g', 17)
                                        .arg(best->value(), 0, 'g', 17)));
        }
        QVERIFY(limited > 100 && impossible > 10);
    }

    /// Each segment alone is better off with other shares than both together.
    void segmentsGetRatiosOfTheirOwn()
    {
        TensorGraph graph;
        graph.bytesPerElement = 1;
        const int x = graph.addInput("x", {60, 8});
        const int a = graph.add("a", "linear", {x, graph.addParameter("wa", {8, 8})}, {}, 0);
        const int b = graph.add("b", "linear", {a, graph.addParameter("wb", {8, 8}, 1)}, {}, 1);
        graph.add("loss", "sum", {b}, {}, 1);
        Cluster cluster;
        cluster.devices = {{"fast", 0, 2e3, 0, 1}, {"slow", 0, 1e3, 0, 1}};
        cluster.link = {"wire", 0, 1e3};
        const Machine machine = machineOf(cluster);
        const ShardingPlan plan = planSharding(graph, machine);
        QCOMPARE(plan.ratios.size(), std::size_t(2));
        const RatioProblem problem = ratioProblemOf(plan.program, graph, machine, 2);
        QVERIFY(std::abs(valueOf(problem, plan.ratios) - plan.cost) < 1e-9 * plan.cost);
        // Cut differently, pieces have to be exchanged, and that is in the program.
        const Theory theory(graph, machine, {{0.5, 0.5}, {0.75, 0.25}}, RuleSet::Published);
        const SynthesisResult found = synthesise(theory);
        QVERIFY(std::abs(found.programs.front().cost - EveryProgram(theory).cheapest()) < 1e-9);
    }
};

PIPEWRIGHT_TEST(ShardingSearchTest, NoApplication)
#include "tst_shardingsearch.moc"
