// SPDX-License-Identifier: GPL-3.0-or-later
// What a device without bf16 arithmetic needs to compute a stage that is stored in bf16.
#include "core/workload/transformer.h"
#include "core/workload/widenedlayers.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

class TestWidenedLayers : public QObject {
    Q_OBJECT

private slots:
    void widenedLayersWorkInFp32CopiesOfThemselves()
    {
        ModelShape shape = test::llamaShape(), narrow = shape;
        narrow.dataType = DataType::Bf16;
        narrow.widened = true;
        const std::vector<Layer> exact = layersOf(shape), stored = layersOf(narrow);
        const std::span<const Layer> two = std::span(stored).subspan(1, 2); // alike
        Bytes kept[3] = {}, half = 0;
        for (const SavedTensor& tensor : exact[1].saved)
            kept[static_cast<int>(tensor.lifetime)] += tensor.bytes();
        for (const SavedTensor& tensor : stored[1].saved)
            half += tensor.bytes();
        const Bytes logSums = 4 * shape.heads * shape.tokens(); // fp32 in both
        QCOMPARE(2 * half - logSums, kept[0] + kept[1] + kept[2]);
        const Bytes parameters = 4 * exact[1].parameters, stream = 4 * shape.tokens() * shape.hidden;
        const Bytes workspace = stageWorkspace(std::span(exact).subspan(1, 1));
        const PassWorkspace of = passWorkspace(narrow, two, Recompute::None);
        QCOMPARE(of.forward, parameters + kept[0] + kept[1] + stream);
        QCOMPARE(of.inputGrad, parameters + kept[0] + kept[1] + kept[2] + workspace + stream);
        QCOMPARE(of.backward, of.inputGrad);
        QCOMPARE(of.weightGrad, kept[1] + kept[2]);
        QCOMPARE(of.recompute, Bytes{0});
        QCOMPARE(passWorkspace(narrow, two, Recompute::Full).recompute, of.forward);
    }
};

PIPEWRIGHT_TEST(TestWidenedLayers, NoApplication)
#include "tst_widenedlayers.moc"
