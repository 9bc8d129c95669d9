// SPDX-License-Identifier: GPL-3.0-or-later
// "Profile my module": what was measured becomes the design's model in one step of the history; measuring is stopped,
// and everything that can go wrong is said. A script stands in for the program.
#include "core/base/textfile.h"
#include "core/model/layertable.h"
#include "core/presets/layerprofile.h"
#include "gui/model/profiledialog.h"
#include "gui/run/fakeprogram.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QApplication>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTest>

using namespace pipewright;

namespace {

/// A file as `profile` writes it, of so many layers.
std::string profileText(int layers)
{
    LayerProfile profile;
    std::vector<KnownLayer> table(static_cast<std::size_t>(layers));
    for (std::size_t i = 0; i < table.size(); ++i) {
        table[i].name = "Layer " + std::to_string(i);
        table[i].forward = table[i].inputGrad = table[i].weightGrad = 1'000'000;
        table[i].backward = 2'000'000;
        table[i].saved = table[i].savedForWeightGrad = table[i].parameters = table[i].output = 4096;
    }
    profile.shape = tableShape("mine", std::move(table), DataType::Fp32, 2);
    return modelFileText(profile, "measured layer by layer, by a test");
}

struct ProfileFixture {
    QTemporaryDir folder;
    Document document;
    std::unique_ptr<ProfileDialog> dialog;

    /// `body` is what the program does to measure; `$out` is the model's file, `$measured` what it would be.
    explicit ProfileFixture(const QByteArray& body, int layers = 9)
    {
        const QString measured = folder.filePath(QStringLiteral("measured.json"));
        writeFileAtomically(measured.toStdString(), profileText(layers), false);
        document.reset(test::presetDesign());
        dialog = std::make_unique<ProfileDialog>(
            document,
            writeScript(folder, "fake.sh",
                        "measured='" + measured.toUtf8() + "'\necho \"$@\" > '" + words().toUtf8()
                            + "'\nfor out in \"$@\"; do :; done\n"
                            + "echo '{\"progress\":0.25,\"layer\":\"Embedding\",\"layers\":4}' >&2\n" + body),
            QStringLiteral("model.py:build"), QStringLiteral("mypython"));
        dialog->show();
    }
    QString words() const { return folder.filePath(QStringLiteral("words")); }
    QString said() const
    {
        QFile file(words());
        return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
    }
    void press() { dialog->profileButton().click(); }
};

} // namespace

class TestProfileDialog : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatWasMeasuredBecomesTheModelOfTheDesign()
    {
        ProfileFixture opened("cp \"$measured\" \"$out\"\necho 'profile: note: the core was shared' >&2\n");
        const Design before = opened.document.design();
        QCOMPARE(opened.dialog->microbatches().value(), before.schedule.microbatches);
        opened.dialog->microbatches().setValue(6);
        opened.dialog->seconds().setValue(0.25);
        opened.dialog->device().setCurrentIndex(opened.dialog->device().findData(QStringLiteral("host")));
        QSignalSpy profiled(opened.dialog.get(), &ProfileDialog::profiled);
        opened.press();
        QVERIFY(profiled.wait(60'000));
        QCOMPARE(profiled.front().at(0).toString(), QStringLiteral("model.py:build"));
        QVERIFY2(
            opened.said().startsWith(QStringLiteral("profile --torch model.py:build --python mypython --device host "
                                                    "--microbatches 6 --seconds 0.25 ")),
            qPrintable(opened.said()));
        const Design& now = opened.document.design();
        QCOMPARE(now.workload->layers.size(), std::size_t(9));
        QCOMPARE(now.schedule.family, before.schedule.family);
        QCOMPARE(now.schedule.devices(), before.schedule.devices());
        QCOMPARE(now.schedule.microbatches, 6);
        QCOMPARE(now.cluster, before.cluster);
        QVERIFY2(opened.dialog->state().contains(QLatin1String("9 layers")), qPrintable(opened.dialog->state()));
        QVERIFY2(opened.dialog->state().contains(QLatin1String("the core was shared")),
                 qPrintable(opened.dialog->state()));
        QVERIFY(opened.dialog->newScheduleButton().isHidden());
        opened.document.undoStack()->undo();
        QCOMPARE(opened.document.design(), before);
    }

    void progressIsShownAndTheMeasurementCanBeStopped()
    {
        ProfileFixture opened("exec sleep 60\n");
        const Design before = opened.document.design();
        opened.press();
        QTRY_VERIFY_WITH_TIMEOUT(opened.dialog->state().startsWith(QLatin1String("Embedding measured")), 20'000);
        QCOMPARE(opened.dialog->profileButton().text(), QStringLiteral("Stop"));
        opened.press();
        QTRY_COMPARE_WITH_TIMEOUT(opened.dialog->state(), QStringLiteral("Stopped; the design is as it was."), 60'000);
        QCOMPARE(opened.dialog->profileButton().text(), QStringLiteral("Profile"));
        QCOMPARE(opened.document.design(), before);
    }

    void closingTheDialogStopsTheMeasurement()
    {
        ProfileFixture opened("exec sleep 60\n");
        opened.press();
        QTRY_VERIFY_WITH_TIMEOUT(opened.dialog->state().startsWith(QLatin1String("Embedding measured")), 20'000);
        opened.dialog->close();
        QTRY_COMPARE_WITH_TIMEOUT(opened.dialog->state(), QStringLiteral("Stopped; the design is as it was."), 60'000);
    }

    void whatGoesWrongIsSaid_data()
    {
        QTest::addColumn<QByteArray>("body");
        QTest::addColumn<QString>("words");
        QTest::addRow("a fault of the module") << QByteArray(
            "echo 'Traceback (most recent call last):' >&2\necho \"model.py:7: error: NameError: name 'x' is "
            "not defined\" >&2; exit 2\n") << QStringLiteral("model.py:7: NameError: name 'x' is not defined");
        QTest::addRow("no words") << QByteArray("exit 2\n") << QStringLiteral("The measurement failed (exit code 2).");
        QTest::addRow("killed") << QByteArray("kill -9 $$\n")
                                << QStringLiteral("The measurement ended unexpectedly (signal 9). The designer is not "
                                                  "affected.");
        QTest::addRow("no file") << QByteArray("exit 0\n")
                                 << QStringLiteral("Measured, but this design cannot take the model");
    }
    void whatGoesWrongIsSaid()
    {
        QFETCH(QByteArray, body);
        QFETCH(QString, words);
        ProfileFixture opened(body);
        const Design before = opened.document.design();
        opened.press();
        QTRY_VERIFY_WITH_TIMEOUT(opened.dialog->state().startsWith(words), 60'000);
        QCOMPARE(opened.dialog->profileButton().text(), QStringLiteral("Profile"));
        QCOMPARE(opened.document.design(), before);
    }

    void aProgramThatCannotBeStartedAndAMissingModuleAreSaid()
    {
        Document document;
        document.reset(test::presetDesign());
        ProfileDialog dialog(document, QStringLiteral("/nowhere/pipewright"), {}, QStringLiteral("python3"));
        dialog.profileButton().click();
        QCOMPARE(dialog.state(), QStringLiteral("Name your module, as FILE.py:build."));
        dialog.module().setText(QStringLiteral("model.py:build"));
        dialog.profileButton().click();
        QTRY_VERIFY_WITH_TIMEOUT(dialog.state().startsWith(QLatin1String("The measurement could not be started: ")),
                                 20'000);
    }

    void ofAModelThatTheDesignCannotTakeANewScheduleIsOffered()
    {
        ProfileFixture opened("cp \"$measured\" \"$out\"\n", 2); // fewer layers than stages
        const Design before = opened.document.design();
        QSignalSpy wanted(opened.dialog.get(), &ProfileDialog::newScheduleWanted);
        opened.press();
        QTRY_VERIFY_WITH_TIMEOUT(!opened.dialog->newScheduleButton().isHidden(), 60'000);
        QVERIFY2(opened.dialog->state().startsWith(QLatin1String("Measured, but this design cannot take the model")),
                 qPrintable(opened.dialog->state()));
        opened.dialog->newScheduleButton().click();
        QCOMPARE(wanted.size(), 1);
        QVERIFY(wanted.front().front().toString().endsWith(QStringLiteral("/model.json")));
        QCOMPARE(opened.document.design(), before);
    }
};

PIPEWRIGHT_TEST(TestProfileDialog, QApplication)
#include "tst_profiledialog.moc"
