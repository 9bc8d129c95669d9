// SPDX-License-Identifier: GPL-3.0-or-later
// "This machine" of the model window: measured, taken as one step of the history, stopped.
#include "gui/model/modelwindow.h"
#include "gui/model/thismachine.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QApplication>
#include <QPushButton>
#include <QSignalSpy>
#include <QTabWidget>
#include <QTest>

using namespace pipewright;

namespace {

struct Opened {
    Document document;
    std::unique_ptr<ModelWindow> window;

    Opened()
    {
        document.reset(test::presetDesign());
        window = std::make_unique<ModelWindow>(document);
        window->show();
        (void)QTest::qWaitForWindowActive(window.get());
    }
};

} // namespace

class TestThisMachine : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theDesignTakesThisMachine()
    {
        Opened fixture;
        ThisMachine& machine = fixture.window->machine();
        MachineMeasureOptions quick;
        quick.productSize = 16;
        quick.copyBytes = 4096;
        quick.largeMessage = 4096;
        quick.repetitions = 1;
        quick.atLeast = 0;
        machine.setOptions(quick);
        const Cluster before = fixture.document.design().cluster;
        QSignalSpy measured(&machine, &ThisMachine::measured);
        machine.button()->click();
        QVERIFY(measured.wait(60'000));
        const Cluster& now = fixture.document.design().cluster;
        QCOMPARE(now.name, std::string("this machine"));
        QCOMPARE(now.devices.size(), before.devices.size());
        for (const DeviceSpec& device : now.devices)
            QVERIFY(device.peakFlops > 0 && device.memory > 0 && device.efficiency > 0);
        QVERIFY(now.link.bandwidth > 0);
        fixture.document.undoStack()->undo();
        QVERIFY(fixture.document.design().cluster == before);
    }

    void measuringThisMachineCanBeStopped()
    {
        Opened fixture;
        ThisMachine& machine = fixture.window->machine();
        MachineMeasureOptions endless;
        endless.productSize = 64;
        endless.repetitions = 20'000;
        endless.atLeast = 0;
        machine.setOptions(endless);
        const Cluster before = fixture.document.design().cluster;
        QSignalSpy stopped(&machine, &ThisMachine::stopped);
        machine.button()->click();
        QTRY_VERIFY(!machine.state().isEmpty());
        QCOMPARE(machine.button()->text(), QStringLiteral("Stop"));
        machine.button()->click();
        QVERIFY(stopped.wait(60'000));
        QVERIFY(machine.state().contains(QLatin1String("cancelled")));
        QVERIFY(fixture.document.design().cluster == before);
        QCOMPARE(machine.button()->text(), QStringLiteral("This machine"));
    }
};

PIPEWRIGHT_TEST(TestThisMachine, QApplication)
#include "tst_thismachine.moc"
