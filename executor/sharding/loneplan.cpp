// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/loneplan.h"

#include <algorithm>
#include <utility>

namespace pipewright::sharding {

LonePlan::LonePlan(const Node& node, std::vector<Shape> operands, Shape result, const LocalPart& part)
    : m_node(&node), m_shapes(std::move(operands)), m_part(part), m_isParameter(m_shapes.size())
{
    m_shapes.push_back(std::move(result));
}

std::string_view LonePlan::operation(int tensor) const
{
    return tensor == result() ? operations()[std::size_t(m_node->operation)].name : std::string_view();
}

std::int64_t LonePlan::elements(int tensor) const
{
    std::int64_t count = 1;
    for (const std::int64_t length : shape(tensor))
        count *= length;
    return count;
}

Place LonePlan::changed(int operand) const
{
    return workspace("operand " + std::to_string(operand), elements(operand));
}

Place LonePlan::own(int, std::string_view name, std::int64_t elements) const
{
    return workspace(name, elements);
}

Place LonePlan::workspace(std::string_view name, std::int64_t elements) const
{
    auto found = std::find_if(m_scratch.begin(), m_scratch.end(), [&](const Scratch& one) { return one.name == name; });
    if (found == m_scratch.end())
        found = m_scratch.insert(found, {std::string(name), elements, false, false});
    (m_isForward ? found->ofForward : found->ofBackward) = true;
    const auto number = 2 * firstGradient() + int(found - m_scratch.begin());
    return {.slice = {.elements = elements}, .tensor = number};
}

Place LonePlan::sequenceGradient(std::int64_t elements) const
{
    const Place place = workspace("sequence gradient", elements);
    m_scratch[std::size_t(place.tensor - 2 * firstGradient())].ofSequence = true;
    return place;
}

Place LonePlan::visitsOfAll(std::int64_t experts) const
{
    const Place place = workspace("visits of all", experts);
    m_scratch[std::size_t(place.tensor - 2 * firstGradient())].isVisits = true;
    return place;
}

ParameterPlace LonePlan::parameter(int operand) const
{
    m_isParameter[std::size_t(operand)] = true;
    if (elements(operand) == 0 || (m_isForward && operand == m_part.leftOut))
        return {};
    return {.count = std::size_t(elements(operand)), .tensor = operand};
}

bool LonePlan::isMadeAgain() const
{
    return std::any_of(m_scratch.begin(), m_scratch.end(),
                       [](const Scratch& one) { return one.ofForward && one.ofBackward; });
}

} // namespace pipewright::sharding
