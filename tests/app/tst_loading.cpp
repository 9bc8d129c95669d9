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

    /// How many there are in a folder; each that searches a relative one is a failure.
    static int binariesLookedAt(const QString& folder)
    {
        int looked = 0;
        for (QDirIterator files(folder, QDir::Files, QDirIterator::Subdirectories); files.hasNext();) {
            const QString file = files.next();
            if (!isElf(file) || file.endsWith(".o"))
                continue;
            const QStringList wrong = relativeEntries(readelf(file));
            if (!wrong.isEmpty())
                QTest::qFail(qPrintable(file + " searches " + wrong.join(", ")), __FILE__, __LINE__);
            ++looked;
        }
        return looked;
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
        QVERIFY(binariesLookedAt(PIPEWRIGHT_BUILD "/bin") + binariesLookedAt(PIPEWRIGHT_BUILD "/tests")
                >= 2); // the program and this test at least
    }

    /// The program, the libraries that are copied beside it, and the plugin and its checks where they are built.
    void nothingInstalledSearchesTheCurrentFolder()
    {
        const QTemporaryDir folder;
        QProcess install;
        install.start(PIPEWRIGHT_CMAKE, {"--install", PIPEWRIGHT_BUILD, "--prefix", folder.path()});
        const Outcome done = Workplace::finish(install);
        const bool all = done.code == 0;
        QVERIFY2(all || done.errors.contains("INSTALL cannot find"), qPrintable(done.output + done.errors));
        QVERIFY(binariesLookedAt(folder.path()) >= 2);
        QProcess program;
        program.setWorkingDirectory(folder.path());
        program.start(folder.filePath("bin/pipewright"), {"--version"});
        QCOMPARE(Workplace::finish(program).code, 0);
        if (!all)
            QSKIP("the plugin is not built, so not all was installed; what was is in order");
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

    void aPythonModulePlantedInTheCurrentFolderDoesNotRun_data()
    {
        QTest::addColumn<bool>("old");
        QTest::addColumn<QString>("pythonPath");
        QTest::newRow("python 3.11") << false << "";
        QTest::newRow("older, which does not know PYTHONSAFEPATH") << true << "";
        QTest::newRow("empty entries of PYTHONPATH") << false << ":/nowhere:";
    }
    void aPythonModulePlantedInTheCurrentFolderDoesNotRun()
    {
        QFETCH(bool, old);
        QFETCH(QString, pythonPath);
        const QString python = QStandardPaths::findExecutable("python3");
        if (python.isEmpty())
            QSKIP("no python3 here");
        const Workplace work;
        const auto plant = [&](const QString& name) { work.write(name, "open('" + name.toUtf8() + ".ran', 'w')\n"); };
        QVERIFY(QDir(work.path(".")).mkdir("pipewright"));
        for (const char* name : {"pipewright/__init__.py", "pipewright/about.py", "argparse.py", "runpy.py",
                                 "platform.py", "torch.py", "sitecustomize.py"})
            plant(name);
        const QString program = old ? "exec env -u PYTHONSAFEPATH python3" : "exec python3";
        work.write("python", "#!/bin/sh\n" + program.toUtf8() + " \"$@\"\n");
        QVERIFY(QFile::setPermissions(work.path("python"), QFile::ReadOwner | QFile::ExeOwner));
        const auto ran = [&] {
            QStringList names;
            for (QDirIterator files(work.path("."), {"*.ran"}, QDir::Files, QDirIterator::Subdirectories);
                 files.hasNext();)
                names << files.next();
            return names;
        };
        const Outcome outcome =
            work.shell("PYTHONPATH=" + pythonPath + " $pipewright devices --python ./python --json");
        QVERIFY2(outcome.json().contains("torch"), qPrintable(outcome.output + outcome.errors));
        QVERIFY2(!outcome.output.contains("said nothing"), qPrintable(outcome.output)); // about.py did run
        QVERIFY2(ran().isEmpty(), qPrintable(ran().join(" ")));

        // The plants are ones that would run, were their folder searched.
        work.shell("env -u PYTHONSAFEPATH python3 -m pipewright.about");
        QVERIFY(!ran().isEmpty());
    }

    void aRelativeEntryOfPythonPathIsRefused()
    {
        const Workplace work;
        const Outcome outcome = work.shell("PYTHONPATH=/usr:src $pipewright devices");
        QVERIFY2(outcome.output.contains("PYTHONPATH: error: \"src\" is relative"), qPrintable(outcome.output));
    }
};

PIPEWRIGHT_TEST(TestLoading, QCoreApplication)
#include "tst_loading.moc"
