// SPDX-License-Identifier: GPL-3.0-or-later
// What becomes of a step when all its times, bytes or rates change together, or one of them gets better.
#include "core/design/redesign.h"
#include "core/files/locateddesign.h"
#include "core/predict/evaluator.h"
#include "core/predict/predict.h"
#include "core/search/search.h"
#include "makers/designs.h"
#include "relations/question.h"
#include "testmain.h"

using namespace pipewright;
using namespace pipewright::test;

namespace {

std::vector<LinkCosts*> linksOf(Costs& costs)
{
    std::vector<LinkCosts*> links{&costs.link};
    for (auto& [pair, link] : costs.linkOfPair)
        links.push_back(&link);
    for (NodeLinks::Node& node : costs.nodeLinks.nodes)
        links.insert(links.end(), {&node.network, &node.beyondSwitch});
    if (costs.hostLink)
        links.push_back(&*costs.hostLink);
    return links;
}

Nanoseconds step(const Design& design)
{
    return predict(design).metrics.makespan;
}

/// Every time times `factor`. Links must have no bandwidth.
Design longer(Design design, Nanoseconds factor)
{
    for (StageCosts& stage : design.costs.stages) {
        for (const Op op : allOps)
            stage.*timeField(op) *= factor;
        stage.reduceGradients *= factor;
        stage.gather *= factor;
        for (std::vector<BlockPart>& parts : stage.parts)
            for (BlockPart& part : parts)
                part.time *= factor;
    }
    for (LinkCosts* link : linksOf(design.costs))
        link->latency *= factor;
    design.costs.reduce *= factor;
    for (Pin& pin : design.schedule.pins)
        pin.earliestStart *= factor;
    return design;
}

} // namespace

class ScalingTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void allTimesTimesFourAreAStepTimesFour()
    {
        RELATION_HOLDS(brokenRelation(40, {}, [](const Question& question, Draw& draw) -> Answer {
            Design design = question.design;
            for (LinkCosts* link : linksOf(design.costs)) {
                link->latency = link->transferTime(Bytes{draw.upTo(100)} << 20);
                link->bytesPerSecond = 0;
            }
            for (StageCosts& stage : design.costs.stages)
                stage.update -= stage.update % 840; // up to 8 replicas share it out without a remainder
            return unequal("four times the step", 4 * step(design), step(longer(design, 4)));
        }));
    }

    void bytesAndBandwidthsTogetherChangeNothing()
    {
        RELATION_HOLDS(brokenRelation(40, {}, [](const Question& question, Draw&) -> Answer {
            const Design& design = question.design;
            if (design.schedule.sharesOptimizer()) // shares of whole values
                return otherQuestion;
            Design larger = design;
            for (StageCosts& stage : larger.costs.stages)
                forEachByteField(stage, [](std::string_view, Bytes& bytes) { bytes *= 4; });
            for (SharedParameter& shared : larger.dataflow.shared)
                shared.bytes *= 4;
            for (LinkCosts* link : linksOf(larger.costs))
                link->bytesPerSecond *= 4;
            return unequal("the step", step(design), step(larger));
        }));
    }

    void aClusterTwiceAsFastTakesHalfTheStep()
    {
        RELATION_HOLDS(brokenRelation(40, {}, [](const Question& question, Draw&) -> Answer {
            const Design& design = question.design;
            Cluster fast = design.cluster;
            for (DeviceSpec& device : fast.devices) {
                device.peakFlops *= 2;
                device.memoryBandwidth *= 2;
            }
            for (LinkSpec* link : {&fast.link, &fast.nodes.network}) {
                link->bandwidth *= 2;
                link->latency /= 2;
            }
            if (fast.hostLink) {
                fast.hostLink->bandwidth *= 2;
                fast.hostLink->latency /= 2;
            }
            Design faster = withCluster(design, fast);
            for (Pin& pin : faster.schedule.pins)
                pin.earliestStart /= 2;
            // Rounding may change who is ready first at a bus, and so is served first.
            const double apart = question.prediction.program.busOfLink.empty() ? 1e-4 : 1e-2;
            return unlike("half the step", double(step(design)) / 2, double(step(faster)), apart);
        }));
    }

    /// Of one program, task by task: its orders stay as they are. Buses serve whoever is ready first, which is another
    /// order.
    void whatIsFasterMakesNothingLater()
    {
        RELATION_HOLDS(brokenRelation(40, {}, [](const Question& question, Draw& draw) -> Answer {
            const Design& design = question.design;
            const Program& program = question.prediction.program;
            if (!program.busOfLink.empty())
                return otherQuestion;
            const Timeline& before = question.prediction.timeline;
            Timeline after;
            for (int change = 0; change < 5; ++change) {
                Costs better = design.costs;
                for (LinkCosts* link : linksOf(better)) {
                    link->bytesPerSecond *= draw.oneIn(2) ? draw.between(1, 3) : 1;
                    link->latency /= draw.upTo(3);
                }
                for (StageCosts& stage : better.stages)
                    if (draw.oneIn(3)) {
                        const Op op = draw.of(allOps);
                        stage.*timeField(op) =
                            static_cast<Nanoseconds>(double(stage.*timeField(op)) * draw.between(0, 1));
                        stage.fitParts();
                    }
                Evaluator(program, better).evaluate(after);
                for (TaskId t = 0; t < program.tasks.size(); ++t)
                    if (after.end[t] > before.end[t])
                        return unequal("the end of a task", before.end[t], after.end[t]);
            }
            return holds;
        }));
    }

    void moreMemoryNeverMakesTheBestOrderLonger()
    {
        unsigned seed = std::random_device()();
        for (int round = 0; round < 6; ++round, ++seed) {
            Draw draw(seed);
            const Design design = timedDesign(draw.oneIn(2) ? "1f1b" : "zb-h1", 2, 2 + draw.upTo(2), draw.upTo(9),
                                              draw.upTo(9), draw.upTo(9), Bytes{draw.upTo(1000)});
            Nanoseconds last = 0;
            for (const double factor : {2.0, 1.5, 1.0, 0.5}) {
                SearchOptions options;
                options.limit.factor = factor;
                options.seed = seed;
                const SearchResult found = search(design, options);
                QVERIFY2(!found.proved || found.value >= last, qPrintable(QString("seed %1").arg(seed)));
                QCOMPARE(found.value, predict([&] {
                                          Design best = design;
                                          best.schedule = found.schedule;
                                          return best;
                                      }())
                                          .metrics.makespan);
                if (found.proved)
                    last = found.value;
            }
        }
    }
};

PIPEWRIGHT_TEST(ScalingTest, NoApplication)
#include "tst_scaling.moc"
