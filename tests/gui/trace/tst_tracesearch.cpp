// SPDX-License-Identifier: GPL-3.0-or-later
// The search of a trace finds slices by name, forwards and backwards in time.
#include "gui/trace/activityview.h"
#include "gui/trace/tracewindow.h"
#include "testmain.h"
#include "tracewindowfixture.h"

#include <QApplication>
#include <QLineEdit>
#include <QTest>

#include <memory>
#include <utility>

using namespace pipewright;
using namespace pipewright::test;

class TestTraceSearch : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void searchFindsInOrderOfTimeAndGoesBack()
    {
        TraceWindowFixture fixture;
        QVERIFY(fixture.isOpen());
        QTest::keyClick(&fixture.window, Qt::Key_Slash);
        QTRY_VERIFY(fixture.window.searchField()->hasFocus());
        QTest::keyClicks(fixture.window.searchField(), QStringLiteral("SLOW"));
        for (std::size_t i = 0; i < 4; ++i) {
            QTest::keyClick(fixture.window.searchField(), Qt::Key_Return);
            QVERIFY(fixture.view().selection() == fixture.slice("slow gemm", i));
        }
        QTest::keyClick(fixture.window.searchField(), Qt::Key_Return);
        QVERIFY2(fixture.window.state().contains(QLatin1String("no further")), qPrintable(fixture.window.state()));
        QTest::keyClick(&fixture.window, Qt::Key_F3, Qt::ShiftModifier);
        QVERIFY(fixture.view().selection() == fixture.slice("slow gemm", 2));
    }

    void searchStopsAtEverySliceOfThoseThatStartTogether()
    {
        StoredActivities trace;
        trace.strings = {"sync"};
        trace.lanes.resize(1);
        Track& track = trace.tracks.emplace_back();
        track.start = track.end = {100, 100, 100}; // no length
        track.name = {0, 0, 0};
        track.kind.assign(3, ActivityKind::Kernel);
        track.record = {0, 1, 2};
        track.index();
        ActivityView view;
        view.setTrace(std::make_shared<const StoredActivities>(std::move(trace)));
        for (std::size_t i = 0; i < 3; ++i) {
            QVERIFY(view.find(QStringLiteral("sync"), 1));
            QVERIFY((view.selection() == SliceId{0, i}));
        }
        QVERIFY(!view.find(QStringLiteral("sync"), 1));
        for (std::size_t i = 2; i-- > 0;) {
            QVERIFY(view.find(QStringLiteral("sync"), -1));
            QVERIFY((view.selection() == SliceId{0, i}));
        }
    }
};

PIPEWRIGHT_TEST(TestTraceSearch, QApplication)
#include "tst_tracesearch.moc"
