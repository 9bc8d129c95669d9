// SPDX-License-Identifier: GPL-3.0-or-later
// What the program prints of its own definitions: the manual page, completions, and its version.
#include "app/program.h"
#include "testmain.h"

#include <QStandardPaths>

using namespace pipewright::test;

class TestGenerated : public QObject {
    Q_OBJECT

    const Workplace m_work{};

    /// The long options of a command, as its help shows them.
    QStringList optionsOf(const QString& command) const
    {
        static const QRegularExpression option("^    ?(?:-\\w,)?(--[a-z0-9-]+)|^  (?:-\\w,)?(--[a-z0-9-]+)",
                                               QRegularExpression::MultilineOption);
        QStringList options;
        for (auto match = option.globalMatch(m_work.run(command + " --help").output); match.hasNext();) {
            const QRegularExpressionMatch found = match.next();
            options << found.captured(1) + found.captured(2);
        }
        return options;
    }

private Q_SLOTS:
    void everyOptionIsInIt_data()
    {
        QTest::addColumn<QString>("before");
        QTest::newRow("man") << "\\fB";
        QTest::newRow("bash") << "";
        QTest::newRow("zsh") << "";
        QTest::newRow("fish") << "-l ";
    }
    void everyOptionIsInIt()
    {
        QFETCH(QString, before);
        const QString kind = QTest::currentDataTag();
        const Outcome outcome = m_work.run("--generate " + kind);
        QCOMPARE(outcome.code, 0);
        int looked = 0;
        for (const char* command : {"new", "plan", "render", "query", "explain"})
            for (QString option : optionsOf(command)) {
                if (kind == "fish")
                    option.remove(0, 2);
                if (kind == "man")
                    option.replace('-', "\\-");
                QVERIFY2(outcome.output.contains(before + option), qPrintable(QString(command) + ' ' + option));
                ++looked;
            }
        QVERIFY2(looked > 100, qPrintable(QString::number(looked)));
    }

    void itsShellReadsIt_data()
    {
        QTest::addColumn<QString>("shell");
        for (const char* shell : {"bash", "zsh", "fish"})
            QTest::newRow(shell) << shell;
    }
    void itsShellReadsIt()
    {
        QFETCH(QString, shell);
        if (QStandardPaths::findExecutable(shell).isEmpty())
            QSKIP("this shell is not here");
        const Outcome outcome =
            m_work.shell(QString("$pipewright --generate %1 >completion && %1 -n completion").arg(shell));
        QCOMPARE(outcome.errors, QString());
        QCOMPARE(outcome.code, 0);
    }

    void bashCompletesWhatCanStandThere_data()
    {
        QTest::addColumn<QString>("words"); ///< the last one is completed
        QTest::addColumn<QString>("offered");
        QTest::newRow("commands") << "pipewright pr"
                                  << "predict profile";
        QTest::newRow("families") << "pipewright new zb-a"
                                  << "zb-auto";
        QTest::newRow("options of a command") << "pipewright new 1f1b --micro"
                                              << "--microbatches --microbatch-size";
        QTest::newRow("the words of a value") << "pipewright new 1f1b --reduce e"
                                              << "each";
        QTest::newRow("nothing for a number") << "pipewright new 1f1b --devices 1"
                                              << "";
        QTest::newRow("not another command's") << "pipewright query --micro"
                                               << "";
    }
    void bashCompletesWhatCanStandThere()
    {
        QFETCH(QString, words);
        QFETCH(QString, offered);
        if (QStandardPaths::findExecutable("bash").isEmpty())
            QSKIP("bash is not here");
        m_work.write("try", "eval \"$($pipewright --generate bash)\"\n"
                            "compopt() { :; }\n" // has a meaning only where a key is pressed
                            "COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1))\n_pipewright\necho \"${COMPREPLY[*]}\"\n");
        const Outcome outcome = m_work.shell("bash try " + words);
        QCOMPARE(outcome.errors, QString());
        QCOMPARE(outcome.output.trimmed(), offered);
    }

    void anotherKindIsRefused()
    {
        const Outcome outcome = m_work.run("--generate perl");
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains("use one of man|bash|zsh|fish|python"), qPrintable(outcome.errors));
    }

    void theVersionNamesItsCommit()
    {
        const QString text = m_work.run("--version").output;
        const bool isCheckout = QFile::exists(PIPEWRIGHT_SOURCE_DIR "/.git");
        const QRegularExpression form(isCheckout
                                          ? "^pipewright \\d+\\.\\d+\\.\\d+ \\(commit [0-9a-f]{12}(, changed)?\\)\n$"
                                          : "^pipewright \\d+\\.\\d+\\.\\d+\n$");
        QVERIFY2(form.match(text).hasMatch(), qPrintable(text));
    }
};

PIPEWRIGHT_TEST(TestGenerated, QCoreApplication)
#include "tst_generated.moc"
