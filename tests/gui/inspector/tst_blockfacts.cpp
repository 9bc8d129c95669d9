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
#include "gui/timeline/timelineview.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/timetext.h"
#include "gui/widgets/words.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QApplication>
#include <QLabel>
#include <QTest>

#include <algorithm>

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

    void aForwardSaysWhatItKeepsAndUntilWhichBlock()
    {
        Document document;
        document.reset(test::familyDesign("zb-h1")); // 1 GiB saved per microbatch, half of it until the W
        TimelineView timeline(document);
        Inspector inspector(timeline);
        document.select(Block{Op::F, 1, 0, 0});
        QCOMPARE(inspector.facts().value(QStringLiteral("keeps until W1.0")), sizeText(Bytes{1} << 30));
        QVERIFY(inspector.facts().value(QStringLiteral("frees")).isEmpty());
        document.select(Block{Op::W, 1, 0, 0});
        QVERIFY(inspector.facts().value(QStringLiteral("keeps until W1.0")).isEmpty());
        QVERIFY(!inspector.facts().value(QStringLiteral("frees")).isEmpty());
        document.reset(test::familyDesign("1f1b"));
        document.select(Block{Op::F, 1, 0, 0});
        QCOMPARE(inspector.facts().value(QStringLiteral("keeps until B1.0")), sizeText(Bytes{1} << 30));
    }

    void severalSelectedBlocksAreNotShownAsOne()
    {
        Document document;
        document.reset(test::familyDesign("1f1b"));
        TimelineView timeline(document);
        Inspector inspector(timeline);
        const auto says = [&inspector](const QString& text) {
            const QList<QLabel*> labels = inspector.findChildren<QLabel*>();
            return std::any_of(labels.begin(), labels.end(), [&](QLabel* each) { return each->text().contains(text); });
        };
        document.select(Block{Op::F, 1, 0, 0});
        QVERIFY(!says(QStringLiteral("selected blocks")));
        timeline.selectBlocks({{Op::F, 1, 0, 0}, {Op::F, 1, 1, 0}, {Op::F, 1, 2, 0}});
        QVERIFY(says(QStringLiteral("the last chosen of 3 selected blocks")));
        document.select(Block{Op::F, 1, 2, 0}); // one of them, which ends nothing
        document.select(Block{Op::F, 2, 2, 0});
        QVERIFY(!says(QStringLiteral("selected blocks")));
    }

    void suggestionsFollowTheWaitAndGainSomething()
    {
        MainWindowFixture fixture;
        const auto& list = *fixture.window.findChild<SuggestionList*>();
        int waits = 0;
        for (const Block& block : {Block{Op::I, 0, 0, 0}, Block{Op::I, 1, 0, 0}, Block{Op::I, 0, 5, 0}}) {
            fixture.document().select(block);
            QTRY_VERIFY_WITH_TIMEOUT(!list.isSearching(), 60'000);
            bool before = true; // those that shorten the wait come first
            for (const SuggestionList::Card& card : list.cards()) {
                if (!card.edit)
                    continue;
                QVERIFY(before || card.wait.isEmpty());
                before = !card.wait.isEmpty();
                waits += before;
                QVERIFY2(before || card.edit->makespan < 0 || card.edit->peakBytes < -(Bytes{89} << 30) / 200,
                         qPrintable(card.text + card.gain + card.price));
            }
        }
        qInfo("%d cards shorten a wait", waits);
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
