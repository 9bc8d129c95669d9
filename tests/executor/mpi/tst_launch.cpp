// SPDX-License-Identifier: GPL-3.0-or-later
// How ranks are started, and how a process finds out which rank it is.
#include "core/base/diagnostic.h"
#include "executor/mpi/launch.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <map>

using namespace pipewright;

class TestLaunch : public QObject {
    Q_OBJECT

private slots:
    void launchersAreRecognised()
    {
        const auto look = [](std::map<std::string, const char*> variables) {
            return rankEnvironment([variables](const char* name) -> const char* {
                const auto found = variables.find(name);
                return found == variables.end() ? nullptr : found->second;
            });
        };
        using Launcher = RankEnvironment::Launcher;
        QVERIFY(look({}).launcher == Launcher::None);
        QVERIFY(look({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).launcher
                == Launcher::None); // in a batch script, not in a step
        const RankEnvironment open = look({{"OMPI_COMM_WORLD_RANK", "3"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}});
        QVERIFY(open.launcher == Launcher::Mpi);
        QCOMPARE(open.rank, 3);
        const RankEnvironment torch =
            look({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}});
        QVERIFY(torch.launcher == Launcher::Sockets);
        QCOMPARE(torch.rank, 1);
        QCOMPARE(torch.size, 4);
        QCOMPARE(torch.address, std::string("node7"));
        QCOMPARE(torch.port, 29501);
        const RankEnvironment slurm = look({{"SLURM_PROCID", "2"},
                                            {"SLURM_NTASKS", "8"},
                                            {"SLURM_STEP_ID", "0"},
                                            {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.4"},
                                            {"SLURM_JOB_ID", "40123"}});
        QCOMPARE(slurm.rank, 2);
        QCOMPARE(slurm.size, 8);
        QCOMPARE(slurm.port, 20123);
        QVERIFY_THROWS_EXCEPTION(
            Error, look({{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}));
        QVERIFY_THROWS_EXCEPTION(Error, look({{"RANK", "0"}, {"WORLD_SIZE", "4"}}));
        QVERIFY_THROWS_EXCEPTION(
            Error, look({{"RANK", "x"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}));
    }

    void aFileCalledColonDoesNotEndTheLaunchersLine()
    {
        const std::vector<std::string> words = launchCommand("mpirun", 2, {"run", ":", "-o", "a:b"}, false);
        QVERIFY(std::find(words.begin(), words.end(), ":") == words.end());
        const std::vector<std::string> last(words.end() - 3, words.end());
        QVERIFY((last == std::vector<std::string>{"./:", "-o", "a:b"}));
    }
};

PIPEWRIGHT_TEST(TestLaunch, QCoreApplication)
#include "tst_launch.moc"
