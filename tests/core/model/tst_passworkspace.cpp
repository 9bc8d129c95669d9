// SPDX-License-Identifier: GPL-3.0-or-later
// What a stage that is stored in bf16 is computed in, by a device with bf16 arithmetic and by one without.
#include "core/model/passworkspace.h"
#include "core/model/transformer.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

class TestPassWorkspace : public QObject {
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
        QCOMPARE(passWorkspace(narrow, two, Recompute::Block).recompute, of.forward);
    }

    /// Of the values between layers there is a copy only where the pass has no output for them, and what one part of a
    /// layer hands another lies in two bytes, but for sums.
    void bf16AsItIsNeedsNoCopies()
    {
        ModelShape shape = test::llamaShape();
        shape.dataType = DataType::Bf16;
        const std::vector<Layer> layers = layersOf(shape);
        const std::span<const Layer> all(layers), inner = all.subspan(1, 2);
        const Bytes stream = alignedForPass(2 * shape.tokens() * shape.hidden);
        Bytes inputGrad = 0;
        for (const WorkspaceTensor& tensor : layers[1].workspace)
            inputGrad += alignedForPass(tensor.elements * (tensor.ofSums ? 4 : 2));
        QVERIFY(inputGrad > stream); // a gradient of the values between layers, and attention's number per query
        const PassWorkspace of = passWorkspace(shape, inner, Recompute::None);
        QCOMPARE(of.forward, Bytes{0});
        QCOMPARE(of.inputGrad, inputGrad);
        QCOMPARE(of.backward, inputGrad);
        QCOMPARE(of.weightGrad, Bytes{0});
        QCOMPARE(of.recompute, Bytes{0});
        const PassWorkspace whole = passWorkspace(shape, all, Recompute::None);
        QCOMPARE(whole.forward, stream);               // the head's
        QCOMPARE(whole.inputGrad, inputGrad + stream); // the embedding's
        Bytes again = 0;
        for (const SavedTensor& tensor : layers[1].saved)
            if (tensor.lifetime != Lifetime::FromInputGrad)
                again += alignedForPass(tensor.bytes());
        const PassWorkspace full = passWorkspace(shape, inner, Recompute::Block);
        QCOMPARE(full.forward, again);
        QCOMPARE(full.recompute, stream);
    }

    /// A layer of Llama 3 8B at 8,192 tokens: instead of 3.1 GiB forward and 4.5 GiB back, nothing and 65 MiB.
    void aLayerOfLlamaNeedsLittleBesideItsBuffers()
    {
        ModelShape shape = test::llamaShape();
        shape.hidden = 4096;
        shape.heads = 32;
        shape.keyValueHeads = 8;
        shape.headSize = 128;
        shape.ffn = 14336;
        shape.sequence = 8192;
        shape.microbatchSize = 1;
        shape.attention = AttentionMemory::Streamed;
        shape.dataType = DataType::Bf16;
        const std::vector<Layer> layers = layersOf(shape);
        const PassWorkspace narrow = passWorkspace(shape, std::span(layers).subspan(1, 1), Recompute::None);
        shape.widened = true;
        const PassWorkspace wide = passWorkspace(shape, std::span(layers).subspan(1, 1), Recompute::None);
        QCOMPARE(wide.forward, Bytes{3'289'415'680});
        QCOMPARE(wide.backward, Bytes{4'833'968'128});
        QCOMPARE(narrow.forward, Bytes{0});
        QCOMPARE(narrow.backward, 2 * shape.tokens() * shape.hidden + 4 * shape.heads * shape.tokens());
    }
};

PIPEWRIGHT_TEST(TestPassWorkspace, NoApplication)
#include "tst_passworkspace.moc"
