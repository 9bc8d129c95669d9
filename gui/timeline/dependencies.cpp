// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/dependencies.h"

#include <algorithm>

namespace pipewright {

Dependencies dependenciesOf(const Design& design, const TimelineLayout& layout, const Block& block)
{
    Dependencies result;
    const auto sibling = [&block](Op op, int stage) {
        Block other = block;
        other.op = op;
        other.stage = stage;
        return other;
    };
    const auto add = [&layout](std::vector<Block>& list, const Block& other) {
        if (layout.find(other))
            list.push_back(other);
    };
    const int stage = block.stage;
    switch (block.op) {
    case Op::F:
        add(result.inputs, sibling(Op::F, stage - 1));
        add(result.outputs, sibling(Op::F, stage + 1));
        for (const SkipConnection& skip : design.dataflow.skips) {
            if (skip.toStage == stage)
                add(result.inputs, sibling(Op::F, skip.fromStage));
            if (skip.fromStage == stage)
                add(result.outputs, sibling(Op::F, skip.toStage));
        }
        for (const Op op : {Op::R, Op::I, Op::B})
            add(result.outputs, sibling(op, stage));
        break;
    case Op::I:
    case Op::B:
        for (const Op op : {Op::F, Op::R})
            add(result.inputs, sibling(op, stage));
        for (const Op op : {Op::I, Op::B}) {
            add(result.inputs, sibling(op, stage + 1));
            add(result.outputs, sibling(op, stage - 1));
            for (const SkipConnection& skip : design.dataflow.skips) {
                if (skip.fromStage == stage)
                    add(result.inputs, sibling(op, skip.toStage));
                if (skip.toStage == stage)
                    add(result.outputs, sibling(op, skip.fromStage));
            }
        }
        if (block.op == Op::I)
            add(result.outputs, sibling(Op::W, stage));
        break;
    case Op::W: add(result.inputs, sibling(Op::I, stage)); break;
    case Op::R:
        add(result.inputs, sibling(Op::F, stage));
        for (const Op op : {Op::I, Op::B})
            add(result.outputs, sibling(op, stage));
        break;
    case Op::U: break;
    }
    return result;
}

std::optional<Block> lastInput(const Dependencies& dependencies, const TimelineLayout& layout)
{
    const auto it =
        std::max_element(dependencies.inputs.begin(), dependencies.inputs.end(), [&](const Block& a, const Block& b) {
            return layout.blockOf(a)->end < layout.blockOf(b)->end;
        });
    return it == dependencies.inputs.end() ? std::nullopt : std::optional(*it);
}

std::optional<Block> firstOutput(const Dependencies& dependencies, const TimelineLayout& layout)
{
    const auto it =
        std::min_element(dependencies.outputs.begin(), dependencies.outputs.end(), [&](const Block& a, const Block& b) {
            return layout.blockOf(a)->start < layout.blockOf(b)->start;
        });
    return it == dependencies.outputs.end() ? std::nullopt : std::optional(*it);
}

} // namespace pipewright
