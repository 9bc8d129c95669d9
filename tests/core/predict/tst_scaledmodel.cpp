// SPDX-License-Identifier: GPL-3.0-or-later
// Designs with smaller models: what is scaled is said, the schedule stays, and the full model's numbers stand beside
// it.
#include "core/base/diagnostic.h"
#include "core/design/designbuilder.h"
#include "core/json/jsontext.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "core/predict/scaledmodel.h"
#include "core/presets/modeljson.h"
#include "core/presets/presets.h"
#include "testmain.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <nlohmann/json.hpp>

#include <cmath>

using namespace pipewright;

namespace {

Design llama70()
{
    DesignRequest request;
    request.family = "zb-h1";
    request.devices = 4;
    request.microbatches = 8;
    request.model = "llama-3-70b";
    request.cluster = "h100-node";
    return makeDesign(request);
}

std::string faultOf(const Design& design, const std::string& scale)
{
    try {
        scaledDesign(design, scale);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

} // namespace

class TestScaledModel : public QObject {
    Q_OBJECT

private slots:
    void fewerLayersOfTheSameWidthAreCutEvenly()
    {
        const Design full = llama70();
        const ScaledDesign scaled = scaledDesign(full, "layers=8,vocabulary=32000,data_type=fp32");
        const ModelShape& shape = scaled.design.workload->shape;
        QCOMPARE(shape.layers, 8);
        QCOMPARE(shape.hidden, full.workload->shape.hidden);
        QCOMPARE(scaled.design.schedule, full.schedule);
        QCOMPARE(scaled.design.layersPerStage, std::vector<int>({3, 2, 2, 3}));
        QCOMPARE(scaled.report.text(),
                 std::string("layers 80 to 8, vocabulary 128256 to 32000, data_type bf16 to fp32"));
        QVERIFY(isRunnable(shape));
        // Its numbers are those of a design with that model, and the full one's stand beside them.
        QCOMPARE(scaled.report.scaledMakespan, predict(scaled.design).metrics.makespan);
        QCOMPARE(scaled.report.fullMakespan, predict(full).metrics.makespan);
        QVERIFY(scaled.report.fullMakespan > 5 * scaled.report.scaledMakespan);
        QCOMPARE(scaled.report.fullStep(scaled.report.scaledMakespan), scaled.report.fullMakespan);
        QCOMPARE(scaled.report.fullStep(2 * scaled.report.scaledMakespan), 2 * scaled.report.fullMakespan);
    }

    void costsThatNoFormulaGaveShrinkWithTheWork()
    {
        Design full = llama70();
        full.costs.source = "measured: a.db";
        for (StageCosts& stage : full.costs.stages) {
            stage.forward = 1'000'000;
            stage.origin.fill(CostOrigin::Measured);
        }
        const Design scaled = scaledDesign(full, "layers=40").design;
        QVERIFY(scaled.costs.stages[1].forward > 480'000 && scaled.costs.stages[1].forward < 520'000);
        QCOMPARE(scaled.costs.originOf(Op::F, 1), CostOrigin::Estimated);
        QVERIFY(scaled.costs.stages[1].parameters < full.costs.stages[1].parameters);
    }

    void everyPresetCanBeMadeSmallEnoughToTry()
    {
        const PresetLibrary library;
        for (const Preset& preset : library.list(PresetKind::Model)) {
            const ModelShape shape = library.model(preset.name);
            if (shape.architecture == Architecture::Table)
                continue;
            const ScaledShape scaled = scaledShape(shape, "layers=4,data_type=fp32,dropout=off");
            QCOMPARE(scaled.shape.layers, 4);
            QCOMPARE(scaled.shape.hidden, shape.hidden);
            QVERIFY(!scaled.shape.dropout);
        }
    }

    /// A small model's cyclic workers do not sleep for as long as a stage of the full one takes.
    void cyclicWorkersStayApartByAPartOfTheirWork()
    {
        DesignRequest request;
        request.family = "cdp-v2";
        request.devices = 2;
        request.microbatches = 4;
        request.model = "llama-3-8b";
        const Design full = makeDesign(request);
        const ScaledDesign scaled = scaledDesign(full, "layers=6,hidden=64,heads=4,key_value_heads=4,head_size=16");
        const auto apart = [](const Design& design) {
            double work = 0;
            for (const StageCosts& stage : design.costs.stages)
                work += double(stage.forward + stage.inputGrad + stage.weightGrad) / 2;
            return double(design.schedule.pins.at(0).earliestStart) / work;
        };
        QVERIFY(apart(full) > 0.1);
        QVERIFY(std::abs(apart(scaled.design) / apart(full) - 1) < 1e-3);
        QVERIFY(scaled.report.text().find("latest earliest_start") != std::string::npos);
        QVERIFY(scaled.report.scaledMakespan < 20 * scaled.design.costs.stages[1].forward);
    }

    /// The embedding and the head make stages unlike, in other proportions than the full model's.
    void pinsOfCyclicWorkersAreThoseOfTheSmallModelMadeAnew()
    {
        for (const char* family : {"cdp-v1", "cdp-v2"})
            for (const WorkerLayout layout : {WorkerLayout::Pipeline, WorkerLayout::Workers}) {
                DesignRequest request;
                request.family = family;
                request.layout = layout;
                request.devices = 4;
                request.microbatches = 8;
                request.model = "llama-3-8b";
                request.cluster = "h200-node";
                const Design scaled = scaledDesign(makeDesign(request), "layers=6,vocabulary=32000").design;
                ModelShape small = PresetLibrary().model("llama-3-8b");
                small.layers = 6;
                small.vocabulary = 32'000;
                QTemporaryDir folder;
                request.model = folder.filePath("small.json").toStdString();
                QFile file(QString::fromStdString(*request.model));
                QVERIFY(file.open(QIODevice::WriteOnly));
                file.write(QByteArray::fromStdString(jsonText(shapeToJson(small), 2)));
                file.close();
                const Design anew = makeDesign(request);
                QVERIFY(anew.schedule.pins.size() == scaled.schedule.pins.size() && anew.schedule.pins.size() > 1);
                for (std::size_t i = 0; i < anew.schedule.pins.size(); ++i) {
                    const auto due = double(anew.schedule.pins[i].earliestStart);
                    QVERIFY2(std::abs(double(scaled.schedule.pins[i].earliestStart) / due - 1) < 1e-3,
                             qPrintable(QString("%1: %2 for %3")
                                            .arg(i)
                                            .arg(scaled.schedule.pins[i].earliestStart)
                                            .arg(anew.schedule.pins[i].earliestStart)));
                }
            }
    }

    void aPersonsPinIsScaledByItsOwnStage()
    {
        Design full = llama70();
        full.schedule.family = "custom";
        for (const int stage : {1, 3})
            full.schedule.pins.push_back({{Op::F, stage, 0}, 1'000'000'000});
        const Design scaled = scaledDesign(full, "layers=8").design;
        for (const Pin& pin : scaled.schedule.pins) {
            const double ratio =
                double(scaled.costs.stages[pin.block.stage].forward + scaled.costs.stages[pin.block.stage].inputGrad
                       + scaled.costs.stages[pin.block.stage].weightGrad)
                / double(full.costs.stages[pin.block.stage].forward + full.costs.stages[pin.block.stage].inputGrad
                         + full.costs.stages[pin.block.stage].weightGrad);
            QVERIFY(std::abs(double(pin.earliestStart) / (1e9 * ratio) - 1) < 1e-6);
        }
        QVERIFY(scaled.schedule.pins[0].earliestStart < scaled.schedule.pins[1].earliestStart);
    }

    void whatNoModelFileHasIsRefused()
    {
        const Design full = llama70();
        QVERIFY(faultOf(full, "layres=8").find("did you mean \"layers\"") != std::string::npos);
        QVERIFY(faultOf(full, "layers").find("is no field with a value") != std::string::npos);
        QVERIFY(faultOf(full, "layers=many").find("layers") != std::string::npos);
        QVERIFY(faultOf(full, "heads=7").find("cannot share") != std::string::npos);
        QVERIFY(faultOf(full, "").find("nothing is to be scaled") != std::string::npos);
        QVERIFY(faultOf(full, "layers=1").find("fewer than the") != std::string::npos);
        Design plain = full;
        plain.workload.reset();
        QVERIFY(faultOf(plain, "layers=8").find("no model") != std::string::npos);
    }
};

PIPEWRIGHT_TEST(TestScaledModel, NoApplication)
#include "tst_scaledmodel.moc"
