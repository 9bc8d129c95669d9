// SPDX-License-Identifier: GPL-3.0-or-later
// No option of a design does nothing in silence: of every family, and whatever gives the costs, it changes the design
// or it is refused.
#include "core/design/optionrules.h"

#include "core/base/recompute.h"
#include "makers/designs.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTest>

#include <functional>
#include <map>
#include <set>

using namespace pipewright;

namespace {

using Change = std::function<void(DesignRequest&)>;

/// One use of an option: beside what it is given, if anything, and with which values. It counts as used when one of
/// them matters.
struct Use {
    std::string option;
    Change beside;
    std::vector<Change> values;
};

Parallelism& parallel(DesignRequest& request)
{
    if (!request.parallel)
        request.parallel.emplace();
    return *request.parallel;
}

std::vector<Use> uses()
{
    const Change nothing;
    const auto passes = [](DesignRequest& r) { r.forward = r.inputGrad = r.weightGrad = 3'000'000; };
    const auto shared = [](DesignRequest& r) {
        parallel(r).data = 2;
        r.zero.level = 3;
    };
    const auto tensor = [](DesignRequest& r) { parallel(r).tensor = 2; };
    const auto limit = [](double factor) { return [factor](DesignRequest& r) { r.memoryLimit = factor; }; };
    return {
        {"--devices", nothing, {[](auto& r) { r.devices = 2; }}},
        {"--microbatches", nothing, {[](auto& r) { r.microbatches = 16; }}},
        {"--replicas", nothing, {[](auto& r) { r.replicas = 2; }}},
        {"--shard-optimizer", [](auto& r) { r.replicas = 2; }, {[](auto& r) { r.zero.level = 1; }}},
        {"--zero", nothing, {[](auto& r) { r.zero.level = 1; }}},
        {"--zero", [](auto& r) { r.replicas = 2; }, {[](auto& r) { r.zero.level = 1; }}},
        {"--zero", [](auto& r) { parallel(r).data = 2; }, {[](auto& r) { r.zero.level = 1; }}},
        {"--zero", [](auto& r) { parallel(r).data = 2; }, {[](auto& r) { r.zero.level = 2; }}},
        {"--zero", [](auto& r) { parallel(r).data = 2; }, {[](auto& r) { r.zero.level = 3; }}},
        {"--reshard", shared, {[](auto& r) { r.reshard = {.every = true}; }}},
        {"--prefetch", shared, {[](auto& r) { r.zero.prefetch = 2; }}},
        {"--reduce", shared, {[](auto& r) { r.zero.reduce = Zero::Reduce::Each; }}},
        {"--reduce", nothing, {[](auto& r) { r.zero.reduce = Zero::Reduce::Each; }}},
        {"--chunks", nothing, {[](auto& r) { r.chunks = 3; }}},
        {"--group", nothing, {[](auto& r) { r.group = 6; }}},
        {"--pieces", nothing, {[](auto& r) { r.pieces = 2; }}},
        {"--forward", nothing, {[](auto& r) { r.forward = 2'000'000; }}},
        {"--forward", passes, {[](auto& r) { r.forward = 2'000'000; }}},
        {"--input-grad", passes, {[](auto& r) { r.inputGrad = 2'000'000; }}},
        {"--weight-grad", passes, {[](auto& r) { r.weightGrad = 2'000'000; }}},
        {"--transfer", nothing, {[](auto& r) { r.transfer = 70'000; }}},
        {"--per-chunk", nothing, {[](auto& r) { r.perChunk = true; }}},
        {"--per-chunk", passes, {[](auto& r) { r.perChunk = true; }}},
        {"--overlap-factor", nothing, {[](auto& r) { r.overlapFactor = 0.7; }}},
        {"--memory-limit", nothing, {limit(0.5), limit(0.8), limit(2)}},
        {"--saved", nothing, {[](auto& r) { r.saved = 1 << 20; }}},
        {"--saved-for-weight-grad", nothing, {[](auto& r) { r.savedForWeightGrad = 1 << 19; }}},
        {"--saved-for-weight-grad", [](auto& r) { r.saved = 1 << 20; }, {[](auto& r) {
             r.savedForWeightGrad = 1 << 19;
         }}},
        {"--model", nothing, {[](auto& r) { r.model = "qwen2.5-7b"; }}},
        {"--device", nothing, {[](auto& r) { r.device = "a100-sxm-80"; }}},
        {"--cluster", nothing, {[](auto& r) { r.cluster = "a100-nodes"; }}},
        {"--sequence", nothing, {[](auto& r) { r.sequence = 32; }}},
        {"--microbatch-size", nothing, {[](auto& r) { r.microbatchSize = 3; }}},
        {"--layers-per-stage", nothing, {[](auto& r) {
             r.layersPerStage = {7, 8, 8, 9};
         }}},
        {"--tensor-parallel", nothing, {tensor}},
        {"--sequence-parallel", nothing, {[](auto& r) { parallel(r).sequence = true; }}},
        {"--sequence-parallel", tensor, {[](auto& r) { parallel(r).sequence = true; }}},
        {"--context-parallel", nothing, {[](auto& r) { parallel(r).context = 2; }}},
        {"--expert-parallel", nothing, {[](auto& r) { parallel(r).expert = parallel(r).data = 2; }}},
        {"--data-parallel", nothing, {[](auto& r) { parallel(r).data = 2; }}},
        {"--overlap-exchanges", nothing, {[](auto& r) { parallel(r).overlap = 0.5; }}},
        {"--overlap-exchanges", tensor, {[](auto& r) { parallel(r).overlap = 0.5; }}},
        {"--overlap-exchanges",
         [&](auto& r) {
             r.forward = r.inputGrad = r.weightGrad = 3'000'000;
             parallel(r).tensor = 2;
         },
         {[](auto& r) { parallel(r).overlap = 0.5; }}},
        {"--folded-experts", nothing, {[](auto& r) { parallel(r).foldedExperts = true; }}},
        {"--folded-experts",
         [](auto& r) {
             r.model = "mixtral-8x7b";
             parallel(r).tensor = 2;
             parallel(r).sequence = true;
         },
         {[](auto& r) { parallel(r).foldedExperts = true; }}},
        {"--expert-spread", nothing, {[](auto& r) { parallel(r).expertSpread = 1.5; }}},
        {"--expert-spread",
         [](auto& r) {
             r.model = "mixtral-8x7b";
             parallel(r).expert = parallel(r).data = 2;
         },
         {[](auto& r) { parallel(r).expertSpread = 1.5; }}},
        {"--node-dispatch", nothing, {[](auto& r) { parallel(r).nodeDispatch = true; }}},
        {"--node-dispatch",
         [](auto& r) {
             r.model = "mixtral-8x7b";
             parallel(r).expert = parallel(r).data = 2;
         },
         {[](auto& r) { parallel(r).nodeDispatch = true; }}},
        {"--efficiency", nothing, {[](auto& r) { r.efficiency = 0.3; }}},
        {"--efficiency", passes, {[](auto& r) { r.efficiency = 0.3; }}},
        {"--half-rate-width", nothing, {[](auto& r) { r.halfRateWidth = 700; }}},
        {"--half-rate-width", passes, {[](auto& r) { r.halfRateWidth = 700; }}},
        {"--nodes", nothing, {[](auto& r) { r.nodes.count = 3; }}},
        {"--devices-per-node", nothing, {[](auto& r) { r.nodes.devices = 2; }}},
        {"--cards-per-node", nothing, {[](auto& r) { r.nodes.cards = 2; }}},
        {"--nodes-per-switch", nothing, {[](auto& r) { r.nodes.perSwitch = 2; }}},
        {"--oversubscription", nothing, {[](auto& r) { r.nodes.oversubscription = 3; }}},
        {"--recompute", nothing, {[](auto& r) { r.recompute = parseRecompute("full", "--recompute"); }}},
        {"--name", nothing, {[](auto& r) { r.name = "mine"; }}},
        {"--accumulate", nothing, {[](auto& r) { r.accumulate = 3; }}},
        {"--optimizer", nothing, {[](auto& r) { r.optimizer = Optimizer::AdamW; }}},
        {"--prediction-steps", nothing, {[](auto&) {}, [](auto& r) { r.weights.steps = PredictionSteps::Exact; }}},
        {"--rounding", nothing, {[](auto&) {}, [](auto& r) { r.weights.rounding = StepRounding::Floor; }}},
        {"--spectrain", nothing, {[](auto&) {}, [](auto& r) { r.weights.specTrain = 2; }}},
        {"--vertical-sync", nothing, {[](auto& r) { r.weights.verticalSync = true; }}},
        {"--workers", nothing, {[](auto& r) { r.workers = 3; }}},
        {"--layout", nothing, {[](auto&) {}, [](auto& r) { r.layout = WorkerLayout::Workers; }}},
    };
}

/// Options that the command line applies to the finished design.
const std::set<std::string_view> appliedLater{"--offload", "--host-link", "--communication"};

/// 4 devices and 12 microbatches, which every family can take, with costs from …
std::map<std::string, DesignRequest> startsOf(const Family& family)
{
    DesignRequest given = test::requestFor(family.name, 4, 12);
    DesignRequest formula = given;
    formula.model = "gpt-1.5b";
    formula.cluster = "h200-nodes";
    DesignRequest carried = given;
    DesignRequest measured = test::requestFor("zb-h1", 4, 12);
    measured.model = "gpt-1.5b";
    measured.cluster = "h200-nodes";
    carried.costsFrom = makeDesign(measured);
    carried.costsFrom->costs.source = "measured: run.db";
    return {{"given times", given}, {"a formula", formula}, {"a recording", carried}};
}

std::optional<Design> made(const DesignRequest& request)
{
    try {
        return makeDesign(request);
    } catch (const Error&) {
        return {};
    }
}

int familyNumber(const Family& family)
{
    return static_cast<int>(std::ranges::find(families(), family.name, &Family::name) - families().begin());
}

} // namespace

class OptionRulesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyOptionChangesTheDesignOrIsRefused_data()
    {
        QTest::addColumn<QString>("name");
        for (const Family& family : families())
            QTest::newRow(std::string(family.name).c_str()) << QString::fromUtf8(family.name.data());
    }

    void everyOptionChangesTheDesignOrIsRefused()
    {
        QFETCH(QString, name);
        const Family& family = *findFamily(name.toStdString());
        QStringList silent;
        int turn = familyNumber(family);
        for (const auto& [costs, start] : startsOf(family)) {
            if (sanitized && turn++ % 3 != 0) // ways to get costs take turns
                continue;
            const std::optional<Design> plain = made(start);
            for (const Use& use : uses()) {
                DesignRequest base = start;
                if (use.beside)
                    use.beside(base);
                const std::optional<Design> without = use.beside ? made(base) : plain;
                if (!without)
                    continue; // what stands beside it is refused already
                bool matters = false;
                for (const Change& value : use.values) {
                    DesignRequest request = base;
                    value(request);
                    request.given = {use.option};
                    try {
                        matters = matters || !(makeDesign(request) == *without);
                    } catch (const Error& error) {
                        matters = true;
                        for (const Diagnostic& diagnostic : error.diagnostics())
                            QVERIFY(!diagnostic.what.empty());
                    }
                }
                if (!matters)
                    silent << QString::fromStdString(use.option + ", costs from " + costs);
            }
        }
        QVERIFY2(silent.isEmpty(), qPrintable(silent.join("; ")));
    }

    void everyOptionHasARuleAndIsTriedHere()
    {
        std::set<std::string_view> tried = appliedLater;
        const std::vector<Use> all = uses();
        for (const Use& use : all)
            tried.insert(use.option);
        const std::vector<std::string_view> known = optionsWithRules();
        QCOMPARE(std::set<std::string_view>(known.begin(), known.end()), tried);
        DesignRequest request = test::requestFor("1f1b", 4, 8);
        request.given = {"--unheard-of"};
        QVERIFY_THROWS_EXCEPTION(Error, makeDesign(request));
    }

    void aRefusalNamesTheFamilyAndTheRemedy()
    {
        const auto diagnosticOf = [](const char* family, const char* option) {
            DesignRequest request = test::requestFor(family, 4, 8);
            request.given = {option};
            try {
                makeDesign(request);
            } catch (const Error& error) {
                return error.diagnostics().front();
            }
            return Diagnostic{};
        };
        QCOMPARE(diagnosticOf("gpipe", "--group").where, std::string("--group"));
        QCOMPARE(diagnosticOf("gpipe", "--group").what,
                 std::string("changes nothing of GPipe: its microbatches are in no groups"));
        QVERIFY(diagnosticOf("1f1b", "--overlap-factor").hint.find("dualpipe") != std::string::npos);
        QVERIFY(diagnosticOf("zb-h1", "--memory-limit").hint.find("zb-auto") != std::string::npos);
        QVERIFY(diagnosticOf("zb-auto", "--memory-limit").what.empty());
        QVERIFY(diagnosticOf("dualpipe", "--overlap-factor").what.empty());
    }
};

PIPEWRIGHT_TEST(OptionRulesTest, NoApplication)
#include "tst_optionrules.moc"
