// SPDX-License-Identifier: GPL-3.0-or-later
// Gathers of parameters that a person states: where the Program has them, what has no effect, edits of them, files.
// That times and bytes follow is tested against a simulation (core/predict/tst_oracle.cpp).
#include "core/files/designfile.h"
#include "core/predict/designcheck.h"
#include "core/predict/editrequest.h"
#include "core/program/compile.h"
#include "core/program/gatheredits.h"
#include "core/program/gatherplan.h"
#include "core/program/transferorder.h"
#include "core/schedule/statedgather.h"
#include "makers/designs.h"
#include "makers/schedules.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

namespace {

/// Stages 0 and 2 on device 0, 1 and 3 on device 1; each visit gathers, right before it.
Design interleaved()
{
    FamilyParameters parameters = test::possibleParameters(*findFamily("interleaved-1f1b"), 2, 4);
    parameters.chunks = 2;
    Design design = test::evenDesign({.saved = 1 << 20}, makeSchedule("interleaved-1f1b", parameters));
    design.schedule.zero = {.level = 3, .reshard = {true, {}}, .prefetch = 0};
    for (StageCosts& stage : design.costs.stages) {
        stage.gatheredParameters = 1 << 20;
        stage.gather = 1000;
    }
    return design;
}

/// A device's blocks and gathers as it issues them: "2UNSHARD F2.0 …".
QString orderOf(const Design& design, int device = 0)
{
    const Program program = compile(design.schedule, design.costs, design.dataflow);
    QStringList words;
    for (const Instruction& instruction : program.devices[static_cast<std::size_t>(device)].instructions)
        if (instruction.kind == InstructionKind::Gather)
            words << QStringLiteral("%1UNSHARD").arg(program.tasks[instruction.task].stage);
        else if (instruction.kind == InstructionKind::Compute)
            words << QString::fromStdString(toString(program.tasks[instruction.task].block()));
    return words.join(' ');
}

Block block(const char* text)
{
    return *parseBlock(text);
}

QString beforeEdits()
{
    return QStringLiteral("0UNSHARD F0.0 F0.1 2UNSHARD F2.0 F2.1 0UNSHARD F0.2 2UNSHARD B2.0 0UNSHARD F0.3 2UNSHARD "
                          "B2.1 F2.2 0UNSHARD B0.0 2UNSHARD F2.3 0UNSHARD B0.1 2UNSHARD B2.2 B2.3 0UNSHARD B0.2 B0.3");
}

Design applied(const Design& design, const Block& reader, const Block& before)
{
    const EditResult result = placeGather(design, reader, before);
    if (!result.legal())
        throw Error(result.diagnostics);
    Design edited = design;
    edited.schedule = result.schedule;
    return edited;
}

} // namespace

class StatedGathersTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void namesAreReadAsTheyAreWritten()
    {
        const Schedule schedule = interleaved().schedule;
        for (const std::vector<Block>& order : schedule.order)
            for (const Block& reader : order)
                QCOMPARE(parseGather(gatherName(reader), schedule), std::optional(reader));
        QCOMPARE(gatherName(block("B2.1")), std::string("2UNSHARD@B1"));
        for (const char* wrong :
             {"", "2UNSHARD", "UNSHARD@F0", "2UNSHARD@", "2UNSHARD@F", "2UNSHARD@X0", "2UNSHARD@U0", "2UNSHARD@F00",
              "02UNSHARD@F0", "2UNSHARD@F4", "2UNSHARD@F0/1", "-1UNSHARD@F0", "2RESHARD@F0", "2UNSHARD@F0 "})
            QVERIFY2(!parseGather(wrong, schedule), wrong);
    }

    void aGatherStandsWhereItIsStated()
    {
        const Design rule = interleaved();
        QCOMPARE(orderOf(rule), beforeEdits());
        const Design early = applied(rule, block("F2.0"), block("F0.0"));
        QCOMPARE(early.schedule.gathers, (std::vector<StatedGather>{{block("F2.0"), block("F0.0")}}));
        QVERIFY2(orderOf(early).startsWith("0UNSHARD 2UNSHARD F0.0 F0.1 F2.0 F2.1 0UNSHARD F0.2"),
                 qPrintable(orderOf(early)));
        // Where an earlier block reads the same, the device holds what it has.
        const Design held = applied(rule, block("B2.0"), block("F2.0"));
        QCOMPARE(held.schedule.gathers, (std::vector<StatedGather>{{block("B2.0"), std::nullopt}}));
        QVERIFY2(orderOf(held).startsWith("0UNSHARD F0.0 F0.1 2UNSHARD F2.0 F2.1 0UNSHARD F0.2 B2.0 0UNSHARD F0.3"),
                 qPrintable(orderOf(held)));
        // Earliest without being held: behind the block that reads it before.
        const Design behind = applied(rule, block("B2.0"), block("F0.2"));
        QVERIFY2(orderOf(behind).contains("F2.1 0UNSHARD 2UNSHARD F0.2 B2.0"), qPrintable(orderOf(behind)));
        // A visit that holds can gather again.
        Design kept = rule;
        kept.schedule.zero.reshard = {};
        const Design again = applied(kept, block("B2.0"), block("B2.0"));
        QCOMPARE(orderOf(kept).count("2UNSHARD"), 1);
        QVERIFY2(orderOf(again).contains("F0.2 2UNSHARD B2.0"), qPrintable(orderOf(again)));
        // More is held, less is waited for.
        const auto peak = [](const Design& design) { return predict(design).metrics.devices[0].peakBytes; };
        QVERIFY(peak(held) > peak(rule));
        QVERIFY(predict(held).metrics.makespan <= predict(rule).metrics.makespan);
    }

    void theRulesOwnPlaceIsNotStated()
    {
        const Design rule = interleaved(), early = applied(rule, block("F2.0"), block("F0.1"));
        QVERIFY(early.schedule != rule.schedule);
        QCOMPARE(applied(early, block("F2.0"), block("F2.0")).schedule, rule.schedule);
        EditResult moved = moveGatherBy(early, block("F2.0"), 1);
        QCOMPARE(moved.schedule, rule.schedule);
        moved = moveGatherBy(rule, block("F2.0"), -1);
        QCOMPARE(moved.schedule, early.schedule);
        Schedule freed = early.schedule;
        QVERIFY(freeGather(freed, block("F2.0")) && freed == rule.schedule);
        QVERIFY(!freeGather(freed, block("F2.0")));
    }

    void placesThatCannotBeAreRefused()
    {
        const Design rule = interleaved();
        const auto why = [](const EditResult& result) {
            return result.legal() ? QString() : QString::fromStdString(toString(result.diagnostics.front()));
        };
        QVERIFY(why(placeGather(rule, block("F2.0"), block("F2.1"))).contains("latest place: before F2.0"));
        QVERIFY(why(moveGatherBy(rule, block("F2.0"), 1)).contains("latest place: before F2.0"));
        QVERIFY(why(moveGatherBy(rule, block("F0.0"), -1)).contains("first block of its device already"));
        QVERIFY(why(placeGather(rule, block("F2.0"), block("F1.0"))).contains("F1.0 does not run on its device"));
        QVERIFY(why(moveGatherBy(rule, block("F2.1"), -1)).contains("nothing is gathered for it"));
        Design whole = rule;
        whole.schedule.zero.level = 1;
        QVERIFY(why(placeGather(whole, block("F2.0"), block("F0.0"))).contains("reads nothing that is gathered"));
        QVERIFY(why(placeGather(rule, block("F2.7"), block("F0.0"))).contains("reads nothing that is gathered"));
    }

    /// Blocks that move may leave a statement behind; it holds again when they come back.
    void whatCannotBeHasNoEffectAndSaysSo()
    {
        const Design rule = interleaved();
        const auto notes = [](const Design& design) {
            QStringList found;
            for (const Diagnostic& each : checkDesign(design))
                if (each.where == "schedule.gathers")
                    found << QString::fromStdString(each.what);
            return found;
        };
        const auto stating = [&](std::vector<StatedGather> gathers) {
            Design design = rule;
            for (const StatedGather& gather : gathers)
                stateGather(design.schedule, gather);
            return design;
        };
        for (const auto& [gather, reason] : std::vector<std::pair<StatedGather, QString>>{
                 {{block("F2.0"), block("F2.1")},
                  "2UNSHARD@F0 before F2.1 has no effect: it would come behind the "
                  "block that reads it"},
                 {{block("B2.0"), block("F2.0")},
                  "2UNSHARD@B0 before F2.0 has no effect: the stage's parameters are "
                  "still there: a block before it reads them"},
                 {{block("F2.0"), block("F1.0")},
                  "2UNSHARD@F0 before F1.0 has no effect: the block before which it "
                  "is to stand is not on its device"},
                 {{block("F2.0"), std::nullopt},
                  "2UNSHARD@F0 held has no effect: it is the first of its stage, so "
                  "there is nothing to keep"},
                 {{block("W2.0"), block("F0.0")},
                  "2UNSHARD@W0 before F0.0 has no effect: its block is not there, or "
                  "reads nothing that is gathered"}}) {
            const Design design = stating({gather});
            QCOMPARE(notes(design), QStringList{reason});
            QCOMPARE(orderOf(design), beforeEdits());
        }
        Design whole = stating({{block("F2.0"), block("F0.0")}});
        QVERIFY(notes(whole).isEmpty());
        whole.schedule.zero.level = 2;
        QCOMPARE(notes(whole).size(), 1);
        QCOMPARE(notes(stating({{block("F2.0"), std::nullopt},
                                {block("F0.0"), std::nullopt},
                                {block("F1.0"), std::nullopt},
                                {block("F3.0"), std::nullopt},
                                {block("W2.0"), std::nullopt}}))
                     .back(),
                 QString("2 more have no effect either"));
    }

    void aSplitBackwardReadsWhatTheWholeOneDid()
    {
        const Design held = applied(interleaved(), block("B2.0"), block("F2.0"));
        const auto design = std::make_shared<const Design>(held);
        const Prediction present = predict(held);
        const EditedDesign split = apply(SplitBackwards{{block("B2.0")}}, design, &present);
        QVERIFY(!hasErrors(split.diagnostics));
        QVERIFY(split.design->schedule.gathers == held.schedule.gathers);
        QVERIFY(orderOf(*split.design).contains("0UNSHARD F0.2 I2.0"));
    }

    void editsAreRequests()
    {
        const auto design = std::make_shared<const Design>(interleaved());
        const Prediction present = predict(*design);
        const EditedDesign moved = apply(MoveGather{block("F2.0"), block("F0.0")}, design, &present);
        QVERIFY(!hasErrors(moved.diagnostics));
        QCOMPARE(moved.design->schedule.gathers.size(), std::size_t{1});
        const EditedDesign back = apply(FreeTransfer{{block("F2.0"), Transfer::gathers}}, moved.design, &present);
        QVERIFY(*back.design == *design);
        QVERIFY(hasErrors(apply(MoveGather{block("F2.0"), std::nullopt, 1}, design, &present).diagnostics));
    }

    /// With transfers whose order is stated too, as an imported schedule has it.
    void transfersKeepTheirStatedOrderBesideGathers()
    {
        Design design = interleaved();
        const QString gathers = orderOf(design);
        design.schedule.transferOrder = {{*parseTransfer("F0.1 to 1"), *parseTransfer("F0.0 to 1")}};
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        const std::vector<IssuedTransfer> sent = transfersOf(program, 0);
        QCOMPARE(textOf(sent[0].transfer), std::string("F0.1 to 1"));
        QCOMPARE(textOf(sent[1].transfer), std::string("F0.0 to 1"));
        QCOMPARE(orderOf(design), gathers);
    }

    void filesSayThem()
    {
        Design design = applied(interleaved(), block("F2.0"), block("F0.0"));
        design = applied(design, block("B2.0"), block("F2.0"));
        QCOMPARE(design.schedule.gathers.size(), std::size_t{2});
        const std::string text = designToJson(design);
        QVERIFY(text.find("2UNSHARD@F0") != std::string::npos);
        QCOMPARE(designFromJson(text, "gathers.json"), design);
        for (const auto& [from, to, fault] : std::vector<std::array<std::string, 3>>{
                 {"2UNSHARD@F0", "9UNSHARD@F0", "this is no gather of the schedule"},
                 {"2UNSHARD@F0", "2UNSHARD@B0", "its place is stated twice"},
                 {R"("before": "F0.0")", R"("before": "F0")", "this is not a block"},
                 {R"("before": "F0.0")", R"("held": false)", "it needs one of"},
                 {R"("held": true)", R"("held": true, "before": "F0.0")", "it needs one of"}}) {
            std::string wrong = text;
            const std::size_t at = wrong.find(from);
            QVERIFY2(at != std::string::npos, from.c_str());
            wrong.replace(at, from.size(), to);
            try {
                (void)designFromJson(wrong, "gathers.json");
                QFAIL(fault.c_str());
            } catch (const Error& error) {
                QVERIFY2(std::string(error.what()).find(fault) != std::string::npos, error.what());
            }
        }
    }
};

PIPEWRIGHT_TEST(StatedGathersTest, NoApplication)
#include "tst_statedgathers.moc"
