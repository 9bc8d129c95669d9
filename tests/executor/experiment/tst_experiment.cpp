// SPDX-License-Identifier: GPL-3.0-or-later
// Experiments: the same data for all designs, the sequential run first and its bits where they are promised, what is
// kept when a person breaks off, and what is refused or warned of.
#include "testmain.h"

#include <QTest>

#include "core/design/stagecosts.h"
#include "core/families/family.h"
#include "core/model/transformer.h"
#include "executor/experiment/experimentreport.h"
#include "executor/run/run.h"
#include "executor/stage/gptreference.h"
#include "makers/designs.h"

#include <QTemporaryDir>

#include <SQLiteCpp/SQLiteCpp.h>

#include <nlohmann/json.hpp>

#include <cmath>

using namespace pipewright;
using namespace pipewright::test;

namespace {

Design designOf(std::string_view family, int microbatches, int microbatchSize, std::optional<int> accumulate = {},
                Optimizer rule = Optimizer::SgdMomentum)
{
    FamilyParameters p = sized(2, microbatches);
    p.accumulate = accumulate;
    if (findFamily(family)->updates)
        p.optimizer = rule;
    Design design = evenDesign({}, makeSchedule(family, p));
    design.name = family;
    ModelShape shape = smallShape(2);
    shape.vocabulary = 256;
    shape.tiedHead = false;
    shape.microbatchSize = microbatchSize;
    design.workload = makeWorkload(shape, Optimizer::SgdMomentum, "test");
    design.layersPerStage = evenPartition(*design.workload, 2);
    applyBytes(*design.workload, design.layersPerStage, {}, design.costs);
    design.cluster.devices.resize(2);
    return design;
}

ExperimentOptions optionsFor(int updates, int seeds = 1)
{
    ExperimentOptions options;
    options.updates = updates;
    options.seeds = seeds;
    options.learningRate = 0.05;
    return options;
}

} // namespace

class TestExperiment : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void theReferenceComesFirstAndAFlushHasItsBits()
    {
        ExperimentOptions options = optionsFor(6, 2);
        std::vector<double> told;
        int finished = 0;
        double last = 0;
        options.progress = [&](const ExperimentProgress& now) {
            if (now.run == 0)
                told.push_back(now.loss);
            QCOMPARE(now.runs, 6);
            QVERIFY(now.fraction() > last || now.design != "sequential");
            last = now.fraction();
        };
        options.finished = [&](const ExperimentRun&) { ++finished; };
        const Experiment experiment = runExperiment({designOf("1f1b", 2, 2), designOf("pipeoptim", 4, 4)}, options);
        QCOMPARE(experiment.runs.size(), std::size_t{6});
        QCOMPARE(finished, 6);
        QVERIFY(!experiment.cancelled);
        for (std::size_t i = 0; i < 6; ++i) {
            const ExperimentRun& run = experiment.runs[i];
            QCOMPARE(run.design, i % 3);
            QCOMPARE(run.reference, i % 3 == 0);
            QCOMPARE(run.seed, std::uint64_t{i / 3 + 1});
            QCOMPARE(run.losses.size(), std::size_t{6});
            QCOMPARE(run.rowsPerUpdate, std::int64_t{4});
            QVERIFY(run.readsAgree);
            QCOMPARE(run.peakBytes, run.predictedPeakBytes);
            QVERIFY(run.heldBackAccuracy >= 0 && run.heldBackAccuracy <= 1 && run.heldBackLoss > 0);
        }
        QCOMPARE(told.size(), std::size_t{6});
        for (std::size_t i = 0; i < 6; ++i) // added up as the microbatches came, not in ascending order
            QVERIFY(std::abs(told[i] - experiment.runs[0].losses[i]) < 1e-5);
        QCOMPARE(experiment.runs[1].bitEqual, std::optional(true)); // the flush
        QCOMPARE(experiment.runs[4].bitEqual, std::optional(true));
        QCOMPARE(experiment.runs[2].bitEqual, std::optional(false));
        QVERIFY(experiment.runs[0].losses != experiment.runs[3].losses); // another seed
        // The same rows, though one design takes them as two microbatches and the other as one: before any update
        // has happened, both lose as much.
        QVERIFY(std::abs(experiment.runs[0].losses[0] - experiment.runs[2].losses[0]) < 1e-5);
        QVERIFY(whatIsUnfair(experiment.runs).empty());
    }

    void whatIsStoredInBf16IsWidened()
    {
        std::vector<Design> designs{designOf("1f1b", 2, 2), designOf("pipeoptim", 4, 4)};
        const Experiment exact = runExperiment(designs, optionsFor(4));
        for (Design& design : designs) {
            ModelShape shape = design.workload->shape;
            shape.dataType = DataType::Bf16;
            design.workload = makeWorkload(shape, Optimizer::SgdMomentum, "test");
        }
        const Experiment narrow = runExperiment(designs, optionsFor(4));
        QVERIFY(narrow.runs[1].bitEqual && narrow.runs[2].readsAgree);
        for (std::size_t i = 0; i < narrow.runs.size(); ++i) {
            QCOMPARE(narrow.runs[i].peakBytes, narrow.runs[i].predictedPeakBytes);
            QVERIFY(narrow.runs[i].parameters != exact.runs[i].parameters);
            QVERIFY(std::abs(narrow.runs[i].finalLoss / exact.runs[i].finalLoss - 1) < 0.01);
        }
    }

    void whatIsFinishedSurvivesACancel()
    {
        ExperimentOptions options = optionsFor(4);
        std::atomic<bool> cancel{false};
        options.cancel = &cancel;
        options.progress = [&](const ExperimentProgress& now) {
            if (now.run == 1 && now.update == 1)
                cancel = true;
        };
        const Experiment experiment = runExperiment({designOf("1f1b", 2, 2), designOf("pipedream", 4, 4)}, options);
        QVERIFY(experiment.cancelled);
        QCOMPARE(experiment.planned, 3);
        QCOMPARE(experiment.runs.size(), std::size_t{1});
        QVERIFY(experiment.runs[0].reference);
        QCOMPARE(experiment.runs[0].losses.size(), std::size_t{4});
    }

    void whatCannotBeTrainedIsSaidBeforeAnyIs()
    {
        int finished = 0;
        ExperimentOptions options = optionsFor(2);
        options.finished = [&](const ExperimentRun&) { ++finished; };
        Design without = designOf("pipedream", 4, 4);
        without.workload.reset();
        QVERIFY_THROWS_EXCEPTION(Error, runExperiment({designOf("1f1b", 2, 2), without}, options));
        options.optimizer = Optimizer::Adam; // a flush knows sgd and adamw
        QVERIFY_THROWS_EXCEPTION(Error, runExperiment({designOf("1f1b", 2, 2)}, options));
        QVERIFY_THROWS_EXCEPTION(Error, runExperiment({}, options));
        options.optimizer = Optimizer::AdamW; // SpecTrain follows SGD alone
        QVERIFY_THROWS_EXCEPTION(Error, runExperiment({designOf("1f1b", 2, 2), designOf("spectrain", 4, 4)}, options));
        QCOMPARE(finished, 0);
    }

    void databasesOfOtherVersionsAreTakenOn()
    {
        const QTemporaryDir folder;
        const std::string path = folder.filePath("old.db").toStdString();
        const auto execute = [&](const char* sql) {
            SQLite::Database(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec(sql);
        };
        // Without a column that came later, and with one that is unknown.
        execute("CREATE TABLE EXPERIMENT_RUNS (id INTEGER PRIMARY KEY, design TEXT NOT NULL, rule TEXT NOT NULL,"
                "optimizer TEXT NOT NULL, seed INTEGER NOT NULL, devices INTEGER NOT NULL, stages INTEGER NOT NULL,"
                "microbatchesPerUpdate INTEGER NOT NULL, room TEXT, finalLoss REAL, heldBackLoss REAL, "
                "heldBackAccuracy REAL,"
                "updatesPerSecond REAL, peakBytes INTEGER)");
        execute("INSERT INTO EXPERIMENT_RUNS VALUES (NULL, 'before', 'vanilla', 'sgd', 1, 2, 2, 1, 'here', 3, 3, 0, 9, "
                "512)");
        ExperimentRecord record;
        record.design = "after";
        record.rule = "pipedream";
        record.optimizer = "adamw";
        record.predictedUpdatesPerSecond = 4;
        record.peakBytes = 1024;
        record.losses = {2, 1};
        record.weights.resize(2);
        record.weights[1].stage = 1;
        for (int time = 0; time < 2; ++time) // the second finds a file of its own
            ExperimentStore(path).add(record);
        SQLite::Database database(path);
        SQLite::Statement rows(
            database, "SELECT design, room, predictedUpdatesPerSecond, peakBytes FROM EXPERIMENT_RUNS ORDER BY id");
        QVERIFY(rows.executeStep());
        QCOMPARE(rows.getColumn(1).getString(), std::string("here"));
        QVERIFY(rows.getColumn(2).isNull());
        QVERIFY(rows.executeStep());
        QCOMPARE(rows.getColumn(0).getString(), std::string("after"));
        QVERIFY(rows.getColumn(1).isNull());
        QCOMPARE(rows.getColumn(2).getDouble(), 4.0);
        QCOMPARE(rows.getColumn(3).getInt(), 1024);
        QCOMPARE(database.execAndGet("SELECT count(*) FROM EXPERIMENT_LOSSES").getInt(), 4);
        QCOMPARE(database.execAndGet("SELECT count(*) FROM EXPERIMENT_STAGES").getInt(), 4);
    }

    void databasesOfOthersAreRefused_data()
    {
        QTest::addColumn<QByteArray>("table");
        QTest::addColumn<QByteArray>("said");
        QTest::newRow("something else") << QByteArray(
            "CREATE TABLE EXPERIMENT_RUNS (id INTEGER PRIMARY KEY, design TEXT)")
                                        << QByteArray("no column rule");
        QTest::newRow("a later version") << QByteArray(
            "CREATE TABLE EXPERIMENT_LOSSES (run INTEGER NOT NULL, updateNumber INTEGER NOT NULL, loss REAL,"
            "unit TEXT NOT NULL, PRIMARY KEY (run, updateNumber)) WITHOUT ROWID")
                                         << QByteArray("wants a value for unit");
    }

    void databasesOfOthersAreRefused()
    {
        QFETCH(QByteArray, table);
        QFETCH(QByteArray, said);
        const QTemporaryDir folder;
        const std::string path = folder.filePath("other.db").toStdString();
        SQLite::Database(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec(table.constData());
        try {
            ExperimentStore store(path);
            QFAIL("it was taken on");
        } catch (const Error& error) {
            QVERIFY2(QByteArray(error.what()).contains(said), error.what());
            QVERIFY(!error.diagnostics().front().hint.empty());
        }
        SQLite::Database database(path); // as it was
        QCOMPARE(database.execAndGet("SELECT count(*) FROM sqlite_master WHERE type = 'table'").getInt(), 1);
    }

    void unequalUpdatesAndModelsAreWarnedOf()
    {
        Design wide = designOf("pipedream", 4, 4);
        ModelShape shape = wide.workload->shape;
        shape.ffn = 24;
        wide.workload = makeWorkload(shape, Optimizer::SgdMomentum, "test");
        const Experiment experiment =
            runExperiment({designOf("1f1b", 2, 2), designOf("pipedream", 4, 2), wide}, optionsFor(2));
        const Diagnostics warnings = whatIsUnfair(experiment.runs);
        QCOMPARE(warnings.size(), std::size_t{2});
        QVERIFY(warnings[0].what.find("rows") != std::string::npos);
        QVERIFY(warnings[1].what.find("parameters") != std::string::npos);
    }

    void reportsHoldEveryRun()
    {
        const Experiment experiment =
            runExperiment({designOf("1f1b", 2, 2), designOf("cdp-v2", 4, 2)}, optionsFor(3, 2));
        const std::vector<ExperimentSummary> lines = summarise(experiment.runs);
        QCOMPARE(lines.size(), std::size_t{3});
        QCOMPARE(lines[2].staleness, (std::vector<int>{1, 0}));
        QCOMPARE(lines[2].seeds, 2);
        const double a = experiment.runs[2].finalLoss, b = experiment.runs[5].finalLoss;
        QVERIFY(std::abs(lines[2].finalLoss.mean - (a + b) / 2) < 1e-12);
        QVERIFY(std::abs(lines[2].finalLoss.range - std::abs(a - b)) < 1e-12);
        const QStringList rows = QString::fromStdString(curvesCsv(experiment.runs)).split('\n', Qt::SkipEmptyParts);
        QCOMPARE(rows.size(), 4);
        for (const QString& row : rows)
            QCOMPARE(row.count(','), 6);
        const QStringList table = QString::fromStdString(summaryCsv(lines)).split('\n', Qt::SkipEmptyParts);
        QCOMPARE(table.size(), 4);
        QVERIFY(table[2].contains(",yes,"));
        const std::string picture = lossPicture("three updates", lossCurves(experiment.runs));
        for (const char* part : {"<svg", "cdp-v2", "sequential", "three updates"})
            QVERIFY2(picture.find(part) != std::string::npos, part);
        const nlohmann::json json = nlohmann::json::parse(toJson(experiment.runs[1]).dump());
        QCOMPARE(json["bit_equal_to_reference"].get<bool>(), true);
        QCOMPARE(json["loss"].size(), std::size_t{3});
        ExperimentRun away = experiment.runs[2];
        away.losses[1] = away.finalLoss = NAN; // no number in JSON
        const ExperimentRun back = experimentRunFrom(JsonValue::fromText(toJson(away).dump()));
        QCOMPARE(toJson(back).dump(), toJson(away).dump());
        QVERIFY(std::isnan(back.losses[1]));
    }

    void averagesRunOverWhatThereIs()
    {
        QCOMPARE(movingAverage({4, 2, 6, 0}, 2), (std::vector<double>{4, 3, 4, 3}));
        QCOMPARE(movingAverage({1, 3}, 5), (std::vector<double>{1, 2}));
        // A curve that runs away, or is empty, leaves a picture all the same.
        const LossSeries away{"away", {{5, 1e9, NAN}}}, empty{"empty", {{}}}, flat{"flat", {{2, 2, 2}}};
        QVERIFY(lossPicture("odd", {flat, away, empty}).find("diverged") != std::string::npos);
        QVERIFY(lossPicture("none", {}).find("</svg>") != std::string::npos);
        // What rises is no divergence: the axis goes to its top.
        const LossSeries right{"right", {{0.1, 0.9}}};
        QVERIFY(lossPicture("shares", {right}, lightTheme, 1).find(">0.9<") == std::string::npos);
        const std::string shares = lossPicture("shares", {right}, lightTheme, 1, "accuracy");
        QVERIFY(shares.find(">accuracy<") != std::string::npos && shares.find(">loss<") == std::string::npos);
    }
};

PIPEWRIGHT_TEST(TestExperiment, QCoreApplication)
#include "tst_experiment.moc"
