// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/leftout.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;

namespace {

bool leaves(const Design& design, const char* words)
{
    const std::vector<std::string> list = leftOut(design);
    return std::any_of(list.begin(), list.end(),
                       [&](const std::string& phrase) { return phrase.find(words) != std::string::npos; });
}

Design on(const char* model, const Parallelism& parallel, const char* cluster = "a100-nodes")
{
    DesignRequest request = test::requestFor("1f1b", 4, 8);
    request.model = model;
    request.cluster = cluster;
    request.parallel = parallel;
    return makeDesign(request);
}

} // namespace

class LeftOutTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aFormulaSaysWhatItLeavesOutOfThisDesign()
    {
        const Design plain = on("llama-3-8b", {});
        QVERIFY(leaves(plain, "host") && leaves(plain, "memory"));
        QVERIFY(!leaves(plain, "softmax") && !leaves(plain, "causal") && !leaves(plain, "experts"));
        const Design tensor = on("llama-3-8b", {8, true, 2});
        QVERIFY(leaves(tensor, "softmax") && leaves(tensor, "norms' gradients") && leaves(tensor, "causal"));
        QVERIFY(leaves(on("mixtral-8x7b", {}), "experts"));
        QVERIFY(!leaves(on("llama-3-8b", {}, "b200-nodes"), "memory")); // whose rates know it
        QVERIFY(!leaves(on("llama-3-8b", {}, "h100-nodes"), "memory"));
    }

    void givenTimesLeaveNothingOut()
    {
        QVERIFY(leftOut(makeDesign(test::requestFor("1f1b", 4, 8))).empty());
        Design gaps = on("llama-3-8b", {});
        gaps.costs.hostGaps.resize(4);
        gaps.costs.hostGaps[1].before.fill(1000);
        QVERIFY(!leaves(gaps, "host"));
    }
};

PIPEWRIGHT_TEST(LeftOutTest, NoApplication)
#include "tst_leftout.moc"
