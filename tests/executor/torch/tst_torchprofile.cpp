// SPDX-License-Identifier: GPL-3.0-or-later
// A model made of what PyTorch measured, with a program that speaks its protocol in the place of Python.
#include "core/design/stagecosts.h"
#include "core/model/layertable.h"
#include "core/model/transformer.h"
#include "core/presets/modelfile.h"
#include "executor/torch/torchprofile.h"
#include "fakepython.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

const std::string layers = R"(say '{"hello":0,"device":"CPU","torch":"9.9","layers":2,"data_type":"bf16","rows":4}'
say '{"layer":"Embed","number":0,"forward":1000,"input_grad":10,"weight_grad":2000,"backward":2005,"saved":64,"saved_for_weight_grad":64,"saved_from_input_grad":0,"kept_gradient":0,"kept_input":0,"kept_output":0,"saved_by_loss":0,"workspace_forward":7,"workspace_input_grad":0,"workspace_weight_grad":9,"workspace_backward":9,"output":512,"peak":null,"parameters":4096,"spread":0.01,"rounds":9}'
say '{"layer":"Head","number":1,"forward":3000,"input_grad":1500,"weight_grad":1600,"backward":2900,"saved":96,"saved_for_weight_grad":32,"saved_from_input_grad":11,"kept_gradient":12,"kept_input":13,"kept_output":14,"saved_by_loss":19,"workspace_forward":15,"workspace_input_grad":16,"workspace_weight_grad":17,"workspace_backward":18,"output":4,"peak":700,"parameters":2048,"spread":0.25,"rounds":7}'
)";

} // namespace

class TestTorchProfile : public QObject {
    Q_OBJECT

private:
    static void compareFirst(std::vector<KnownLayer> table, const char* part)
    {
        const Diagnostics wrong = checkTable(tableShape("net", std::move(table)));
        QCOMPARE(wrong.size(), std::size_t(1));
        QVERIFY2(wrong.front().what.find(part) != std::string::npos, wrong.front().what.c_str());
    }

private slots:
    void whatWasMeasuredIsAModel_data()
    {
        QTest::addColumn<bool>("csv");
        QTest::newRow("model file") << false;
        QTest::newRow("table") << true;
    }

    void whatWasMeasuredIsAModel()
    {
        QFETCH(bool, csv);
        const FakePython python(layers + "say '{\"note\":\"of several types\"}'\nsay '{\"done\":true}'\n");
        TorchProfileOptions options;
        options.module = "some/net.py:build";
        options.python = python.program();
        QStringList told;
        options.progress = [&told](int done, int all, const std::string& layer) {
            told << QString("%1/%2 %3").arg(done).arg(all).arg(layer.c_str());
        };
        const TorchProfile profile = profileWithTorch(options);
        QCOMPARE(told, (QStringList{"1/2 Embed", "2/2 Head"}));
        QCOMPARE(profile.notes, std::vector<std::string>{"of several types"});
        QCOMPARE(profile.layers[1].peak, Bytes(700));
        QVERIFY(profile.origin(options.module).find("spread up to 25.0 %") != std::string::npos);
        const ModelFile file = csv ? readModelFile(layerTableText(profile), "net.csv")
                                   : readModelFile(modelFileText(profile, profile.origin(options.module)), "net.json");
        QCOMPARE(file.shape.table, profile.shape.table);
        QCOMPARE(file.shape.table[1].backward, Nanoseconds(2900));
        QCOMPARE(file.shape.table[1].savedForWeightGrad, Bytes(32));
        QVERIFY(file.shape.autograd);
        QCOMPARE(file.shape.table[1].autograd, (AutogradBytes{11, 12, 13, 14, 19, 15, 16, 17, 18}));
        if (!csv)
            QCOMPARE(file.shape, profile.shape); // a table says neither its type nor its rows
    }

    void frozenAndSharedParametersAndWhatWasEstimatedAreRecorded_data()
    {
        QTest::addColumn<bool>("csv");
        QTest::newRow("model file") << false;
        QTest::newRow("table") << true;
    }
    void frozenAndSharedParametersAndWhatWasEstimatedAreRecorded()
    {
        QFETCH(bool, csv);
        std::string odd = layers;
        odd.replace(odd.find(R"("parameters":4096)"), 17, R"("parameters":4096,"frozen":1024)");
        odd.replace(odd.find(R"("parameters":2048)"), 17, R"("parameters":2048,"shared":512,"shared_with":0)");
        const FakePython python(
            R"(say '{"found":[{"kind":"frozen","what":"some are frozen"}],"estimated":["input_grad"]}'
)" + odd + "say '{\"done\":true}'\n");
        TorchProfileOptions options;
        options.module = "net.py:build";
        options.python = python.program();
        const TorchProfile profile = profileWithTorch(options);
        QCOMPARE(profile.notes, std::vector<std::string>{"some are frozen"});
        QCOMPARE(profile.estimated, std::vector<std::string>{"input_grad"});
        const ModelFile file = csv ? readModelFile(layerTableText(profile), "net.csv")
                                   : readModelFile(modelFileText(profile, profile.origin(options.module)), "net.json");
        QCOMPARE(file.shape.table, profile.shape.table);
        QCOMPARE(file.shape.table[0].frozen, Bytes(1024));
        QCOMPARE(file.shape.table[1].sharedWith, std::string("Embed"));
        const Workload workload = makeWorkload(file.shape, Optimizer::AdamW, "net");
        Costs costs;
        applyBytes(workload, {1, 1}, {}, costs);
        const int size = bytesOf(file.shape.dataType);
        QCOMPARE(costs.stages[0].parameters, Bytes(4096 / size * workload.state.parameter));
        QCOMPARE(costs.stages[0].gradients, Bytes(3072 / size * workload.state.gradient));
        QCOMPARE(costs.stages[0].optimizerState, Bytes(3072 / size * workload.state.optimizer));
        QCOMPARE(sharedParametersOf(workload, {1, 1}, false),
                 (std::vector<SharedParameter>{{0, 1, Bytes(512 / size * workload.state.gradient)}}));
        for (const SharedParameter& inOneStage : sharedParametersOf(workload, {2}, false))
            QVERIFY(!inOneStage.joinsStages());
    }

    void aTableThatSharesWithNoLayerBeforeIsRefused()
    {
        KnownLayer first{.name = "first", .parameters = 8}, second{.name = "second", .parameters = 8};
        second.shared = 4;
        second.sharedWith = "third";
        compareFirst({first, second}, "shares parameters with \"third\", which is no layer before it");
        second.sharedWith = "first";
        QVERIFY(checkTable(tableShape("net", {first, second})).empty());
        second.frozen = 8;
        compareFirst({first, second}, "are frozen or shared");
    }

    void aFaultOfTheModuleIsSaid()
    {
        const FakePython python(layers + R"x(say '{"failed":"it takes no tensor","where":"layer 2 (Net)"}'; exit 1)x");
        TorchProfileOptions options;
        options.module = "net.py:build";
        options.python = python.program();
        try {
            profileWithTorch(options);
            QFAIL("nothing was said");
        } catch (const Error& error) {
            QCOMPARE(std::string(error.what()), std::string("layer 2 (Net): error: it takes no tensor"));
        }
    }

    void aProcessThatEndsTooEarlyIsAFailure()
    {
        const FakePython python(layers + "exit 3\n");
        TorchProfileOptions options;
        options.module = "net.py:build";
        options.python = python.program();
        QVERIFY_THROWS_EXCEPTION(Error, profileWithTorch(options));
    }
};

PIPEWRIGHT_TEST(TestTorchProfile, QCoreApplication)
#include "tst_torchprofile.moc"
