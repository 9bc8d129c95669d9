// SPDX-License-Identifier: GPL-3.0-or-later
// Designs with smaller models: what is scaled is said, the schedule stays, and the full model's numbers stand beside
// it.
#include "core/base/diagnostic.h"
#include "core/design/designbuilder.h"
#include "core/predict/predict.h"
#include "core/predict/scaledmodel.h"
#include "core/presets/presets.h"
#include "core/workload/transformer.h"
#include "testmain.h"

#include <QTest>

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
            const StageCosts& stage = design.costs.stages[0];
            return double(design.schedule.pins.at(0).earliestStart)
                   / double(stage.forward + stage.inputGrad + stage.weightGrad);
        };
        QVERIFY(apart(full) > 0.1);
        QVERIFY(std::abs(apart(scaled.design) / apart(full) - 1) < 1e-3);
        QVERIFY(scaled.report.text().find("latest earliest_start") != std::string::npos);
        QVERIFY(scaled.report.scaledMakespan < 20 * scaled.design.costs.stages[1].forward);
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
