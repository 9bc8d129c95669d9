// SPDX-License-Identifier: GPL-3.0-or-later
// The search beside the design: found and kept by mouse and by key, cancelled, refused with the reason, and bound
// to what may move.
#include "gui/search/searchcurve.h"
#include "gui/search/searchwindow.h"
#include "gui/widgets/theme.h"
#include "makers/designs.h"
#include "testmain.h"

#include "core/schedule/validate.h"

#include <QApplication>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

#include <algorithm>

using namespace pipewright;

namespace {

struct SearchFixture {
    Document document;
    std::vector<Block> selected;
    std::unique_ptr<SearchWindow> window;
    std::unique_ptr<QSignalSpy> finished;

    explicit SearchFixture(const char* family = "gpipe", int devices = 3, int microbatches = 5)
    {
        document.reset(test::familyDesign(family, devices, microbatches));
        window = std::make_unique<SearchWindow>(document, [this] { return selected; });
        finished = std::make_unique<QSignalSpy>(window.get(), &SearchWindow::finished);
        window->show();
        (void)QTest::qWaitForWindowActive(window.get());
        window->secondsBox()->setValue(20);
    }
    bool done()
    {
        return QTest::qWaitFor([this] { return !finished->isEmpty(); }, 120'000);
    }
    void searchByMouse() { QTest::mouseClick(window->button(), Qt::LeftButton); }
};

std::vector<Block> without(const std::vector<Block>& lane, const std::vector<Block>& left)
{
    std::vector<Block> kept;
    std::copy_if(lane.begin(), lane.end(), std::back_inserter(kept),
                 [&](const Block& block) { return std::find(left.begin(), left.end(), block) == left.end(); });
    return kept;
}

} // namespace

class TestSearchWindow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void aBetterOrderIsFoundProvedAndKeptAsOneUndoableCommand()
    {
        SearchFixture fixture("zb-h1", 3, 6);
        const Design before = fixture.document.design();
        const Nanoseconds makespan = fixture.document.prediction()->metrics.makespan;
        fixture.window->limitBox()->setCurrentIndex(1);
        fixture.window->factorBox()->setValue(2);
        QVERIFY(!fixture.window->keepButton()->isEnabled());
        fixture.searchByMouse();
        QVERIFY(fixture.done());
        QVERIFY2(fixture.window->result(), qPrintable(fixture.window->state()));
        const SearchResult found = *fixture.window->result();
        QVERIFY(found.value <= makespan);
        QVERIFY(found.bound.value <= found.value);
        QVERIFY(!fixture.window->curve().points().empty());
        QCOMPARE(fixture.window->curve().points().back().best, found.value);
        QCOMPARE(fixture.document.design(), before); // nothing changes before it is kept
        QVERIFY(fixture.window->keepButton()->isEnabled());
        fixture.window->keepButton()->setFocus();
        QTest::keyClick(fixture.window->keepButton(), Qt::Key_Space);
        QCOMPARE(fixture.document.prediction()->metrics.makespan, found.value);
        QVERIFY(!fixture.window->keepButton()->isEnabled());
        fixture.document.undoStack()->undo();
        QCOMPARE(fixture.document.design(), before);
    }

    void onlyTheSelectedBlocksMove()
    {
        SearchFixture fixture("zb-h1", 3, 5);
        const Schedule before = fixture.document.design().schedule;
        fixture.selected = {{Op::W, 1, 0}, {Op::W, 1, 1}, {Op::W, 1, 2}};
        fixture.window->limitBox()->setCurrentIndex(1);
        fixture.window->factorBox()->setValue(3);
        fixture.window->setScope(SearchWindow::Scope::Selected);
        QTest::keyClick(fixture.window.get(), Qt::Key_Return);
        QVERIFY(fixture.done());
        QVERIFY2(fixture.window->result(), qPrintable(fixture.window->state()));
        const Schedule& after = fixture.window->result()->schedule;
        for (std::size_t d = 0; d < before.order.size(); ++d)
            QCOMPARE(without(after.order[d], fixture.selected), without(before.order[d], fixture.selected));
    }

    void withNothingSelectedItSaysWhatToDo()
    {
        SearchFixture fixture;
        fixture.window->setScope(SearchWindow::Scope::Selected);
        fixture.searchByMouse();
        QVERIFY(!fixture.window->isRunning());
        QVERIFY2(fixture.window->state().contains(QLatin1String("select")), qPrintable(fixture.window->state()));
    }

    void unplacedBlocksAreCompletedAroundThePlacedOnes()
    {
        SearchFixture fixture("1f1b", 3, 4);
        const std::vector<Block> lifted{{Op::F, 1, 2}, {Op::B, 1, 2}, {Op::B, 0, 3}};
        QVERIFY(fixture.document.apply(UnplaceBlocks{lifted}).empty());
        const Schedule placed = fixture.document.design().schedule;
        QCOMPARE(fixture.window->scopeBox()->currentIndex(), int(SearchWindow::Scope::Unplaced));
        fixture.window->limitBox()->setCurrentIndex(1);
        fixture.window->factorBox()->setValue(4);
        fixture.searchByMouse();
        QVERIFY(fixture.done());
        QVERIFY2(fixture.window->result(), qPrintable(fixture.window->state()));
        QTest::mouseClick(fixture.window->keepButton(), Qt::LeftButton);
        const Schedule& whole = fixture.document.design().schedule;
        QVERIFY(unplacedBlocks(whole).empty());
        QVERIFY(validate(whole, {}).empty());
        for (std::size_t d = 0; d < placed.order.size(); ++d)
            QCOMPARE(without(whole.order[d], lifted), placed.order[d]);
    }

    void aLimitThatNothingMeetsIsRefusedWithTheReason()
    {
        SearchFixture fixture("1f1b", 4, 8);
        fixture.window->limitBox()->setCurrentIndex(1);
        fixture.window->factorBox()->setValue(0.05);
        fixture.searchByMouse();
        QVERIFY(fixture.done());
        QVERIFY(!fixture.window->result());
        QVERIFY2(fixture.window->state().contains(QLatin1Char('(')),
                 qPrintable(fixture.window->state())); // and what to do
        QVERIFY(!fixture.window->keepButton()->isEnabled());
    }

    void aSizeThatIsNoneIsSaidBeforeAnythingRuns()
    {
        SearchFixture fixture;
        fixture.window->limitBox()->setCurrentIndex(2);
        QTest::keyClicks(fixture.window->sizeBox(), QStringLiteral("much"));
        fixture.searchByMouse();
        QVERIFY(!fixture.window->isRunning());
        QVERIFY2(fixture.window->state().contains(QLatin1String("much")), qPrintable(fixture.window->state()));
    }

    void cancelKeepsTheBestSoFar()
    {
        SearchFixture fixture("gpipe", 6, 24);
        fixture.window->secondsBox()->setValue(600);
        fixture.window->limitBox()->setCurrentIndex(1);
        fixture.window->factorBox()->setValue(0.9);
        fixture.searchByMouse();
        QVERIFY(fixture.window->isRunning());
        QTRY_VERIFY_WITH_TIMEOUT(
            !fixture.window->curve().points().empty() && fixture.window->curve().points().back().best > 0, 60'000);
        if (fixture.finished->isEmpty())
            QTest::mouseClick(fixture.window->button(), Qt::LeftButton);
        QVERIFY(fixture.done());
        QVERIFY2(fixture.window->result(), qPrintable(fixture.window->state()));
        QVERIFY(!fixture.window->isRunning());
        QVERIFY(fixture.window->result()->value > 0);
    }

    void closingTheWindowEndsTheSearch()
    {
        SearchFixture fixture("gpipe", 6, 24);
        fixture.window->secondsBox()->setValue(600);
        fixture.searchByMouse();
        QVERIFY(fixture.window->isRunning());
        fixture.window.reset(); // returns at once rather than after ten minutes
        QVERIFY(fixture.document.prediction());
    }
};

PIPEWRIGHT_TEST(TestSearchWindow, QApplication)
#include "tst_searchwindow.moc"
