// SPDX-License-Identifier: GPL-3.0-or-later
// How a process finds out which rank it is, and where the ranks meet.
#include "core/base/diagnostic.h"
#include "executor/mpi/launch.h"
#include "testmain.h"

#include <QTest>

#include <map>

using namespace pipewright;

namespace {

using Variables = std::map<std::string, const char*>;

RankEnvironment look(const Variables& variables)
{
    return rankEnvironment([&variables](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second;
    });
}

Variables with(Variables some, const Variables& more)
{
    some.insert(more.begin(), more.end());
    return some;
}

} // namespace

class TestLaunch : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void withoutALauncherAProcessIsAlone()
    {
        QVERIFY(!look({}).launched);
        QVERIFY(!look({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).launched); // in a batch script, not in a step
    }

    void torchrunAndSlurmSayWhereRanksMeet()
    {
        const RankEnvironment torch =
            look({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}});
        QVERIFY(torch.launched);
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
        QCOMPARE(slurm.address, std::string("10.0.0.4"));
        QCOMPARE(slurm.port, 20123);
    }

    void ranksOfOneMpirunOnThisMachineMeetOnLoopback()
    {
        const Variables open{{"OMPI_COMM_WORLD_RANK", "3"},
                             {"OMPI_COMM_WORLD_SIZE", "4"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                             {"PMIX_NAMESPACE", "2389377025"}};
        const RankEnvironment here = look(with(open, {{"RANK", "1"}, {"WORLD_SIZE", "2"}}));
        QVERIFY(here.launched);
        QCOMPARE(here.rank, 3);
        QCOMPARE(here.size, 4);
        QCOMPARE(here.address, std::string("127.0.0.1"));
        QVERIFY(here.port >= 20000 && here.port < 40000);
        Variables other = open;
        other["OMPI_COMM_WORLD_RANK"] = "0";
        QCOMPARE(look(other).port, here.port);
        other["PMIX_NAMESPACE"] = "2389377026"; // another mpirun at the same time
        QVERIFY(look(other).port != here.port);
        const RankEnvironment named = look(with(open, {{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "4000"}}));
        QCOMPARE(named.address, std::string("node1"));
        QCOMPARE(named.port, 4001);
    }

    void ranksOfSeveralMachinesHaveToBeToldWhereTheyMeet()
    {
        const Variables mpich{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "2"}};
        QVERIFY_THROWS_EXCEPTION(Error, look(mpich));
        QVERIFY_THROWS_EXCEPTION(Error, look(with(mpich, {{"MASTER_ADDR", "a"}})));
        QCOMPARE(look(with(mpich, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "7"}})).port, 8);
    }

    void whatIsIncompleteOrNoNumberIsRefused()
    {
        const Variables place{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
        QVERIFY_THROWS_EXCEPTION(Error, look(with(place, {{"RANK", "4"}, {"WORLD_SIZE", "4"}})));
        QVERIFY_THROWS_EXCEPTION(Error, look(with(place, {{"RANK", "x"}, {"WORLD_SIZE", "4"}})));
        QVERIFY_THROWS_EXCEPTION(Error, look({{"RANK", "0"}, {"WORLD_SIZE", "4"}}));
    }
};

PIPEWRIGHT_TEST(TestLaunch, QCoreApplication)
#include "tst_launch.moc"
