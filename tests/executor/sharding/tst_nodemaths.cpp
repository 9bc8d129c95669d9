// SPDX-License-Identifier: GPL-3.0-or-later
// A node alone: which gradients it makes, what is left of it on a member without a part of its operands, and what its
// plan notes of the rows of operations.
#include "executor/sharding/nodemaths.h"

#include "executor/host/hostbackend.h"
#include "executor/stage/counterrandom.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;
using namespace pipewright::sharding;

namespace {

/// A node with its operands' values on the host's device. Where a length is 0, the whole has something.
struct Alone {
    Alone(std::string_view operation, const std::vector<Shape>& shapes, const Attributes& attributes = {})
    {
        std::vector<int> leaves;
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            Shape whole = shapes[i];
            std::replace(whole.begin(), whole.end(), 0, 1);
            leaves.push_back(graph.addInput("operand " + std::to_string(i), whole));
            HostTensor value(shapes[i]);
            const CounterRandom random(3, std::to_string(i));
            for (std::size_t at = 0; at < value.elements(); ++at)
                value.data[at] = float(random.normal(at));
            values.push_back(member.put(value));
        }
        node = graph.add("node", std::string(operation), leaves, attributes);
        for (const Tensor& value : values)
            operands.push_back(&value);
    }

    NodeMaths maths(const LocalPart& part = {}) const
    {
        std::vector<Shape> shapes;
        for (const Tensor& value : values)
            shapes.push_back(value.shape);
        return {graph.node(node), shapes, graph.node(node).shape, part};
    }

    std::unique_ptr<Backend> host = createHostBackend(1);
    MemberDevice member{host->device(0)};
    TensorGraph graph;
    std::vector<Tensor> values;
    Operands operands;
    int node = -1;
};

bool areEqual(std::span<const float> a, std::span<const float> b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

} // namespace

class NodeMathsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void onlyWantedGradientsOfAProductAreMade()
    {
        Alone alone("linear", {{4, 3}, {5, 3}, {5}});
        const NodeMaths maths = alone.maths();
        const Tensor made = maths.forward(alone.member, alone.operands);
        const auto inputs = maths.backward(alone.member, alone.operands, made, made, {.parameters = false});
        QCOMPARE(inputs[0].elements(), std::size_t(12));
        QCOMPARE(inputs[1].elements() + inputs[2].elements(), std::size_t(0));
        const auto parameters = maths.backward(alone.member, alone.operands, made, made, {.inputs = false});
        QCOMPARE(parameters[0].elements(), std::size_t(0));
        const auto all = maths.backward(alone.member, alone.operands, made, made);
        QVERIFY(areEqual(all[0].data, inputs[0].data));
        QVERIFY(areEqual(all[1].data, parameters[1].data));
        QVERIFY(areEqual(all[2].data, parameters[2].data));
    }

    // A kernel makes the gradients of sinks with the others.
    void gradientsThatAreMadeTogetherAreMadeOnce()
    {
        Alone alone("attention", {{2, 3, 8}, {2, 3, 8}, {2, 3, 8}, {2}}, {{"heads", 2}, {"key_value_heads", 2}});
        const NodeMaths maths = alone.maths();
        const Tensor made = maths.forward(alone.member, alone.operands);
        const auto all = maths.backward(alone.member, alone.operands, made, made);
        for (const Wanted wanted : {Wanted{.parameters = false}, Wanted{.inputs = false}}) {
            const auto some = maths.backward(alone.member, alone.operands, made, made, wanted);
            for (std::size_t o = 0; o < all.size(); ++o)
                QVERIFY(areEqual(some[o].data, all[o].data));
        }
    }

    void operandsAreNotChanged()
    {
        Alone alone("attention", {{1, 4, 8}, {1, 4, 8}, {1, 4, 8}},
                    {{"heads", 2}, {"key_value_heads", 2}, {"rotary_base", 100}});
        const HostTensor before = alone.member.get(alone.values[0]);
        const NodeMaths maths = alone.maths();
        const Tensor made = maths.forward(alone.member, alone.operands);
        maths.backward(alone.member, alone.operands, made, made);
        QVERIFY(areEqual(alone.values[0].data, before.data));
    }

    void anOperandThatAnotherMemberAddsIsLeftOut()
    {
        Alone alone("linear", {{4, 3}, {5, 3}, {5}}), without("linear", {{4, 3}, {5, 3}});
        const NodeMaths maths = alone.maths({.leftOut = 2});
        const Tensor made = maths.forward(alone.member, alone.operands),
                     expected = without.maths().forward(without.member, without.operands);
        QVERIFY(areEqual(made.data, expected.data));
        // Its gradient is made all the same: each member may keep it.
        const auto grads = maths.backward(alone.member, alone.operands, made, made, {.inputs = false});
        QVERIFY(grads[2].data[0] != 0);
    }

    void ofAProductWithoutInputsTheBiasIsLeft_data()
    {
        QTest::addColumn<bool>("experts");
        QTest::addColumn<int>("leftOut");
        QTest::newRow("a product") << false << -1;
        QTest::newRow("a product, on another member") << false << 2;
        QTest::newRow("experts") << true << -1;
        QTest::newRow("experts, on another member") << true << 2;
    }
    void ofAProductWithoutInputsTheBiasIsLeft()
    {
        QFETCH(bool, experts);
        QFETCH(int, leftOut);
        // 2 groups of 3 experts with 4 slots, or 4 rows.
        Alone alone = experts ? Alone("expert_linear", {{2, 3, 4, 0}, {3, 5, 0}, {3, 5}})
                              : Alone("linear", {{4, 0}, {5, 0}, {5}});
        const NodeMaths maths = alone.maths({.leftOut = leftOut});
        const Tensor made = maths.forward(alone.member, alone.operands);
        const std::span<const float> bias = alone.values[2].data;
        std::vector<float> expected, sums(bias.size());
        for (int group = 0; group < (experts ? 2 : 1); ++group)
            for (std::size_t expert = 0; expert < bias.size() / 5; ++expert)
                for (int row = 0; row < 4; ++row)
                    for (std::size_t i = expert * 5; i < expert * 5 + 5; ++i) {
                        expected.push_back(leftOut == 2 ? 0 : bias[i]);
                        sums[i] += expected.back();
                    }
        QVERIFY(areEqual(made.data, expected));
        const auto grads = maths.backward(alone.member, alone.operands, made, made);
        QCOMPARE(grads[0].elements() + grads[1].elements(), std::size_t(0));
        QVERIFY(areEqual(grads[2].data, sums));
    }

    void whatTheBackwardReadsOfTheForwardIsMadeAgain_data()
    {
        QTest::addColumn<QString>("operation");
        QTest::addColumn<bool>("again");
        QTest::newRow("attention") << "attention" << true;
        QTest::newRow("softmax") << "softmax" << false;
    }
    void whatTheBackwardReadsOfTheForwardIsMadeAgain()
    {
        QFETCH(QString, operation);
        QFETCH(bool, again);
        const std::vector<Shape> shapes(operation == "attention" ? 3 : 1, Shape{1, 4, 8});
        Alone alone(operation.toStdString(), shapes,
                    operation == "attention" ? Attributes{{"heads", 2}, {"key_value_heads", 2}} : Attributes());
        const NodeMaths maths = alone.maths();
        const Tensor made = maths.forward(alone.member, alone.operands), other = alone.member.zeros(made.shape);
        // A result that is made again is not read.
        const auto from = maths.backward(alone.member, alone.operands, made, made),
                   fromOther = maths.backward(alone.member, alone.operands, other, made);
        QCOMPARE(areEqual(from[0].data, fromOther[0].data), again);
    }
};

PIPEWRIGHT_TEST(NodeMathsTest, NoApplication)
#include "tst_nodemaths.moc"
