// SPDX-License-Identifier: GPL-3.0-or-later
// The steps of a layer: fused and not, and operations without mathematics.
#include "executor/stage/layermaths.h"

#include "core/base/diagnostic.h"
#include "core/model/modelgraph.h"
#include "executor/stage/counterrandom.h"
#include "executor/stage/gptreference.h"
#include "executor/stage/layerplan.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

namespace {

/// One layer of a model, alone, with random parameters, input and gradient of its output.
struct Alone {
    explicit Alone(const ModelShape& shape)
        : workload(makeWorkload(shape, Optimizer::AdamW, "test")), maths(workload, 1, 2, 1), room(maths),
          parameters(maths.parameters().count()), gradients(parameters.size()), stream(maths.activationElements()),
          streamGrad(stream.size())
    {
        const auto fill = [](std::vector<float>& values, const char* name) {
            for (std::size_t i = 0; i < values.size(); ++i)
                values[i] = 0.3f * float(CounterRandom(7, name).normal(i));
        };
        fill(parameters, "parameters");
        fill(stream, "stream");
        fill(streamGrad, "gradient");
    }

    LayerPlan plan() const
    {
        return {stageGraph(workload.shape, {}, {0, 1, false, false}), 1, false, maths.layout(), maths.parameters()};
    }

    void run(const LayerMaths& layer)
    {
        const StageMemory memory = room.memory();
        layer.forward({memory, parameters, stream});
        layer.inputGrad({memory, parameters, streamGrad, gradients});
        layer.weightGrad({memory, {}, {}, gradients});
    }

    Workload workload;
    StageMaths maths;
    test::StageRoom room;
    std::vector<float> parameters, gradients, stream, streamGrad;
};

} // namespace

class TestLayerMaths : public QObject {
    Q_OBJECT

private slots:
    void fusedProductsComputeWhatApartTheyDo()
    {
        ModelShape shape = test::llamaShape(1);
        shape.gatedMlp = false;
        shape.activation = Activation::GeluTanh;
        Alone together(shape), apart(shape);
        LayerPlan plan = together.plan();
        int fused = 0;
        for (const int tensor : plan.order())
            fused += plan.isActivation(tensor) && plan.isFused(tensor);
        QCOMPARE(fused, 1);
        together.run(LayerMaths(plan, {}));
        plan.fuses = false;
        apart.run(LayerMaths(plan, {}));
        const auto compare = [](const std::vector<float>& a, const std::vector<float>& b) {
            for (std::size_t i = 0; i < a.size(); ++i)
                QVERIFY2(std::abs(a[i] - b[i]) < 1e-5f * std::max(1.0f, std::abs(b[i])), std::to_string(i).c_str());
        };
        compare(together.stream, apart.stream);
        compare(together.streamGrad, apart.streamGrad);
        compare(together.gradients, apart.gradients);
    }

    void gradientsTakeThePlacesWhereTheyAreKept()
    {
        const Alone model(test::llamaShape(1));
        const LayerPlan plan = model.plan();
        const auto find = [&](std::string_view name) {
            for (int t = 0; t < plan.size(); ++t)
                if (plan.node(t).name == name)
                    return t;
            return -1;
        };
        // The gated product's gradient is turned into its gate's where that is kept.
        const Place product = plan.gradient(find("0.mlp.product")), gate = plan.gradient(find("0.mlp.gate"));
        QVERIFY(product.slice == gate.slice);
        QCOMPARE(gate.slice.buffer, BufferKind::SavedFromInputGrad);
        QVERIFY(plan.isOnStream(find("0.add1")));
        QVERIFY(plan.addsToStream(find("0.projection")));
        QVERIFY(plan.keptGradient(find("0.projection")).has_value());
    }

    void anOperationWithoutMathematicsIsNamed()
    {
        Alone model(test::llamaShape(1));
        ModelShape dropping = model.workload.shape;
        dropping.dropout = true;
        const LayerPlan plan(stageGraph(dropping, {}, {0, 1, false, false}), 1, false, model.maths.layout(),
                             model.maths.parameters());
        try {
            const LayerMaths maths(plan, {});
            QFAIL("it has mathematics of dropout");
        } catch (const Error& error) {
            QVERIFY2(QString::fromUtf8(error.what()).contains("dropout"), error.what());
        }
    }
};

PIPEWRIGHT_TEST(TestLayerMaths, NoApplication)
#include "tst_layermaths.moc"
