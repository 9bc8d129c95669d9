// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cuda/attentiongraph.h"

#include <string_view>

namespace pipewright::kernels::cuda {

namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

/// The first reason of a refusal; cuDNN's message lists its attempts with every kind of kernel, over many lines.
std::string shortened(const std::string& message)
{
    constexpr std::string_view before = "Reason: ";
    const std::size_t found = message.find(before), begin = found == std::string::npos ? 0 : found + before.size();
    return message.substr(begin, message.find('\n', begin) - begin);
}

class Description {
public:
    Description(const FusedPass& pass, const FusedTarget& target)
        : m_pass(pass), m_graph(std::make_shared<fe::graph::Graph>())
    {
        m_graph->set_io_data_type(fe::DataType_t::BFLOAT16)
            .set_intermediate_data_type(fe::DataType_t::FLOAT)
            .set_compute_data_type(fe::DataType_t::FLOAT);
        if (target.capability > 0)
            m_graph->set_sm_version(target.capability);
        if (target.properties)
            m_graph->set_device_properties(target.properties);
        const Tensor query = operand(FusedOperand::Query, m_pass.heads, m_pass.querySize),
                     key = operand(FusedOperand::Key, m_pass.keyValueHeads, m_pass.querySize),
                     value = operand(FusedOperand::Value, m_pass.keyValueHeads, m_pass.valueSize);
        if (m_pass.isBackward)
            addBackward(query, key, value);
        else
            addForward(query, key, value);
    }
    const std::shared_ptr<fe::graph::Graph>& graph() const { return m_graph; }

private:
    /// [sequence][token][head][element], described as cuDNN orders dimensions: sequence, head, token, element.
    void describe(const Tensor& tensor, FusedOperand number, int heads, int size, int row) const
    {
        const std::int64_t tokens = m_pass.length;
        tensor->set_uid(std::int64_t(number))
            .set_dim({m_pass.sequences, heads, tokens, size})
            .set_stride({tokens * row, size, row, 1});
    }
    /// [sequence][head][token], in fp32.
    void describeLogSums(const Tensor& tensor) const
    {
        const std::int64_t tokens = m_pass.length;
        tensor->set_uid(std::int64_t(FusedOperand::LogSums))
            .set_data_type(fe::DataType_t::FLOAT)
            .set_dim({m_pass.sequences, m_pass.heads, tokens, 1})
            .set_stride({m_pass.heads * tokens, tokens, 1, 1});
    }
    Tensor operand(FusedOperand number, int heads, int size) const
    {
        const Tensor tensor = m_graph->tensor(fe::graph::Tensor_attributes());
        describe(tensor, number, heads, size, heads * size);
        return tensor;
    }
    void describeResult(const Tensor& tensor, FusedOperand number, int heads, int size, int row) const
    {
        describe(tensor, number, heads, size, row);
        tensor->set_output(true);
    }
    /// A query at row r sees keys up to r; with a window, only those above r - window.
    template<typename Attributes>
    void mask(Attributes& attributes) const
    {
        attributes.set_attn_scale(m_pass.scale);
        if (m_pass.causal)
            attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
        if (m_pass.causal && m_pass.window > 0)
            attributes.set_diagonal_band_left_bound(m_pass.window);
    }
    void addForward(const Tensor& query, const Tensor& key, const Tensor& value)
    {
        fe::graph::SDPA_attributes attributes;
        attributes.set_name("attention").set_generate_stats(true);
        mask(attributes);
        const auto [output, logSums] = m_graph->sdpa(query, key, value, attributes);
        describeResult(output, FusedOperand::Output, m_pass.heads, m_pass.valueSize, m_pass.heads * m_pass.valueSize);
        describeLogSums(logSums);
        logSums->set_output(true);
    }
    void addBackward(const Tensor& query, const Tensor& key, const Tensor& value)
    {
        const Tensor output = operand(FusedOperand::Output, m_pass.heads, m_pass.valueSize),
                     outputGrad = operand(FusedOperand::OutputGrad, m_pass.heads, m_pass.valueSize),
                     logSums = m_graph->tensor(fe::graph::Tensor_attributes());
        describeLogSums(logSums);
        fe::graph::SDPA_backward_attributes attributes;
        attributes.set_name("attention_gradients").set_deterministic_algorithm(true);
        mask(attributes);
        const auto [queryGrad, keyGrad, valueGrad] =
            m_graph->sdpa_backward(query, key, value, output, outputGrad, logSums, attributes);
        describeResult(queryGrad, FusedOperand::QueryGrad, m_pass.heads, m_pass.querySize, m_pass.queryGradRow);
        describeResult(keyGrad, FusedOperand::KeyGrad, m_pass.keyValueHeads, m_pass.querySize, m_pass.keyGradRow);
        describeResult(valueGrad, FusedOperand::ValueGrad, m_pass.keyValueHeads, m_pass.valueSize, m_pass.valueGradRow);
    }

    const FusedPass& m_pass;
    std::shared_ptr<fe::graph::Graph> m_graph;
};

} // namespace

FusedPlan planOf(const FusedPass& pass, const FusedTarget& target)
{
    FusedPlan plan;
    const Description description(pass, target);
    fe::graph::Graph& graph = *description.graph();
    const auto does = [&plan](fe::error_t error) {
        plan.whyNot = error.is_bad() ? shortened(error.get_message()) : std::string();
        return error.is_good();
    };
    // Uses the first plan of the heuristics. Nothing is measured, as two runs could then choose different plans.
    if (does(graph.validate()) && does(graph.build_operation_graph(target.handle))
        && does(graph.create_execution_plans({fe::HeurMode_t::A})) && does(graph.check_support())
        && does(graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE))
        && does(graph.get_workspace_size(plan.workspace)))
        plan.graph = description.graph();
    return plan;
}

} // namespace pipewright::kernels::cuda
