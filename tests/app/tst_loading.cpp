// SPDX-License-Identifier: GPL-3.0-or-later
// Where the built programs and libraries look for what they need: never in the folder somebody happens to be in.
#include "app/program.h"
#include "testmain.h"

#include <QDirIterator>
#include <QStandardPaths>

using namespace pipewright::test;

class TestLoading : public QObject {
    Q_OBJECT

    static QByteArray readelf(const QString& file)
    {
        QProcess process;
        process.start("readelf", {"-dW", file});
        process.waitForFinished(30'000);
        return process.readAllStandardOutput();
    }

    static bool isElf(const QString& path)
    {
        QFile file(path);
        return file.open(QIODevice::ReadOnly)
               && file.read(4)
                      == "\x7f"
                         "ELF";
    }

    /// Entries of the search path that do not name one folder wherever the process is.
    static QStringList relativeEntries(const QByteArray& dynamicSection)
    {
        static const QRegularExpression line("\\((?:RUNPATH|RPATH)\\)[^\\[]*\\[(.*)\\]");
        QStringList wrong;
        for (auto match = line.globalMatch(QString::fromUtf8(dynamicSection)); match.hasNext();)
            for (const QString& entry : match.next().captured(1).split(':'))
                if (!entry.startsWith('/') && entry != "$ORIGIN" && !entry.startsWith("$ORIGIN/"))
                    wrong << '"' + entry + '"';
        return wrong;
    }

    static QStringList needed(const QString& file)
    {
        static const QRegularExpression line("\\(NEEDED\\)[^\\[]*\\[(.*)\\]");
        QStringList names;
        for (auto match = line.globalMatch(QString::fromUtf8(readelf(file))); match.hasNext();)
            names << match.next().captured(1);
        return names;
    }

private Q_SLOTS:
    void init()
    {
        if (QStandardPaths::findExecutable("readelf").isEmpty())
            QSKIP("readelf is not here (package binutils)");
    }

    void emptyAndRelativeEntriesAreSeen()
    {
        QCOMPARE(relativeEntries(" 0x1d (RUNPATH)  Library runpath: [/usr/lib:]\n").size(), 1);
        QCOMPARE(relativeEntries(" 0x0f (RPATH)  Library rpath: [$ORIGIN/../lib:lib:$ORIGINAL::/a]\n").size(), 3);
        QCOMPARE(relativeEntries(" 0x1d (RUNPATH)  Library runpath: [$ORIGIN:$ORIGIN/../lib:/usr/lib]\n").size(), 0);
    }

    void nothingBuiltSearchesTheCurrentFolder()
    {
        int looked = 0;
        for (const char* folder : {"/bin", "/tests"})
            for (QDirIterator files(PIPEWRIGHT_BUILD + QString(folder), QDir::Files, QDirIterator::Subdirectories);
                 files.hasNext();) {
                const QString file = files.next();
                if (!isElf(file) || file.endsWith(".o"))
                    continue;
                const QStringList wrong = relativeEntries(readelf(file));
                QVERIFY2(wrong.isEmpty(), qPrintable(file + " searches " + wrong.join(", ")));
                ++looked;
            }
        QVERIFY(looked >= 2); // the program and this test at least
    }

    /// What was looked at above is what is installed: nothing rewrites search paths on the way.
    void whatIsInstalledSearchesTheSame()
    {
        int scripts = 0;
        for (QDirIterator files(PIPEWRIGHT_BUILD, {"cmake_install.cmake"}, QDir::Files, QDirIterator::Subdirectories);
             files.hasNext(); ++scripts) {
            QFile script(files.next());
            QVERIFY(script.open(QIODevice::ReadOnly));
            const QByteArray text = script.readAll();
            for (const char* change : {"RPATH_CHANGE", "RPATH_SET", "RPATH_REMOVE"})
                QVERIFY2(!text.contains(change), qPrintable(script.fileName() + " has " + change));
        }
        QVERIFY(scripts > 0);
    }

    void aLibraryPlantedInTheCurrentFolderIsNotLoaded()
    {
        const Workplace work;
        const QStringList names = needed(PIPEWRIGHT_PROGRAM);
        QVERIFY(!names.isEmpty());
        for (const QString& name : names)
            QVERIFY(QFile::copy(PIPEWRIGHT_PLANTED, work.path(name)));
        const Outcome outcome = work.run("--version", {"LD_LIBRARY_PATH"});
        QCOMPARE(outcome.code, 0);
        QVERIFY2(!outcome.output.contains("PLANTED"), qPrintable(outcome.output));
        QVERIFY(!outcome.output.isEmpty());

        // The plant is one that would be loaded, were its folder searched.
        QProcess searched;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("LD_LIBRARY_PATH", work.path("."));
        searched.setProcessEnvironment(environment);
        for (const QString& name : names)
            if (!name.startsWith("libfmt"))
                QVERIFY(QFile::remove(work.path(name)));
        searched.start(PIPEWRIGHT_PROGRAM, {"--version"});
        const Outcome planted = Workplace::finish(searched);
        QVERIFY2(planted.code != 0, "the planted libfmt was not loaded even where it was to be");
    }
};

PIPEWRIGHT_TEST(TestLoading, QCoreApplication)
#include "tst_loading.moc"
