// SPDX-License-Identifier: GPL-3.0-or-later
// The plan of a node alone, on whatever piece of its operands a member has: every operand, the result and their
// gradients are tensors of their own, and what the rows of operations need besides is scratch. Tensors have numbers:
// operands in their order, the result, the gradients of these, and the scratch.
#pragma once

#include "executor/stage/nodeplan.h"

#include <string>
#include <vector>

namespace pipewright::sharding {

/// What of a node a member has.
struct LocalPart {
    std::int64_t firstRow = 0; ///< of an embedding's table that is cut by rows
    int firstHead = 0;         ///< of an attention that is cut by heads
    int leftOut = -1;          ///< an operand that F leaves out, because another member adds it; -1: none
    bool countsVisits = true;  ///< false: another member counts the visits of experts
    double balanceOver = 1;    ///< of a router: as in LayerSettings
};

class LonePlan final : public NodePlan {
public:
    /// Shapes of this member's pieces. The node must outlive this.
    LonePlan(const Node& node, std::vector<Shape> operands, Shape result, const LocalPart& part);

    const Node& node(int) const override { return *m_node; }
    int result() const { return int(m_shapes.size()) - 1; }
    int operand(int, std::size_t index) const override { return int(index); }
    bool hasOperand(int, std::size_t index) const override { return int(index) < result(); }
    std::string_view operation(int tensor) const override;
    const Shape& shape(int tensor) const override { return m_shapes[std::size_t(tensor)]; }
    std::int64_t elements(int tensor) const override;
    int firstHead() const override { return m_part.firstHead; }
    const LocalPart& part() const { return m_part; }

    Place value(int tensor) const override { return {.tensor = tensor}; }
    Place changed(int operand) const override;
    Place own(int tensor, std::string_view name, std::int64_t elements) const override;
    Place keptResult(int tensor, std::string_view) const override { return value(tensor); }
    Place gradient(int tensor) const override { return {.tensor = firstGradient() + tensor}; }
    Place workspace(std::string_view name, std::int64_t elements) const override;
    Place sequenceGradient(std::int64_t elements) const override;
    Place visitsOfAll(std::int64_t experts) const;
    ParameterPlace parameter(int operand) const override;

    int firstGradient() const { return result() + 1; }
    /// Whether a row has asked for it as a parameter.
    bool isParameter(int operand) const { return m_isParameter[std::size_t(operand)]; }

    // Scratch is noted as rows ask for it: those of F first, then those of I and W.
    struct Scratch {
        std::string name;
        std::int64_t elements;
        bool ofForward, ofBackward;
        bool ofSequence = false; ///< no scratch: it lasts from piece to piece of a sequence
        bool isVisits = false;   ///< no scratch: of the tokens of all members
    };
    void beginBackward() { m_isForward = false; }
    const std::vector<Scratch>& scratch() const { return m_scratch; }
    /// I or W reads what F made, so F is computed again before them.
    bool isMadeAgain() const;

private:
    const Node* m_node;
    std::vector<Shape> m_shapes; ///< of the operands and the result
    LocalPart m_part;
    bool m_isForward = true;
    mutable std::vector<bool> m_isParameter;
    mutable std::vector<Scratch> m_scratch;
};

} // namespace pipewright::sharding
