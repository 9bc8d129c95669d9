// SPDX-License-Identifier: GPL-3.0-or-later
// What a command needs of memory for each block more of a design: bounds that do not depend on the machine.
#include "app/program.h"
#include "testmain.h"

#include <QFile>
#include <QRegularExpression>
#include <QTest>

#include <cerrno>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace pipewright::test;

namespace {

/// The most memory that the program had at a time, in bytes; -1: it failed.
double peakOf(const QString& folder, const QString& words)
{
    const QByteArray place = folder.toLocal8Bit();
    QByteArrayList arguments{PIPEWRIGHT_PROGRAM};
    for (const QString& word : words.split(' ', Qt::SkipEmptyParts))
        arguments.append(word.toLocal8Bit());
    std::vector<char*> argv;
    for (QByteArray& argument : arguments)
        argv.push_back(argument.data());
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        const int sink = ::open("/dev/null", O_WRONLY);
        ::dup2(sink, STDOUT_FILENO);
        if (::chdir(place.constData()) == 0)
            ::execv(argv.front(), argv.data());
        ::_exit(127);
    }
    int status = -1;
    rusage used{};
    while (::wait4(child, &status, 0, &used) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? static_cast<double>(used.ru_maxrss) * 1024 : -1;
}

} // namespace

class TestScale : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aCommandNeedsNoMoreForEachBlockThanIsSaid_data()
    {
        QTest::addColumn<QString>("command");
        QTest::addColumn<bool>("edited"); ///< amid the steady state
        QTest::addColumn<double>("mostBytesPerBlock");
        for (const bool edited : {false, true}) {
            const auto row = [edited](const char* name, const char* command, double most) {
                QTest::newRow(edited ? qPrintable(QString("%1, edited").arg(name)) : name) << command << edited << most;
            };
            const double most = 250;
            row("predict", "predict %1", most);
            row("check", "check %1", most);
            // What predict needs, though the files have up to 260 bytes per block.
            const double curves = edited ? 320 : 250; // of an edited one: of some devices at a time
            row("perfetto", "export %1 --to perfetto -o out --force", curves);
            row("chrome", "export %1 --to chrome -o out --force", curves);
            row("blocks", "export %1 --to blocks-csv -o out --force", most);
        }
    }

    void aCommandNeedsNoMoreForEachBlockThanIsSaid()
    {
        QFETCH(QString, command);
        QFETCH(bool, edited);
        QFETCH(double, mostBytesPerBlock);
        const Workplace work;
        QCOMPARE(work.run("new 1f1b --devices 64 --microbatches 8192 -o large.json").code, 0);
        if (edited) { // two blocks change places
            QFile file(work.path("large.json"));
            QVERIFY(file.open(QIODevice::ReadWrite));
            QString text = QString::fromUtf8(file.readAll());
            const QRegularExpression pair("(\"B32\\.4000\"),(\\s*)(\"F32\\.[0-9]+\")");
            QVERIFY(text.contains(pair));
            text.replace(pair, "\\3,\\2\\1");
            QVERIFY(file.resize(0) && file.seek(0) && file.write(text.toUtf8()) > 0);
        }
        const double peak = peakOf(work.path("."), command.arg("large.json"));
        QVERIFY(peak > 0);
        const double each = peak / (2.0 * 64 * 8192); // with the program itself, some 20
        QVERIFY2(each <= mostBytesPerBlock, qPrintable(QString("%1 bytes per block").arg(each)));
    }
};

PIPEWRIGHT_TEST(TestScale, QCoreApplication)
#include "tst_scale.moc"
