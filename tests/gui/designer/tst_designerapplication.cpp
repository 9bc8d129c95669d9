// SPDX-License-Identifier: GPL-3.0-or-later
// What a handler throws ends neither the designer nor the work in it.
#include "gui/designer/designer.h"
#include "gui/designer/designerapplication.h"
#include "gui/designer/mainwindow.h"
#include "gui/document/autosave.h"
#include "testmain.h"

#include <QFile>
#include <QMessageBox>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <QUndoStack>

#include <new>
#include <stdexcept>

using namespace pipewright;

class TestDesignerApplication : public QObject {
    Q_OBJECT

    static QMessageBox* message()
    {
        for (QWidget* widget : QApplication::topLevelWidgets())
            if (auto* box = qobject_cast<QMessageBox*>(widget))
                return box;
        return nullptr;
    }

private Q_SLOTS:
    void anActionThatThrowsIsToldAndTheWorkIsKept_data()
    {
        QTest::addColumn<bool>("memory");
        QTest::addColumn<QString>("says");
        QTest::newRow("memory") << true << "not enough memory";
        QTest::newRow("anything") << false << "an injected fault";
    }
    void anActionThatThrowsIsToldAndTheWorkIsKept()
    {
        QFETCH(bool, memory);
        QFETCH(QString, says);
        const QTemporaryDir folder;
        MainWindow::Options options;
        options.settingsFile = folder.filePath("settings.ini");
        options.traceFolder = folder.filePath("runs");
        options.autosaveFolder = folder.filePath("autosave");
        MainWindow window(options);
        window.document().reset(exampleDesign());
        window.document().undoStack()->resetClean(); // unsaved work
        QVERIFY(!QFile::exists(window.autosave()->path()));

        QTest::ignoreMessage(QtWarningMsg, QRegularExpression("an action failed: .*" + says));
        QTest::ignoreMessage(QtWarningMsg, QRegularExpression("an action failed: .*" + says));
        for (int i = 0; i < 2; ++i) // the second is not told again
            QTimer::singleShot(0, &window, [memory] {
                if (memory)
                    throw std::bad_alloc();
                throw std::runtime_error("an injected fault");
            });
        QTRY_VERIFY(message() != nullptr);
        QTest::qWait(0);
        QVERIFY2(message()->text().contains(says), qPrintable(message()->text()));
        QVERIFY2(message()->text().contains("was autosaved"), qPrintable(message()->text()));
        QVERIFY(QFile::exists(window.autosave()->path()));
        QCOMPARE(window.document().design().name, exampleDesign().name);
        message()->close();
        QTRY_VERIFY(message() == nullptr);
        window.autosave()->finish();
    }
};

PIPEWRIGHT_TEST(TestDesignerApplication, DesignerApplication)
#include "tst_designerapplication.moc"
