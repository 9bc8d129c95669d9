// SPDX-License-Identifier: GPL-3.0-or-later
// Opening a file to read never waits for somebody to write to it.
#include "core/base/diagnostic.h"
#include "core/base/inputfile.h"
#include "core/base/textfile.h"
#include "makers/faults.h"
#include "testmain.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

using namespace pipewright;

class TestInputFile : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;

    std::string path(const char* name) const { return m_folder.filePath(QLatin1String(name)).toStdString(); }

    std::string write(const char* name, const QByteArray& text) const
    {
        QFile file(m_folder.filePath(QLatin1String(name)));
        if (file.open(QIODevice::WriteOnly))
            file.write(text);
        return path(name);
    }

private Q_SLOTS:
    void aPipeThatNobodyWritesToIsRefused()
    {
        const std::string pipe = path("silent");
        QCOMPARE(::mkfifo(pipe.c_str(), 0600), 0);
        for (const InputFile::Kind kind : {InputFile::Kind::File, InputFile::Kind::Stream}) {
            const QString why = QString::fromStdString(test::faultOf([&] { InputFile(pipe, kind); }));
            QVERIFY2(why.contains("silent") && why.contains("not a regular file"), qPrintable(why));
        }
        QVERIFY(beginningOf(pipe, 10).empty());
    }

    void aPipeIsReadToItsEndWhereItMay()
    {
        int ends[2];
        QCOMPARE(::pipe(ends), 0);
        QCOMPARE(::write(ends[1], "written before", 14), ssize_t{14});
        ::close(ends[1]);
        const std::string name = "/dev/fd/" + std::to_string(ends[0]);
        QVERIFY(test::faultOf([&] { InputFile{name}; }).find("a pipe") != std::string::npos);
        QCOMPARE(readTextFile(name), std::string("written before"));
        ::close(ends[0]);
    }

    void aPipeWhoseWriterIsStillToWriteIsWaitedFor()
    {
        int ends[2];
        QCOMPARE(::pipe(ends), 0);
        const InputFile begun("/dev/fd/" + std::to_string(ends[0]), InputFile::Kind::Stream);
        QVERIFY((::fcntl(begun.descriptor(), F_GETFL) & O_NONBLOCK) == 0);
        ::close(ends[0]);
        ::close(ends[1]);
    }

    void foldersSocketsAndWhatIsNotThereSaySo()
    {
        QVERIFY(test::faultOf([&] { InputFile(m_folder.path().toStdString()); }).find("is a folder")
                != std::string::npos);
        QVERIFY(test::faultOf([&] { InputFile(path("nothing")); }).find("No such file") != std::string::npos);
        const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
        QCOMPARE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        QVERIFY(test::faultOf([&] { InputFile(path("socket"), InputFile::Kind::Stream); }).find("a socket")
                != std::string::npos);
        ::close(socket);
        QVERIFY(test::faultOf([&] { InputFile("/dev/zero"); }).find("a device") != std::string::npos);
    }

    void whetherAPathExistsIsNoError()
    {
        write("there", "x");
        QVERIFY(pathExists(path("there")));
        QVERIFY(pathExists(m_folder.path().toStdString()));
        QVERIFY(!pathExists(path("nothing")));
        QVERIFY(!pathExists(path("there/below")));
        QVERIFY(!pathExists(path(std::string(300, 'x').c_str())));
    }

    void linesAreReadWhateverTheirLength()
    {
        const QByteArray longLine(10'000, 'x');
        InputFile file(write("lines", "first\n\n" + longLine + "\nlast"));
        std::vector<std::string> lines;
        for (std::string line; file.readLine(line);)
            lines.push_back(line);
        QCOMPARE(lines, (std::vector<std::string>{"first", "", longLine.toStdString(), "last"}));
    }

    void readingGoesOnWhereItWasSetTo()
    {
        InputFile file(write("places", "0123456789"));
        QCOMPARE(file.size(), std::uint64_t{10});
        char text[4] = {};
        file.seek(7);
        QCOMPARE(file.read(text, 4), std::size_t{3});
        QCOMPARE(std::string(text, 3), std::string("789"));
        file.seek(0);
        QCOMPARE(file.read(text, 2), std::size_t{2});
        QCOMPARE(beginningOf(path("places"), 4), std::string("0123"));
    }
};

PIPEWRIGHT_TEST(TestInputFile, QCoreApplication)
#include "tst_inputfile.moc"
