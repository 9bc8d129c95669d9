// SPDX-License-Identifier: GPL-3.0-or-later
// How much of a backward makes activations again is seen in its block.
#include "gui/timeline/timelinestage.h"
#include "gui/widgets/theme.h"
#include "testmain.h"

using namespace pipewright;
using namespace pipewright::testing;

class RecomputedShareTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theShareIsDrawnAtTheFrontOfTheBackwardsThatHaveOne()
    {
        Design design = test::familyDesign("1f1b", 2, 2);
        design.schedule.recompute = {Recompute::Full, Recompute::None};
        StageCosts& first = design.costs.stages[0];
        first.recompute = first.forward;
        first.backward += first.recompute;
        first.inputGrad += first.recompute;
        Stage stage(std::move(design));
        const QImage picture = stage.view->viewport()->grab().toImage();
        const double scale = picture.devicePixelRatio();
        const StageCosts& costs = stage.document.design().costs.stages[0];
        const double share = static_cast<double>(costs.recompute) / static_cast<double>(costs.backward);
        const QColor again = Theme::of(*stage.view).fill(Op::R);
        const auto isAgain = [&](const char* block, double part) {
            const QRect rect = stage.view->rectOfBlock(*parseBlock(block));
            const QPointF at(rect.left() + part * rect.width(), rect.top() + 4.5); // above the letters
            return picture.pixelColor((at * scale).toPoint()) == again;
        };
        QVERIFY(share > 0.2 && share < 0.8);
        for (const char* block : {"B0.0", "B0.1"}) {
            QVERIFY(isAgain(block, share * 0.3) && isAgain(block, share * 0.9));
            QVERIFY(!isAgain(block, share * 1.1) && !isAgain(block, 0.95));
        }
        for (const char* block : {"B1.0", "F0.0"})
            QVERIFY(!isAgain(block, 0.1) && !isAgain(block, 0.5));
    }
};

PIPEWRIGHT_TEST(RecomputedShareTest, QApplication)
#include "tst_recomputedshare.moc"
