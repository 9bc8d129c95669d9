// SPDX-License-Identifier: GPL-3.0-or-later
// Nothing of a design is dropped in silence: what a backend cannot run is said before it starts, and every field of a
// design file is executed, or refused, or only describes what others say.
#include "core/design/redesign.h"
#include "core/design/stageplans.h"
#include "core/files/designfile.h"
#include "core/predict/busqueues.h"
#include "core/predict/designcheck.h"
#include "core/predict/evaluator.h"
#include "core/program/compile.h"
#include "core/schedule/replicas.h"
#include "core/sharding/statedplan.h"
#include "executor/run/backendcheck.h"
#include "executor/run/grouprun.h"
#include "executor/run/run.h"
#include "executor/runtime/timedwork.h"
#include "makers/designs.h"
#include "makers/groups.h"
#include "makers/models.h"
#include "makers/pairdesigns.h"
#include "testmain.h"

#include <QTest>

#include <nlohmann/json.hpp>

#include <map>
#include <set>

using namespace pipewright;
using nlohmann::json;

namespace {

/// Fields that run nothing by themselves, and why.
const std::map<std::string, std::string>& describing()
{
    static const std::map<std::string, std::string> fields{
        {"/name", "a title"},
        {"/pipewright", "how the file is written"},
        {"/schedule/family", "where the order came from; the order counts"},
        {"/schedule/backward", "of missing blocks; a design that runs misses none"},
        {"/schedule/first_stage_may_split", "refuses orders, and changes none"},
        {"/model/name", "a title"},
        {"/model/source", "where the model came from"},
        {"/model/dtype", "of models that are not run"},
        {"/costs/source", "where the numbers came from"},
        {"/dataflow/shared/*/copied", "of stages on one device, as in tst_memorycheck"},
        {"/costs/link/origin", "where the number came from"},
        {"/costs/links/*/origin", "where the number came from"},
        {"/costs/overlap_factor", "of overlapped pairs, when there are any"},
        {"/costs/stages/*/parts/forward/*/name", "what the recording calls it"},
        {"/costs/stages/*/parts/backward/*/name", "what the recording calls it"},
    };
    return fields;
}
/// Of a cluster without groups: what the costs were computed of, and the costs are in the file. A group's members run
/// what is planned of the cluster itself.
bool describesTheCluster(const std::string& path, bool groups)
{
    if (!path.starts_with("/cluster/"))
        return false;
    return !groups || path.ends_with("/name") || path.find("/group/") == std::string::npos;
}

struct JsonLeaf {
    json::json_pointer at;
    std::string path; ///< with * for places in a list
};

/// The time of a kind of block, the gap before it or its workspace, of which the schedule has none.
bool isOfAbsentBlocks(const std::string& path, const Schedule& schedule)
{
    return std::any_of(allOps.begin(), allOps.end(), [&](Op op) {
        const std::string key = "/" + std::string(timeKey(op));
        const std::string workspace = "/workspace_" + std::string(timeKey(op));
        const bool spared = op == Op::B && path.ends_with("/spared_by_backward");
        if (op == Op::U || !path.starts_with("/costs/")
            || !(path.ends_with(key) || path.ends_with(workspace) || spared))
            return false;
        return std::none_of(schedule.order.begin(), schedule.order.end(), [op](const std::vector<Block>& lane) {
            return std::any_of(lane.begin(), lane.end(), [op](const Block& block) { return block.op == op; });
        });
    });
}

void gather(const json& value, const json::json_pointer& at, const std::string& path, std::vector<JsonLeaf>& leaves)
{
    if (value.is_object()) {
        for (const auto& [key, child] : value.items())
            gather(child, at / key, path + "/" + key, leaves);
    } else if (value.is_array()) {
        for (std::size_t i = 0; i < value.size(); ++i)
            gather(value[i], at / i, path + "/*", leaves);
    } else {
        leaves.push_back({at, path});
    }
}

/// Other values that the field might have.
std::vector<json> othersOf(const json& value)
{
    if (value.is_boolean())
        return {!value.get<bool>()};
    if (value.is_number_integer())
        return {value.get<std::int64_t>() + 1, value.get<std::int64_t>() - 1, 2 * value.get<std::int64_t>() + 1};
    if (value.is_number())
        return {value.get<double>() * 2 + 0.5, value.get<double>() / 2};
    const std::string text = value.is_string() ? value.get<std::string>() : std::string();
    std::vector<json> others;
    for (const char* other :
         {"7777us", "4444B", "9MiB", "full", "none", "selective", "sgd", "measured", "stored", "synchronous"})
        if (text != other)
            others.emplace_back(other);
    others.emplace_back(text + "x");
    return others;
}

std::string said(const Diagnostics& found)
{
    std::string text;
    for (const Diagnostic& diagnostic : found)
        text += toString(Diagnostics{diagnostic}) + "\n";
    return text;
}

/// All that a run takes of a design: trained where that is possible, and with timed blocks.
struct Runs {
    std::string said;
    std::optional<Program> trained;
    std::optional<Workload> workload;
    std::vector<int> layers;
    Program timed;
    std::vector<Nanoseconds> durations, gaps;
    std::string buses;
    std::vector<std::string> plans; ///< per copy of a stage of a group: what its members do, and their shares
    std::vector<std::vector<double>> shares;
    bool operator==(const Runs&) const = default;
};

/// Where groups hold stages their members run, in their own Program.
void addMembers(const Design& design, Runs& runs)
{
    const GroupRun timed(design, false);
    runs.timed = timed.members.program;
    runs.durations = timed.members.durations;
    if (!whyNotTrainable(design).empty())
        return;
    const GroupRun trained(design, true);
    runs.trained = trained.members.program;
    runs.workload = design.workload;
    runs.workload->source.clear();
    runs.workload->shape.name.clear();
    runs.layers = design.layersPerStage;
    for (const sharding::SharedStage& stage : trained.stages.plans) {
        const std::vector<std::string> lines = sharding::programLines(stage.plan.program, stage.graph);
        runs.plans.insert(runs.plans.end(), lines.begin(), lines.end());
        runs.shares.insert(runs.shares.end(), stage.plan.ratios.begin(), stage.plan.ratios.end());
    }
}

Runs whatRuns(const Design& design)
{
    Runs runs;
    const Diagnostics found = checkDesign(design);
    if (hasErrors(found))
        throw Error(found); // refused
    runs.said = said(found);
    for (const std::string_view backend : runBackends)
        for (const RunOptions::Maths maths : {RunOptions::Maths::Automatic, RunOptions::Maths::Timed})
            runs.said += said(checkForBackend(design, {std::string(backend), maths, false}).found);
    if (hasGroups(design)) {
        addMembers(design, runs);
        return runs;
    }
    runs.timed = compile(design.schedule, design.costs, design.dataflow);
    runs.durations = taskDurations(runs.timed, design.costs);
    runs.gaps = hostGaps(runs.timed, design.costs);
    for (const auto& [pair, link] : design.costs.linkOfPair)
        runs.buses += link.bus + " ";
    runs.buses += design.costs.link.bus;
    if (whyNotTrainable(design).empty()) {
        const Design trains = trainableDesign(design);
        runs.trained = compile(trains.schedule, trains.costs, trains.dataflow);
        runs.workload = trains.workload;
        runs.workload->source.clear();
        runs.workload->shape.name.clear();
        runs.layers = trains.layersPerStage;
    }
    return runs;
}

/// A GPT with times, links and gaps of its own, skips, pins and a stated transfer order; stages recompute.
Design everything()
{
    Design design = test::tinyGpt("zb-h1", 3, 6);
    design.cluster = PresetLibrary().cluster("host", 3);
    design = trainableDesign(design);
    int time = 1'000'000;
    for (StageCosts& stage : design.costs.stages) {
        for (const Op op : allOps)
            stage.*timeField(op) = time += 1000;
        stage.backward = stage.inputGrad + stage.weightGrad + 5;
        stage.origin.fill(CostOrigin::Measured);
    }
    design.costs.link = {1000, 1e9, "switch", CostOrigin::Given};
    design.costs.linkOfPair[{0, 1}] = {2000, 2e9, "switch", CostOrigin::Given};
    design.costs.hostGaps.resize(3);
    for (HostGaps& gaps : design.costs.hostGaps)
        gaps.before.fill(700);
    design.costs.reduce = 4000;
    design.costs.communication = Communication::Blocking;
    design.costs.source = "given";
    design.dataflow.skips = {{0, 2, design.costs.stages[0].output}};
    design = withRecompute(design, {Recompute::Block, Recompute::BlockSelective, Recompute::None});
    design.schedule.pins = {{{Op::F, 1, 2}, 3'000'000}};
    return design;
}

/// What stages keep leaves for the host's memory, as far as there is time.
Design offloading()
{
    Design design = trainableDesign(test::tinyGpt("1f1b", 4, 8));
    for (StageCosts& stage : design.costs.stages)
        stage.update = 2'000'000;
    design.costs.hostLink = LinkCosts{1000, 1e12, "", CostOrigin::Given};
    return withOffload(design, {true, true, false, false});
}

/// Three copies of a pipeline that keep a third of the optimizer's state each.
Design sharedOptimizer()
{
    Design design = trainableDesign(test::tinyGpt("1f1b", 4, 4));
    design.schedule = withReplicas(design.schedule, 3);
    design.schedule.zero.level = 1;
    return design;
}

/// Two groups, whose plans are stated, with costs, transfers and pins of their own.
Design groupsWithPlans()
{
    ModelShape shape = test::groupShape(4);
    shape.tiedHead = true;
    Design design = test::groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}, {1e9}}, 4, shape);
    design = withStrategy(design, *sharding::strategyNamed("even"));
    design.costs.link.origin = CostOrigin::Given;
    design.costs.linkOfPair[{0, 1}] = {2000, 2e9, "", CostOrigin::Given};
    design.costs.communication = Communication::Blocking;
    design = withRecompute(design, {Recompute::Block, Recompute::None, Recompute::None});
    design.dataflow.skips = {{0, 2, design.costs.stages[0].output}};
    design.schedule.pins = {{{Op::F, 1, 2}, 3'000'000}};
    design.schedule.transferOrder = {{*parseTransfer("F0.2 to 1"), *parseTransfer("F0.3 to 1")}};
    return design;
}

/// Pairs whose blocks have parts, one of them in an order of its own.
Design withParts(Design design)
{
    for (StageCosts& stage : design.costs.stages) {
        stage.parts[indexOf(Op::F)] = test::forwardParts(10'000);
        stage.parts[indexOf(Op::B)] = test::backwardParts(10'000);
        stage.fitParts();
    }
    statePartOrder(design.schedule, design.schedule.overlaps.front(),
                   {false, true, false, true, false, true, false, true, true});
    return design;
}

} // namespace

class BackendCheckTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyFieldIsExecutedOrRefused_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::newRow("a design with everything") << QByteArray();
        for (const char* family : {"dualpipe", "seq1f1b", "pipeoptim", "cdp-v2", "chimera"})
            QTest::newRow(family) << QByteArray(family);
        QTest::newRow("pairs with parts") << QByteArray("parts");
        QTest::newRow("groups with plans") << QByteArray("groups");
        QTest::newRow("offload") << QByteArray("offload");
        QTest::newRow("shared optimizer state") << QByteArray("shares");
    }
    void everyFieldIsExecutedOrRefused()
    {
        QFETCH(QByteArray, family);
        const Design design = family.isEmpty()      ? everything()
                              : family == "groups"  ? groupsWithPlans()
                              : family == "offload" ? offloading()
                              : family == "shares"  ? sharedOptimizer()
                              : family == "parts"   ? withParts(trainableDesign(test::tinyGpt("dualpipe", 4, 8)))
                                                    : trainableDesign(test::tinyGpt(family.toStdString(), 4, 8));
        const json document = json::parse(designToJson(design));
        const Runs usual = whatRuns(designFromJson(document.dump(), "test"));
        std::vector<JsonLeaf> leaves;
        gather(document, json::json_pointer(), {}, leaves);
        QVERIFY(leaves.size() > 100);
        std::map<std::string, bool> counts; // path: whether a change of it did something
        const auto describes = [&design](const std::string& path) {
            return isOfAbsentBlocks(path, design.schedule) || describing().contains(path) || path.ends_with("/origin")
                   || path.find("/origin/") != std::string::npos || describesTheCluster(path, hasGroups(design))
                   || path.starts_with("/building_block/"); // the order made of it is in the file
        };
        for (const JsonLeaf& leaf : leaves) {
            if (describes(leaf.path))
                continue;
            bool& does = counts[leaf.path];
            bool parsed = false;
            for (const json& other : othersOf(document.at(leaf.at))) {
                if (does)
                    break;
                json changed = document;
                changed.at(leaf.at) = other;
                std::optional<Design> read;
                try {
                    read = designFromJson(changed.dump(), "test");
                } catch (const Error&) {
                    continue; // of another type, or out of range: other values may be read
                }
                parsed = true;
                try {
                    does = !(whatRuns(*read) == usual);
                } catch (const Error&) {
                    does = true; // refused
                }
            }
            does = does || !parsed;
        }
        std::string ignored;
        for (const auto& [path, does] : counts)
            if (!does)
                ignored += path + " ";
        QVERIFY2(ignored.empty(), ignored.c_str());
    }

    void whatIsRunOtherwiseIsSaid()
    {
        const auto found = [](const Design& design, const RunMeans& means) {
            return said(checkForBackend(design, means).found);
        };
        const Design pairs = trainableDesign(test::tinyGpt("dualpipe", 4, 8));
        QVERIFY(found(pairs, {"host"}).find("train one after the other") != std::string::npos);
        const RunMeans gpus{"cuda", RunOptions::Maths::Timed};
        QVERIFY(found(pairs, gpus).find("the parts of overlapped pairs") == std::string::npos);
        QVERIFY(found(withParts(test::tinyGpt("dualpipe-v", 2, 6)), gpus).find("the parts of overlapped pairs")
                != std::string::npos);
        QVERIFY(found(withParts(test::tinyGpt("dualpipe-v", 2, 6)), {"host", RunOptions::Maths::Timed}).empty());
        Design bus = everything();
        QVERIFY(checkForBackend(bus, {"host"}).trains);
        QVERIFY(found(bus, {"host", RunOptions::Maths::Timed}).empty());
        QVERIFY(found(bus, {"cuda", RunOptions::Maths::Timed}).find("do not wait for switch") != std::string::npos);
        bus.dataflow.skips.front().bytes += 4;
        QVERIFY(!checkForBackend(bus, {"host"}).trains);
        QVERIFY(!hasErrors(checkForBackend(bus, {"host"}).found));
        QVERIFY(hasErrors(checkForBackend(bus, {"host", RunOptions::Maths::Training}).found));
        QVERIFY_THROWS_EXCEPTION(Error, checkForBackend(bus, {"abacus"}));
    }

    void onlyTheVirtualClockRunsTransfersOneAfterTheOther()
    {
        Design design = trainableDesign(test::tinyGpt("1f1b", 4, 8));
        const auto told = [&](const RunMeans& means) {
            return said(checkForBackend(design, means).found).find("none waits for the one before it")
                   != std::string::npos;
        };
        QVERIFY(!told({"host"}));
        design.costs.communication = Communication::OneStream;
        for (const std::string_view backend : runBackends)
            for (const RunOptions::Maths maths : {RunOptions::Maths::Automatic, RunOptions::Maths::Timed})
                QVERIFY(told({std::string(backend), maths}));
        QVERIFY(!told({"host", RunOptions::Maths::Timed, true}));
    }
};

PIPEWRIGHT_TEST(BackendCheckTest, NoApplication)
#include "tst_backendcheck.moc"
