// SPDX-License-Identifier: GPL-3.0-or-later
// The attention of a model's layers as kernels take it.
#include "executor/stage/kernelsettings.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTest>

#include <cmath>

using namespace pipewright;

class TestKernelSettings : public QObject {
    Q_OBJECT

private slots:
    void layersOfOneKindAreListedOnce()
    {
        QCOMPARE(attentionsOf(test::smallShape()).size(), std::size_t(1));
        ModelShape shape = test::llamaShape(6);
        shape.window = 4;
        shape.fullAttentionEvery = 3;
        const auto all = attentionsOf(shape);
        QCOMPARE(all.size(), std::size_t(2));
        QCOMPARE(all[0].window, 4);
        QCOMPARE(all[1].window, 0);
        ModelShape classifier = shape;
        classifier.architecture = Architecture::Classifier;
        QVERIFY(attentionsOf(classifier).empty());
    }

    void sizesAreTheModels()
    {
        const kernels::GroupedAttentionShape llama = attentionsOf(test::llamaShape()).front();
        QCOMPARE(llama.heads, 4);
        QCOMPARE(llama.keyValueHeads, 2);
        QCOMPARE(llama.querySize, 6);
        QCOMPARE(llama.length, 9);
        QVERIFY(llama.causal);
        QCOMPARE(llama.scale, 1 / std::sqrt(6.0f));
        ModelShape latent = test::llamaShape();
        latent.headSize = 4;
        latent.rotaryHeadSize = 6;
        latent.valueHeadSize = 5;
        latent.keyValueLatent = 7;
        const kernels::GroupedAttentionShape of = attentionsOf(latent).front();
        QCOMPARE(of.querySize, 10);
        QCOMPARE(of.valueSize, 5);
        QCOMPARE(of.keyValueHeads, 4);
        QVERIFY(!attentionsOf(test::encoderShape()).front().causal);
    }
};

PIPEWRIGHT_TEST(TestKernelSettings, NoApplication)
#include "tst_kernelsettings.moc"
