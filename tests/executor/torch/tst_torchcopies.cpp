// SPDX-License-Identifier: GPL-3.0-or-later
// Copies of the pipeline that a design counts, run by ranks of PyTorch: what is refused, and how gathers and sums
// become records of the design's tasks.
#include "core/program/compile.h"
#include "executor/torch/torchcopies.h"
#include "testmain.h"
#include "traces/store/tracereader.h"
#include "twotorchranks.h"

#include <QTest>
#include <nlohmann/json.hpp>

#include <functional>

using namespace pipewright;
using namespace pipewright::test;

namespace {

Design copied(int level, const std::function<void(DesignRequest&)>& change = {})
{
    DesignRequest request = requestFor("1f1b", 2, 2);
    request.model = "byte-gpt-small";
    request.cluster = "host";
    request.parallel = Parallelism{.data = 2};
    request.zero.level = level;
    if (change)
        change(request);
    return makeDesign(request);
}

/// Ranks 2 and 3 are the second copy. Every rank gathers its stage and sums its gradients, in a step of 1000 ns.
std::string ranksThat(const std::string& collectives)
{
    return "DEVICE=$((RANK % 2)) COPY=$((RANK / 2))\n" + std::string(R"(say '{"hello":'$RANK',"name":"fake"}'
both() {
  say '{"step":0,"blocks":[["F",'$DEVICE',0,10100,10200],["F",'$DEVICE',1,10200,10300],["B",'$DEVICE',0,10400,10500],["B",'$DEVICE',1,10500,10600]],"collectives":['"$1"']}'
  say '{"step":0,"start":10000,"end":11000,"loss":null}'
  say '{"done":true}'
}
)") + collectives;
}

const std::string asDesigned =
    R"(both '["gather",'$DEVICE',64,'$((10000 + COPY))',10090],["sum",'$DEVICE',64,10600,10700]')";

} // namespace

class TestTorchCopies : public QObject {
    Q_OBJECT

private slots:
    void everyCopyIsAsManyRanksAsTheDesignHasDevices()
    {
        const Design design = copied(3);
        TorchOptions options;
        options.module = "model.py:build";
        QCOMPARE(copiesOf(design, options), 2);
        Diagnostics notes;
        const auto job = nlohmann::json::parse(torchJob(design, options, notes));
        QVERIFY(notes.empty());
        QCOMPARE(job["replicas"].get<int>(), 2);
        QCOMPARE(job["zero"].get<int>(), 3);
        compare(job["orders"]["pytorch-comms-csv"], "0UNSHARD,0F0");
        options.replicas = 2;
        QVERIFY(nlohmann::json::parse(torchJob(twoStages(), options, notes))["zero"].is_null()); // the user's function
        options.replicas = 3;
        compare(faultOf(design, options), "3 copies, and the design counts 2");
        options.replicas = 1;
        options.ranks = 2;
        compare(faultOf(design, options), "2 ranks, and 2 copies of 2 devices are 4");
    }

    /// The first copy's, as the design's own tasks, so that they lie over the predicted ones.
    void gathersAndSumsAreRecordsOfTheirTasks()
    {
        const FakePython python(ranksThat(asDesigned));
        TorchOptions options = optionsFor(python);
        options.steps = 1;
        const Design design = copied(3);
        const RunResult result = runWithTorch(design, options);
        QVERIFY(result.notes.empty());
        QCOMPARE(nlohmann::json::parse(result.toJson())["copies"].get<int>(), 2);
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        const Timeline measured = TraceReader(options.trace).timeline(program, 0);
        int gathers = 0, sums = 0;
        for (TaskId task = 0; task < program.tasks.size(); ++task) {
            const TaskKind kind = program.tasks[task].kind;
            gathers += int{kind == TaskKind::Gather};
            sums += int{kind == TaskKind::ReduceGradients};
            if (isCopyCollective(kind)) { // of the first copy, not of the other one
                QCOMPARE(measured.start[task], Nanoseconds(kind == TaskKind::Gather ? 0 : 600));
                QCOMPARE(measured.end[task], Nanoseconds(kind == TaskKind::Gather ? 90 : 700));
            }
        }
        QCOMPARE(gathers, 2);
        QCOMPARE(sums, 2);
    }

    void aCopyThatDoesOtherwiseIsNamed()
    {
        const Design design = copied(3);
        const FakePython often(
            ranksThat("[ $RANK = 3 ] && both '[\"gather\",1,64,1,2],[\"gather\",1,64,3,4]'\nsleep 100\n"));
        const std::string fault = faultOf(design, optionsFor(often));
        compare(fault, "rank 3");
        compare(fault, "gathers the parameters of stage 1 more often than this design");
        const FakePython block(
            ranksThat("[ $RANK = 2 ] && say '{\"step\":0,\"blocks\":[[\"F\",1,0,1,2]]}'\nsleep 100\n"));
        compare(faultOf(design, optionsFor(block)), "rank 2: error: ran F1.0, which is not its own");
        const FakePython never(ranksThat("if [ $RANK = 2 ]; then both; else " + asDesigned + "; fi\n"));
        TorchOptions options = optionsFor(never);
        options.steps = 1;
        const RunResult result = runWithTorch(design, options);
        QCOMPARE(result.notes.size(), std::size_t(1));
        QCOMPARE(result.notes[0].where, std::string("rank 2"));
        compare(result.notes[0].what, "0 of 1 gathers of stage 0 were seen");
    }

    void whatCopiesCannotDoIsSaidBeforehand()
    {
        const auto fault = [](const Design& design) {
            try {
                requirePossible(design, {});
            } catch (const Error& error) {
                return std::string(error.what());
            }
            return std::string("nothing");
        };
        for (const int level : {0, 1, 2, 3})
            QCOMPARE(fault(copied(level)), std::string("nothing"));
        compare(fault(copied(3, [](DesignRequest& request) { request.zero.reduce = Zero::Reduce::Each; })),
                "schedule.zero: error: PyTorch's schedule runtime sums the gradients of a stage once per step");
        compare(fault(copied(0, [](DesignRequest& request) { request.family = "pipedream"; })), "model.parallel.data");
        compare(fault(copied(0, [](DesignRequest& request) { request.parallel->context = 2; })), "are groups");
        Design tied = copied(3);
        tied.dataflow.shared = {{0, 1, 64}};
        for (const int level : {1, 2, 3}) {
            tied.schedule.zero.level = level;
            QCOMPARE(fault(tied), std::string("nothing"));
        }
        tied.schedule.deviceOfStage = {0, 0};
        compare(fault(tied), "stages 0 and 1 of one device hold one parameter");
        Design unknown = twoStages();
        unknown.costs.stages[0].gather = 5;
        unknown.schedule.zero.level = 3;
        compare(fault(unknown), "nothing says how many there are");
        TorchOptions synthetic;
        synthetic.syntheticStages = true;
        compare(faultOf(copied(0), synthetic), "have no gradients to share");
    }

    void whatCopiesDoOtherwiseIsSaid()
    {
        const auto said = [](int level, bool reshards = false) {
            const Diagnostics notes = notesOfCopies(copied(level, [&](DesignRequest& request) {
                if (reshards)
                    request.reshard = ReshardChoice{.every = true};
            }));
            return notes.empty() ? std::string("nothing") : notes.front().what;
        };
        QCOMPARE(said(0), std::string("nothing"));
        compare(said(1), "whole sums of gradients");
        compare(said(2), "beside the whole ones");
        QCOMPARE(said(3), std::string("nothing"));
        compare(said(3, true), "held twice");
    }

    void productsOfTheModuleAreItsOwn()
    {
        DesignRequest request = requestFor("1f1b", 2, 2);
        request.model = "llama-3-8b";
        request.cluster = "h100-node";
        QVERIFY(notesForTorch(makeDesign(request), {}).empty());
        request.precision = precisionNamed("fp8");
        const Diagnostics notes = notesForTorch(makeDesign(request), {});
        QCOMPARE(notes.size(), std::size_t(1));
        compare(notes.front().what, "multiply in the types that they have: predicted are products in fp8");
    }
};

PIPEWRIGHT_TEST(TestTorchCopies, QCoreApplication)
#include "tst_torchcopies.moc"
