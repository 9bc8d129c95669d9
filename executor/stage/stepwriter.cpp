// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/stage/stepwriter.h"

#include <algorithm>

namespace pipewright {

using kernels::Store;

namespace {

Place branchOf(const NodePlan& plan, int tensor)
{
    return plan.workspace("d.ln", plan.elements(tensor));
}

} // namespace

void StepWriter::copy(const Place& from, const Place& to)
{
    if (from != to)
        forward([from, to](const StepContext& pass) {
            pass.on().copy(std::span<const float>(pass.at(from)), pass.at(to));
        });
}

StepWriter::Target StepWriter::gradientOf(int operand)
{
    const bool isFirst = std::find(m_written.begin(), m_written.end(), operand) == m_written.end();
    if (plan.isOnStream(operand)) {
        if (m_streamIsEmpty) {
            m_streamIsEmpty = false;
            return {{.isStream = true}, Store::Replace};
        }
        if (isFirst)
            m_written.push_back(operand);
        return {branchOf(plan, operand), isFirst ? Store::Replace : Store::Add};
    }
    if (isFirst)
        m_written.push_back(operand);
    return {plan.gradient(operand), isFirst ? Store::Replace : Store::Add};
}

StepWriter::Target StepWriter::streamGradient(bool inPlace)
{
    const bool replaces = inPlace || m_streamIsEmpty;
    m_streamIsEmpty = false;
    return {{.isStream = true}, replaces ? Store::Replace : Store::Add};
}

Place StepWriter::empty(int tensor)
{
    const bool isStream = plan.isOnStream(tensor);
    const Place place = isStream ? Place{.isStream = true} : plan.gradient(tensor);
    if (!isStream || m_streamIsEmpty)
        inputGrad([place](const StepContext& pass) { pass.on().run(kernels::Fill{pass.at(place), 0}); });
    m_streamIsEmpty = m_streamIsEmpty && !isStream;
    return place;
}

void StepWriter::completeGradient(int tensor)
{
    if (plan.isOnStream(tensor) && std::find(m_written.begin(), m_written.end(), tensor) != m_written.end()) {
        // What products gave back to a value on the stream.
        inputGrad([branch = branchOf(plan, tensor)](const StepContext& pass) {
            pass.on().run(kernels::Add{pass.stream, pass.at(branch)});
        });
    }
    if (!plan.addsToStream(tensor))
        return;
    if (const Place kept = plan.gradient(tensor); !kept.isStream) // W reads it, when the stream holds another value's
        inputGrad(
            [kept](const StepContext& pass) { pass.on().copy(std::span<const float>(pass.stream), pass.at(kept)); });
}

const OperationSteps* findSteps(std::string_view operation)
{
    for (const auto table : {productSteps(), normSteps(), attentionSteps(), expertSteps(), endSteps()})
        for (const OperationSteps& steps : table)
            if (steps.operation == operation)
                return &steps;
    return nullptr;
}

} // namespace pipewright
