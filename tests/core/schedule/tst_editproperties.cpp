// SPDX-License-Identifier: GPL-3.0-or-later
// Edits at random on every family: what is accepted runs, with its memory accounting equal to a recount block
// by block, and what is refused is refused for the reason that a slow oracle finds.
#include "core/families/family.h"
#include "core/predict/predict.h"
#include "core/program/lifetimes.h"
#include "core/schedule/edits.h"
#include "makers/costs.h"
#include "makers/schedules.h"
#include "testmain.h"

#include <QTest>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// A small schedule of any family.
Schedule anySchedule()
{
    // Updates amid the run have rules of their own: tst_weightversions.cpp.
    std::vector<Family> plain;
    std::copy_if(families().begin(), families().end(), std::back_inserter(plain),
                 [](const Family& f) { return !f.updates; });
    const Family& family = plain[*rc::gen::inRange<std::size_t>(0, plain.size())];
    return makeSchedule(family.name, possibleParameters(family, *rc::gen::inRange(1, 5), *rc::gen::inRange(1, 9)));
}

std::vector<Block> placedBlocks(const Schedule& schedule)
{
    std::vector<Block> blocks;
    for (const auto& lane : schedule.order)
        blocks.insert(blocks.end(), lane.begin(), lane.end());
    return blocks;
}

/// All that a block waits for, wherever it is; pieces of a sequence included.
std::vector<Block> inputsOf(const Schedule& s, const std::set<Block>& placed, const Block& b)
{
    std::vector<Block> inputs;
    const auto add = [&](Op op, int stage, int microbatch) {
        const Block input{op, stage, microbatch, b.replica};
        if (placed.count(input))
            inputs.push_back(input);
    };
    const int piece = b.microbatch % s.sequencePieces;
    if (b.op == Op::F) {
        add(Op::F, b.stage - 1, b.microbatch);
        if (piece > 0)
            add(Op::F, b.stage, b.microbatch - 1);
    } else if (b.op == Op::W) {
        add(Op::I, b.stage, b.microbatch);
    } else {
        add(Op::F, b.stage, b.microbatch);
        for (const Op op : {Op::B, Op::I}) {
            add(op, b.stage + 1, b.microbatch);
            if (piece + 1 < s.sequencePieces)
                add(op, b.stage, b.microbatch + 1);
        }
    }
    return inputs;
}

enum class Verdict { Legal, NeedsLater, FirstStageSplit, Circle };

/// Runs the lists by brute force: again and again, whatever can run.
Verdict judge(const Schedule& s)
{
    const std::vector<Block> all = placedBlocks(s);
    const std::set<Block> placed(all.begin(), all.end());
    for (const auto& lane : s.order)
        for (std::size_t i = 0; i < lane.size(); ++i) {
            const std::vector<Block> inputs = inputsOf(s, placed, lane[i]);
            for (std::size_t k = i + 1; k < lane.size(); ++k)
                if (lane[k].stage == lane[i].stage && std::count(inputs.begin(), inputs.end(), lane[k]))
                    return Verdict::NeedsLater;
        }
    if (!s.firstStageMaySplit)
        for (const auto& lane : s.order)
            for (std::size_t i = 0; i < lane.size(); ++i)
                if (lane[i].op == Op::I && lane[i].stage == 0
                    && (i + 1 == lane.size() || lane[i + 1] != Block{Op::W, 0, lane[i].microbatch, lane[i].replica}))
                    return Verdict::FirstStageSplit;
    std::set<Block> done;
    std::vector<std::size_t> next(s.order.size(), 0);
    for (bool progress = true; progress;) {
        progress = false;
        for (std::size_t d = 0; d < s.order.size(); ++d) {
            const auto& lane = s.order[d];
            if (next[d] == lane.size())
                continue;
            const std::size_t first = next[d];
            const bool pair =
                first + 1 < lane.size()
                && std::count(s.overlaps.begin(), s.overlaps.end(), Overlap{lane[first], lane[first + 1]});
            bool ready = true;
            for (std::size_t i = first; i <= first + pair; ++i)
                for (const Block& input : inputsOf(s, placed, lane[i]))
                    ready = ready && done.count(input);
            if (!ready)
                continue;
            for (std::size_t i = first; i <= first + pair; ++i)
                done.insert(lane[i]);
            next[d] += 1 + pair;
            progress = true;
        }
    }
    return done.size() == all.size() ? Verdict::Legal : Verdict::Circle;
}

const char* wordsOf(Verdict verdict)
{
    switch (verdict) {
    case Verdict::Legal: return "";
    case Verdict::NeedsLater: return "it needs";
    case Verdict::FirstStageSplit: return "does not follow at once";
    case Verdict::Circle: return "wait for each other";
    }
    return "";
}

/// Most activations at a time on a device, in microbatches of one device.
double peakActivations(const Schedule& s, std::size_t device)
{
    int live = 0, most = 0;
    for (const Block& b : s.order[device]) {
        live += b.op == Op::F ? 1 : b.op == Op::I ? 0 : -1;
        most = std::max(most, live);
    }
    return static_cast<double>(most) / (s.chunks() * s.sequencePieces);
}

} // namespace

class EditPropertiesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void acceptedMovesRunAndTheirMemoryIsThatOfARecount()
    {
        QVERIFY(rc::check("moves", [] {
            Schedule s = anySchedule();
            const std::vector<Block> all = placedBlocks(s);
            const int steps = *rc::gen::inRange(1, 10);
            for (int i = 0; i < steps; ++i) {
                const Block b = *rc::gen::elementOf(all);
                const Position at = find(s, b);
                const int length = static_cast<int>(s.order[at.device].size());
                // Near moves are legal more often than far ones.
                const int index =
                    *rc::gen::oneOf(rc::gen::inRange(0, length + 1),
                                    rc::gen::inRange(std::max(0, at.index - 3), std::min(length, at.index + 4) + 1));
                const EditResult r = moveBlock(s, b, index);
                const Verdict verdict = judge(r.schedule);
                RC_ASSERT(r.legal() == (verdict == Verdict::Legal));
                if (r.legal())
                    s = r.schedule;
                else
                    RC_ASSERT(toString(r.diagnostics).find(wordsOf(verdict)) != std::string::npos);
            }
            Design design;
            design.schedule = s;
            design.costs = unitCosts(s.stages());
            if (s.sequencePieces > 1)
                for (StageCosts& stage : design.costs.stages)
                    stage.sequenceGradient = 11;
            const Program program = predict(design).program;
            RC_ASSERT(program.computeCount() == s.blocks());
            RC_ASSERT(checkLifetimes(program).toStdString() == std::string());
            for (std::size_t d = 0; d < program.devices.size(); ++d)
                RC_ASSERT(program.devices[d].peakActivations == peakActivations(s, d));
        }));
    }

    void stagesMoveWithAllTheirBlocksOrNotAtAll()
    {
        QVERIFY(rc::check("stages", [] {
            const Schedule s = anySchedule();
            const int stage = *rc::gen::inRange(0, s.stages()), device = *rc::gen::inRange(0, s.devices());
            const int replica = *rc::gen::inRange(0, s.replicas());
            Design design;
            design.schedule = s;
            design.costs = unitCosts(s.stages());
            const Prediction p = predict(design);
            std::map<Block, Nanoseconds> start;
            for (TaskId t = 0; t < p.program.tasks.size(); ++t)
                if (p.program.tasks[t].kind == TaskKind::Compute)
                    start[p.program.tasks[t].block()] = p.timeline.start[t];
            const EditResult r = moveStage(
                s, stage, device, [&](const Block& b) { return start.at(b); }, {}, replica);
            RC_ASSERT(r.legal() == (judge(r.schedule) == Verdict::Legal));
            if (!r.legal())
                return;
            RC_ASSERT(r.schedule.blocks() == s.blocks());
            for (const Block& b : placedBlocks(r.schedule))
                RC_ASSERT(find(r.schedule, b).device == r.schedule.deviceOf(b));
            design.schedule = r.schedule;
            RC_ASSERT(checkLifetimes(predict(design).program).toStdString() == std::string());
        }));
    }

    void blocksThatAreWrongInThemselvesAreRefusedByName()
    {
        QVERIFY(rc::check("placing", [] {
            const Schedule s = anySchedule();
            const Block b = *rc::gen::elementOf(placedBlocks(s));
            const auto refused = [&](const Block& block, const char* words) {
                const EditResult r = placeBlock(s, block, *rc::gen::inRange(0, 3));
                RC_ASSERT(!r.legal());
                RC_ASSERT(toString(r.diagnostics).find(words) != std::string::npos);
            };
            refused(b, "placed twice");
            refused({b.op, s.stages(), b.microbatch, b.replica}, "unknown stage");
            refused({b.op, b.stage, s.microbatches, b.replica}, "unknown microbatch");
            refused({b.op, b.stage, b.microbatch, s.replicas()}, "unknown replica");
            refused({Op::R, b.stage, b.microbatch, b.replica}, "has no R blocks");
            if (b.op == Op::B)
                refused({Op::I, b.stage, b.microbatch, b.replica}, "full backward");
        }));
    }
};

PIPEWRIGHT_TEST(EditPropertiesTest, NoApplication)
#include "tst_editproperties.moc"
