// SPDX-License-Identifier: GPL-3.0-or-later
// Autosave, recovery after a crash, and the list of recent files.
#include "gui/designer/designer.h"
#include "gui/designer/designfiles.h"
#include "gui/designer/footline.h"
#include "gui/designer/mainwindow.h"
#include "gui/designer/recentfiles.h"
#include "gui/document/autosave.h"
#include "gui/document/document.h"
#include "gui/widgets/runtimefolder.h"
#include "testmain.h"

#include <QApplication>
#include <QDir>
#include <QFile>
#include <QMessageBox>
#include <QProcess>
#include <QProcessEnvironment>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <csignal>
#include <cstdlib>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace pipewright;

namespace {

/// Names the folder, in the environment of the child process of this test that is to die there.
constexpr char crashFolder[] = "PIPEWRIGHT_TEST_CRASH_IN";

/// The example with one edit that is not saved.
void editExample(Document& document)
{
    document.reset(exampleDesign());
    document.apply(UnplaceBlocks{{{Op::W, 0, 7, 0}}});
}

/// An instance that dies with unsaved work.
[[noreturn]] void crashIn(const QString& folder)
{
    Document document;
    Autosave autosave(document, folder);
    editExample(document);
    autosave.flush();
    std::_Exit(9);
}

} // namespace

class TestAutosave : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        if (qEnvironmentVariableIsSet(crashFolder))
            crashIn(qEnvironmentVariable(crashFolder));
    }

    void workOfACrashedInstanceIsOffered()
    {
        QTemporaryDir folder;
        QProcess instance;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert(QLatin1String(crashFolder), folder.path());
        instance.setProcessEnvironment(environment);
        instance.start(QCoreApplication::applicationFilePath(), {QStringLiteral("tst_autosave")});
        QVERIFY(instance.waitForFinished(60000));
        QCOMPARE(instance.exitCode(), 9);
        const auto found = Autosave::abandoned(folder.path());
        QCOMPARE(found.size(), std::size_t(1));
        QVERIFY(found[0].originalPath.isEmpty());
        QVERIFY(found[0].savedAt.isValid());
        QCOMPARE(unplacedBlocks(found[0].design.schedule).size(), std::size_t(1));
        Autosave::discard(found[0]);
        QVERIFY(Autosave::abandoned(folder.path()).empty());
        QVERIFY(QDir(folder.path()).isEmpty());
    }

    void workOfALivingInstanceIsNeverOffered()
    {
        QTemporaryDir folder;
        Document document;
        Autosave autosave(document, folder.path());
        editExample(document);
        autosave.flush();
        QVERIFY(QFile::exists(autosave.path()));
        QVERIFY(Autosave::abandoned(folder.path()).empty());
    }

    void aCleanEndLeavesNothing()
    {
        QTemporaryDir folder;
        Document document;
        Autosave autosave(document, folder.path());
        editExample(document);
        autosave.flush();
        autosave.finish();
        QVERIFY(!QFile::exists(autosave.path()));
        QVERIFY(QDir(folder.path()).isEmpty());
    }

    void changesAreWrittenWithoutBeingAsked()
    {
        QTemporaryDir folder;
        Document document;
        Autosave autosave(document, folder.path());
        autosave.setDelay(1);
        editExample(document);
        QTRY_VERIFY(QFile::exists(autosave.path()));
    }

    void whatIsAutosavedIsForItsOwnerAlone()
    {
        QTemporaryDir folder;
        const QString open = folder.filePath(QStringLiteral("open"));
        QVERIFY(QDir().mkdir(open));
        QCOMPARE(::chmod(qPrintable(open), 0755), 0);
        Document document;
        for (const QString& path : {open, folder.filePath(QStringLiteral("above/new"))}) {
            const Autosave autosave(document, path);
            struct stat status {};
            QCOMPARE(::stat(qPrintable(path), &status), 0);
            QCOMPARE(int(status.st_mode & 07777), 0700);
        }
    }

    void aFolderOfAnotherUserIsRefused()
    {
        QTemporaryDir folder;
        const QString link = folder.filePath(QStringLiteral("link")), other = folder.filePath(QStringLiteral("other"));
        QVERIFY(QFile::link(folder.path(), link));
        QVERIFY(!makePrivateFolder(link));
        if (::geteuid() != 0)
            QSKIP("only root can make a folder of another user");
        QVERIFY(QDir().mkdir(other));
        QCOMPARE(::chown(qPrintable(other), 12345, 12345), 0);
        QVERIFY(!makePrivateFolder(other));
        Document document;
        QVERIFY_THROWS_EXCEPTION(Error, Autosave(document, other));
    }

    void anUnchangedDesignIsNotWritten()
    {
        QTemporaryDir folder;
        Document document;
        Autosave autosave(document, folder.path());
        document.reset(exampleDesign());
        autosave.flush();
        QVERIFY(!QFile::exists(autosave.path()));
    }

    void savingRemovesTheAutosavedCopy()
    {
        QTemporaryDir folder;
        Document document;
        Autosave autosave(document, folder.filePath(QStringLiteral("autosave")));
        editExample(document);
        autosave.flush();
        QVERIFY(QFile::exists(autosave.path()));
        document.save(folder.filePath(QStringLiteral("saved.json")));
        autosave.flush();
        QVERIFY(!QFile::exists(autosave.path()));
    }

    void aFolderThatCannotBeMadeIsAnError()
    {
        QTemporaryDir folder;
        QFile blocked(folder.filePath(QStringLiteral("file")));
        QVERIFY(blocked.open(QIODevice::WriteOnly));
        Document document;
        QVERIFY_THROWS_EXCEPTION(Error, Autosave(document, folder.filePath(QStringLiteral("file/below"))));
    }

    void whatCannotBeReadIsToldAndLeftWhereItIs()
    {
        QTemporaryDir folder;
        QFile broken(folder.filePath(QStringLiteral("1-broken.json")));
        QVERIFY(broken.open(QIODevice::WriteOnly));
        broken.write("{ half a fi");
        broken.close();
        QStringList unreadable;
        QVERIFY(Autosave::abandoned(folder.path(), &unreadable).empty());
        QCOMPARE(unreadable.size(), 1);
        QVERIFY2(unreadable.front().contains("1-broken.json"), qPrintable(unreadable.front()));
        QVERIFY(broken.exists());
    }

    void aFullDiskIsSaidWithoutLosingWhatWasThere()
    {
        // A limit on the size of files stands in for a full disk: the write fails midway.
        QTemporaryDir folder;
        MainWindow::Options options;
        options.settingsFile = folder.filePath(QStringLiteral("settings.ini"));
        options.autosaveFolder = folder.filePath(QStringLiteral("autosave"));
        MainWindow window(options);
        window.document().reset(exampleDesign());
        const QString path = folder.filePath(QStringLiteral("design.json"));
        QVERIFY(window.files().saveTo(path));
        const auto contentOf = [&] {
            QFile file(path);
            return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
        };
        const QByteArray saved = contentOf();
        window.document().apply(UnplaceBlocks{{{Op::W, 0, 7, 0}}});
        const Design edited = window.document().design();

        std::signal(SIGXFSZ, SIG_IGN);
        rlimit before{};
        QCOMPARE(getrlimit(RLIMIT_FSIZE, &before), 0);
        const rlimit full{1024, before.rlim_max};
        QCOMPARE(setrlimit(RLIMIT_FSIZE, &full), 0);
        const bool savedOnFull = window.files().saveTo(path);
        QSignalSpy failed(window.autosave(), &Autosave::failed);
        window.autosave()->flush();
        QCOMPARE(setrlimit(RLIMIT_FSIZE, &before), 0);

        QVERIFY(!savedOnFull);
        const auto* box = window.findChild<QMessageBox*>();
        QVERIFY(box);
        QVERIFY2(box->text().contains("raise the limit") && box->text().contains("is as it was"),
                 qPrintable(box->text()));
        QCOMPARE(contentOf(), saved);
        QVERIFY(!window.document().undoStack()->isClean());
        QCOMPARE(window.document().design(), edited);
        QCOMPARE(QDir(folder.path()).entryList({QStringLiteral("design.json*")}, QDir::Files).size(),
                 1); // no half file
        QTRY_COMPARE(failed.count(), 1);
        QVERIFY(window.foot().value(QStringLiteral("autosave")).contains("failed"));

        QVERIFY(window.files().saveTo(path));
        QVERIFY(contentOf() != saved);
        window.autosave()->flush();
        QTRY_VERIFY(window.foot().value(QStringLiteral("autosave")).isEmpty());
    }

    void recentFilesAreNewestFirstWithoutRepeatsAndOnlyWhatExists()
    {
        QTemporaryDir folder;
        QSettings settings(folder.filePath(QStringLiteral("settings.ini")), QSettings::IniFormat);
        RecentFiles recent(settings);
        QStringList paths;
        for (int i = 0; i < 12; ++i) {
            QFile file(folder.filePath(QStringLiteral("%1.json").arg(i)));
            QVERIFY(file.open(QIODevice::WriteOnly));
            paths << file.fileName();
            recent.add(file.fileName());
        }
        recent.add(paths[5]);
        QCOMPARE(recent.list().size(), RecentFiles::limit);
        QCOMPARE(recent.list().front(), paths[5]);
        QCOMPARE(recent.list().count(paths[5]), 1);
        QFile::remove(paths[5]);
        QCOMPARE(recent.list().front(), paths[11]);
    }
};

PIPEWRIGHT_TEST(TestAutosave, QApplication)
#include "tst_autosave.moc"
