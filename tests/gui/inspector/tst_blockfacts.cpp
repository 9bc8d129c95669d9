// SPDX-License-Identifier: GPL-3.0-or-later
// What the inspector says of the selected block.
#include "core/design/designbuilder.h"
#include "core/design/newdesign.h"
#include "core/design/redesign.h"
#include "core/predict/predict.h"
#include "core/presets/presets.h"
#include "gui/designer/designer.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/inspector/blockexplanation.h"
#include "gui/inspector/inspector.h"
#include "gui/inspector/suggestionlist.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/timetext.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QApplication>
#include <QTest>

using namespace pipewright;

class BlockFactsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aBackwardThatRecomputesSaysHowLong()
    {
        MainWindowFixture fixture;
        NewDesign choice;
        const PresetLibrary presets;
        choice.workload = presets.workload("llama-3-8b");
        choice.cluster = presets.cluster("h200-node", 4);
        choice.family = "1f1b";
        std::vector<Recompute> first(4, Recompute::None);
        first.front() = Recompute::Full;
        const Design design = withRecompute(designFromModel(choice), first);
        fixture.document().reset(design);
        const FactList& facts = fixture.window.inspector().facts();
        fixture.document().select(Block{Op::B, 0, 1, 0});
        QVERIFY(design.costs.stages[0].recompute > 0);
        QTRY_COMPARE(facts.value(QStringLiteral("recomputes")), durationText(design.costs.stages[0].recompute));
        fixture.document().select(Block{Op::B, 1, 1, 0});
        QTRY_VERIFY(facts.value(QStringLiteral("recomputes")).isEmpty());
    }

    void aBlockSaysThatItWaitsForItsParameters()
    {
        DesignRequest request = test::requestFor("1f1b", 2, 4);
        request.model = "llama-3-8b";
        request.cluster = "h100-nodes";
        request.parallel = Parallelism{.data = 8};
        request.zero.level = 3;
        const Design design = makeDesign(request);
        const std::optional<BlockAnswers> answers = explainBlock(design, predict(design), Block{Op::F, 0, 0, 0});
        QVERIFY(answers);
        QCOMPARE(answers->idleBefore, design.costs.stages[0].gather);
        QVERIFY2(answers->why.contains("waiting for its device to gather parameters of stage 0 for F0.0"),
                 qPrintable(answers->why));
        Suggestion held{{}, design.schedule};
        Design freed = design;
        freed.schedule.zero.reshard = {false, {1}};
        QCOMPARE(suggestionText(freed, held), QStringLiteral("Hold the gathered parameters of stage 1"));
        freed.schedule.zero.reshard = {true, {}};
        QCOMPARE(suggestionText(freed, held), QStringLiteral("Hold the gathered parameters of all stages"));
    }
};

PIPEWRIGHT_TEST(BlockFactsTest, QApplication)
#include "tst_blockfacts.moc"
