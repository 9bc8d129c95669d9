// SPDX-License-Identifier: GPL-3.0-or-later
// "Measure this machine" of the model window: what can be measured and why not the rest, taken as one step of the
// history, stopped, refused.
#include "core/presets/clusterfile.h"
#include "gui/model/modelwindow.h"
#include "gui/model/thismachine.h"
#include "gui/run/fakeprogram.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QApplication>
#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>
#include <QTabWidget>
#include <QTest>

using namespace pipewright;

namespace {

/// Of four devices, as `devices --measure` writes it.
Cluster measuredCluster()
{
    Cluster cluster;
    cluster.name = "this machine";
    cluster.devices.assign(4, DeviceSpec{"Test GPU", Bytes{1} << 34, 1e12, 1e11, 1});
    cluster.link.latency = 5'000;
    cluster.link.bandwidth = 1e10;
    return cluster;
}

struct ThisMachineFixture {
    QTemporaryDir folder;
    Document document;
    std::unique_ptr<ModelWindow> window;

    /// `body` is what the program does to measure; `$out` is the cluster's file.
    explicit ThisMachineFixture(const QByteArray& body, bool gpu = false)
    {
        document.reset(test::presetDesign());
        window = std::make_unique<ModelWindow>(document);
        window->machine().setProgram(writeScript(
            folder, "fake.sh",
            QByteArray("if [ \"$2\" = --json ]; then echo '{\"host\":{\"available\":true},\"cuda\":{\"available\":")
                + (gpu ? "true,\"gpus\":[{\"name\":\"Test GPU\"}]" : "false,\"reason\":\"no driver here\"")
                + "}}'; exit 0; fi\necho \"$@\" > '" + words().toUtf8()
                + "'\nfor out in \"$@\"; do :; done\necho '{\"fraction\":0.25,\"what\":\"products\"}' >&2\n" + body));
        window->tabs()->setCurrentIndex(ModelWindow::Devices);
        window->show();
        (void)QTest::qWaitForWindowActive(window.get());
    }
    QString words() const { return folder.filePath(QStringLiteral("words")); }
    ThisMachine& machine() { return window->machine(); }
    bool canMeasureGpus() { return machine().choice()->model()->index(1, 0).flags() & Qt::ItemIsEnabled; }
};

} // namespace

class TestThisMachine : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theDesignTakesWhatWasChosenOfThisMachine_data()
    {
        QTest::addColumn<QString>("backend");
        QTest::addRow("threads") << QStringLiteral("host");
        QTest::addRow("GPUs") << QStringLiteral("cuda");
    }
    void theDesignTakesWhatWasChosenOfThisMachine()
    {
        QFETCH(QString, backend);
        QTemporaryDir made;
        QFile file(made.filePath(QStringLiteral("cluster.json")));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(QByteArray::fromStdString(clusterFileText(measuredCluster(), "measured", "a test")));
        file.close();
        ThisMachineFixture fixture("cp '" + file.fileName().toUtf8() + "' \"$out\"\n", true);
        QTRY_VERIFY_WITH_TIMEOUT(fixture.canMeasureGpus(), 20'000);
        fixture.machine().choice()->setCurrentIndex(fixture.machine().choice()->findData(backend));
        const Cluster before = fixture.document.design().cluster;
        QSignalSpy measured(&fixture.machine(), &ThisMachine::measured);
        fixture.machine().button()->click();
        QVERIFY(measured.wait(60'000));
        const Cluster& now = fixture.document.design().cluster;
        QCOMPARE(now.name, std::string("this machine"));
        QCOMPARE(now.devices.size(), before.devices.size());
        QCOMPARE(now.devices.front().name, std::string("Test GPU"));
        QCOMPARE(fixture.machine().state(), QStringLiteral("measured"));
        QFile words(fixture.words());
        QVERIFY(words.open(QIODevice::ReadOnly));
        const QString said = QString::fromUtf8(words.readAll());
        QVERIFY2(
            said.startsWith(
                QStringLiteral("devices --measure --backend %1 --devices %2 ").arg(backend).arg(now.devices.size())),
            qPrintable(said));
        fixture.document.undoStack()->undo();
        QVERIFY(fixture.document.design().cluster == before);
    }

    void gpusThatCannotBeMeasuredSayWhy()
    {
        ThisMachineFixture fixture({});
        QTRY_VERIFY_WITH_TIMEOUT(fixture.machine().state().contains(QLatin1String("no driver here")), 20'000);
        QVERIFY(!fixture.canMeasureGpus());
        QCOMPARE(fixture.machine().choice()->currentData().toString(), QStringLiteral("host"));
    }

    void measuringThisMachineCanBeStopped()
    {
        ThisMachineFixture fixture("exec sleep 60\n");
        const Cluster before = fixture.document.design().cluster;
        QSignalSpy stopped(&fixture.machine(), &ThisMachine::stopped);
        fixture.machine().button()->click();
        QTRY_VERIFY_WITH_TIMEOUT(fixture.machine().state().startsWith(QLatin1String("25 %: products")), 20'000);
        QCOMPARE(fixture.machine().button()->text(), QStringLiteral("Stop"));
        fixture.machine().button()->click();
        QVERIFY(stopped.wait(60'000));
        QCOMPARE(fixture.machine().state(), QStringLiteral("cancelled"));
        QVERIFY(fixture.document.design().cluster == before);
        QCOMPARE(fixture.machine().button()->text(), QStringLiteral("Measure this machine"));
    }

    void aMeasurementThatFailsSaysWhatItWasTold()
    {
        ThisMachineFixture fixture("echo '--devices: more than can run here' >&2; exit 2\n");
        QSignalSpy stopped(&fixture.machine(), &ThisMachine::stopped);
        fixture.machine().button()->click();
        QVERIFY(stopped.wait(60'000));
        QCOMPARE(fixture.machine().state(), QStringLiteral("Devices: more than can run here"));
    }
};

PIPEWRIGHT_TEST(TestThisMachine, QApplication)
#include "tst_thismachine.moc"
