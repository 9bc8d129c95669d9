// SPDX-License-Identifier: GPL-3.0-or-later
// Copies to the host's memory and back: the rows below a device's transfers.
#include "core/design/redesign.h"
#include "core/program/transferorder.h"
#include "gui/timeline/lanestrip.h"
#include "gui/timeline/timelinestage.h"
#include "makers/designs.h"
#include "testmain.h"

#include <array>
#include <map>
#include <set>

using namespace pipewright;
using namespace pipewright::testing;

class CopyLanesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void copiesToTheHostAndBackStandAtTheirTimesInRowsOfTheirOwn()
    {
        Design design = test::evenDesign({.transfer = 1000, .saved = 1 << 20, .savedForWeightGrad = 1 << 19},
                                         test::possibleSchedule("1f1b", 4, 8));
        design.costs.hostLink = LinkCosts{0, 1048576e3};
        Stage stage(withOffload(design, std::vector<bool>(4, true)));
        stage.view->setLaneHeight(0, 60);
        stage.view->action(QStringLiteral("allTransfers"))->trigger();
        QCOMPARE(stage.view->rectOfLane(0).height(), 60 + LaneStrip::transferLane + 2 * LaneStrip::copyRow);
        const Prediction& prediction = *stage.document.prediction();
        std::map<int, std::set<int>> tops; // by what is carried: over a link, to the host, back
        int copies = 0;
        for (const IssuedTransfer& issued : transfersOf(prediction.program, 0)) {
            const QRect chip = stage.view->rectOfTransfer(0, issued.transfer);
            QVERIFY(!chip.isNull());
            tops[issued.transfer.isHostCopy() ? issued.transfer.destination : 0].insert(chip.top());
            if (!issued.transfer.isHostCopy())
                continue;
            ++copies;
            const double start = stage.view->axis().xOf(static_cast<double>(prediction.timeline.start[issued.task]));
            QVERIFY2(std::abs(chip.left() - start) <= 1.5, qPrintable(stage.view->nameOfTransfer(0, issued.transfer)));
            QVERIFY(stage.view->transferAt(chip.center()) == std::pair(0, issued.transfer));
        }
        QVERIFY(copies >= 4);
        QCOMPARE(tops.size(), std::size_t{3});
        std::set<int> rows;
        for (const auto& [kind, top] : tops) {
            QCOMPARE(top.size(), std::size_t{1});
            rows.insert(*top.begin());
        }
        QCOMPARE(rows.size(), std::size_t{3});
    }

    void aRowOfTooManyTransfersLeavesTheRowsBesideItTheirChips()
    {
        Design design = test::evenDesign({.transfer = 1000, .saved = 1 << 20, .savedForWeightGrad = 1 << 19},
                                         test::possibleSchedule("1f1b", 4, 30));
        design.costs.hostLink = LinkCosts{0, 1048576e3};
        Stage stage(withOffload(design, {true, false, false, false}));
        stage.view->action(QStringLiteral("allTransfers"))->trigger();
        stage.view->resize(900, 350);
        std::array<int, 2> narrowest{1000, 1000}; // transfers, copies
        for (const Transfer& transfer : stage.view->visibleTransfers(0)) {
            int& width = narrowest[transfer.isHostCopy() ? 1 : 0];
            width = std::min(width, stage.view->rectOfTransfer(0, transfer).width());
        }
        QVERIFY2(narrowest[0] < 8, qPrintable(QString::number(narrowest[0])));
        QVERIFY2(narrowest[1] >= 14 && narrowest[1] < 1000, qPrintable(QString::number(narrowest[1])));
    }
};

PIPEWRIGHT_TEST(CopyLanesTest, QApplication)
#include "tst_copylanes.moc"
