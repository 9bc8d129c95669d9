// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/findprogram.h"
#include "testmain.h"

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>

using namespace pipewright;

class TestFindProgram : public QObject {
    Q_OBJECT

private:
    const QTemporaryDir m_folder;
    const QByteArray m_path = qgetenv("PATH");
    const QString m_stood = QDir::currentPath();

    void plant(const QString& name) const
    {
        QDir(m_folder.path()).mkpath(QFileInfo(name).path());
        QFile file(m_folder.filePath(name));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    }
    std::string at(const char* name) const { return m_folder.filePath(name).toStdString(); }

private Q_SLOTS:
    void initTestCase()
    {
        plant("here");
        plant("bin/there");
        plant("bin/sub/folder");
        QVERIFY(QDir::setCurrent(m_folder.path()));
    }
    void cleanupTestCase()
    {
        qputenv("PATH", m_path);
        QDir::setCurrent(m_stood);
    }

    void programsAreFoundInAbsoluteFoldersAlone()
    {
        qputenv("PATH", "/nowhere:" + m_folder.filePath("bin").toUtf8());
        QCOMPARE(findProgram("there"), at("bin/there"));
        for (const QByteArray path : {"", ":", ".:bin", ":/nowhere", "/nowhere:", "::bin", "bin"}) {
            qputenv("PATH", path);
            QCOMPARE(findProgram("here"), std::string());
            QCOMPARE(findProgram("there"), std::string());
        }
        qunsetenv("PATH");
        QVERIFY(!findProgram("sh").empty());
    }

    void aPathIsMadeAbsoluteAndMustBeAProgram()
    {
        QCOMPARE(findProgram("./here"), at("./here"));
        QCOMPARE(findProgram(at("here")), at("here"));
        for (const char* none : {"", "./nowhere", "bin/sub", "./bin"})
            QCOMPARE(findProgram(none), std::string());
    }

    void thisProgramIsNamedByItsPath()
    {
        QVERIFY(ownCommand().front().starts_with('/'));
        QVERIFY(ownCommand().size() >= 1);
    }
};

PIPEWRIGHT_TEST(TestFindProgram, QCoreApplication)
#include "tst_findprogram.moc"
