// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/megatronargs.h"

#include "core/exchange/megatronlayout.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

class Arguments {
public:
    template<typename Value>
    void add(const char* name, const Value& value)
    {
        m_text += fmt::format("--{} {}\n", name, value);
    }
    void add(const char* name) { m_text += fmt::format("--{}\n", name); }
    void addIf(bool when, const char* name)
    {
        if (when)
            add(name);
    }
    std::string take() { return std::move(m_text); }

private:
    std::string m_text;
};

void addDegrees(const Parallelism& parallel, Arguments& arguments)
{
    arguments.add("tensor-model-parallel-size", parallel.tensor);
    arguments.addIf(parallel.sequence, "sequence-parallel");
    arguments.add("context-parallel-size", parallel.context);
    if (parallel.expert > 1)
        arguments.add("expert-model-parallel-size", parallel.expert);
    if (parallel.foldedExperts)
        arguments.add("expert-tensor-parallel-size", 1);
}

void addBatch(const Design& design, Arguments& arguments)
{
    const ModelShape& shape = design.workload->shape;
    arguments.add("seq-length", shape.sequence);
    arguments.add("max-position-embeddings", shape.sequence);
    arguments.add("micro-batch-size", shape.microbatchSize);
    arguments.add("global-batch-size", shape.microbatchSize * design.schedule.microbatches * shape.parallel.data);
    arguments.addIf(shape.dataType == DataType::Bf16, "bf16");
    switch (shape.products) { // the usual formats; which scales they have (--fp8-recipe) goes by the device
    case ProductType::Own: break;
    case ProductType::Fp8:
        arguments.add("fp8-format", "hybrid");
        arguments.addIf(shape.narrowParameters, "fp8-param-gather");
        break;
    case ProductType::Nvfp4:
        arguments.add("fp4-format", "e2m1");
        arguments.addIf(shape.narrowParameters, "fp4-param-gather");
        break;
    }
}

/// What copies share out and what is made again; what it says is no longer warned of.
void addMemory(const Schedule& schedule, const ModelShape& shape, Arguments& arguments, Diagnostics& diagnostics)
{
    const auto said = [&](const char* where) {
        std::erase_if(diagnostics, [&](const Diagnostic& each) { return each.where == where; });
    };
    if (schedule.zero.level == 1) {
        said("schedule.zero");
        arguments.add("use-distributed-optimizer");
    } else if (schedule.zero.level > 1) {
        said("schedule.zero");
        diagnostics.push_back(
            {Severity::Warning, "schedule.zero",
             fmt::format("Megatron-LM's distributed optimizer shares out the optimizer's state alone, "
                         "the design ZeRO {}",
                         schedule.zero.level),
             "predict it with --zero 1, or configure Megatron's FSDP yourself"});
    }
    if (shape.narrowParameters && schedule.zero.level != 1)
        diagnostics.push_back(
            {Severity::Warning, "model.narrow_parameters",
             "Megatron-LM gathers parameters in the products' type with its distributed optimizer alone",
             "predict it with --zero 1"});
    if (schedule.recompute.empty())
        return;
    const Recompute first = schedule.recompute.front();
    if (!first.insideBackward()
        || std::any_of(schedule.recompute.begin(), schedule.recompute.end(),
                       [&](const Recompute& each) { return each != first; }))
        return;
    said("schedule.recompute");
    arguments.add("recompute-granularity", first.coresOnly() ? "selective" : "full");
    if (!first.coresOnly() && !schedule.overlaps.empty())
        diagnostics.push_back({Severity::Warning, "schedule.recompute",
                               "Megatron-LM makes no whole layers again where it combines forwards with backwards",
                               "use --recompute selective or none"});
    if (first.coresOnly()) {
        arguments.add("recompute-modules", "core_attn");
    } else {
        arguments.add("recompute-method", "uniform");
        arguments.add("recompute-num-layers", first.layers);
    }
}

void addAttention(const ModelShape& shape, Arguments& arguments)
{
    arguments.add("num-attention-heads", shape.heads);
    if (shape.keyValueLatent > 0) {
        arguments.add("multi-latent-attention");
        if (shape.queryLatent > 0)
            arguments.add("q-lora-rank", shape.queryLatent);
        arguments.add("kv-lora-rank", shape.keyValueLatent);
        arguments.add("qk-head-dim", shape.headSize);
        arguments.add("qk-pos-emb-head-dim", shape.rotaryHeadSize);
        arguments.add("v-head-dim", shape.valueHeadSize);
    } else {
        if (shape.keyValueHeads != shape.heads) {
            arguments.add("group-query-attention");
            arguments.add("num-query-groups", shape.keyValueHeads);
        }
        arguments.add("kv-channels", shape.headSize);
    }
    arguments.addIf(shape.queryKeyNorm, "qk-layernorm");
    arguments.addIf(!shape.bias && shape.queryKeyValueBias, "add-qkv-bias");
    arguments.add("position-embedding-type", shape.learnedPositions ? "learned_absolute" : "rope");
    if (!shape.learnedPositions)
        arguments.add("rotary-base", fmt::format("{:.0f}", shape.rotary.base));
    if (shape.rotary.scaling == Rotary::Scaling::Llama3) {
        arguments.add("use-rope-scaling");
        arguments.add("rope-scaling-factor", fmt::format("{:g}", shape.rotary.factor));
    }
}

void addExperts(const ModelShape& shape, Arguments& arguments)
{
    if (shape.experts == 0)
        return;
    arguments.add("num-experts", shape.experts);
    arguments.add("moe-router-topk", shape.expertsPerToken);
    arguments.add("moe-ffn-hidden-size", shape.expertFfn);
    if (shape.sharedExperts > 0)
        arguments.add("moe-shared-expert-intermediate-size", shape.sharedExperts * shape.expertFfn);
    if (shape.denseLayers > 0)
        arguments.add("moe-layer-freq",
                      fmt::format("\"([0]*{}+[1]*{})\"", shape.denseLayers, shape.layers - shape.denseLayers));
    arguments.add("moe-token-dispatcher-type", shape.parallel.nodeDispatch ? "flex" : "alltoall");
    if (shape.parallel.nodeDispatch)
        arguments.add("moe-flex-dispatcher-backend", "deepep");
}

void addModel(const ModelShape& shape, Arguments& arguments)
{
    arguments.add("num-layers", shape.layers);
    arguments.add("hidden-size", shape.hidden);
    arguments.add("ffn-hidden-size", shape.ffn);
    addAttention(shape, arguments);
    arguments.add("normalization", shape.bias ? "LayerNorm" : "RMSNorm");
    arguments.add("norm-epsilon", fmt::format("{:g}", shape.normEpsilon));
    arguments.addIf(!shape.bias, "disable-bias-linear");
    arguments.addIf(shape.gatedMlp && shape.activation == Activation::Silu, "swiglu");
    arguments.addIf(!shape.tiedHead, "untie-embeddings-and-output-weights");
    addExperts(shape, arguments);
}

/// Whether the arguments say all of the model. A field that somebody adds is not said until it stands here.
bool saysAllOf(ModelShape shape)
{
    const ModelShape none;
    const bool known =
        shape.activation == (shape.gatedMlp ? Activation::Silu : none.activation)
        && (shape.rotary.scaling == Rotary::Scaling::None || shape.rotary.scaling == Rotary::Scaling::Llama3);
    const auto said = [&](auto... fields) { ((shape.*fields = none.*fields), ...); };
    said(&ModelShape::name, &ModelShape::layers, &ModelShape::hidden, &ModelShape::heads, &ModelShape::keyValueHeads,
         &ModelShape::headSize, &ModelShape::ffn, &ModelShape::gatedMlp, &ModelShape::activation, &ModelShape::bias,
         &ModelShape::normEpsilon, &ModelShape::queryKeyValueBias, &ModelShape::queryKeyNorm,
         &ModelShape::learnedPositions, &ModelShape::rotary, &ModelShape::tiedHead);
    said(&ModelShape::experts, &ModelShape::expertsPerToken, &ModelShape::sharedExperts, &ModelShape::expertFfn,
         &ModelShape::denseLayers, &ModelShape::queryLatent, &ModelShape::keyValueLatent, &ModelShape::rotaryHeadSize,
         &ModelShape::valueHeadSize);
    said(&ModelShape::sequence, &ModelShape::microbatchSize, &ModelShape::dataType, &ModelShape::products,
         &ModelShape::narrowParameters, &ModelShape::parallel);
    said(&ModelShape::vocabulary, &ModelShape::attention, &ModelShape::framework); // the tokenizer's, the job's
    return known && shape == none;
}

} // namespace

ExportedText megatronArguments(const Design& design)
{
    ExportedText result = megatronLayout(design);
    const ModelShape& shape = design.workload->shape;
    if (shape.architecture != Architecture::Decoder)
        throw Error("model.architecture", "Megatron-LM's arguments are written of decoders",
                    "export megatron-layout, which says which layers each stage holds");
    std::erase_if(result.diagnostics, [](const Diagnostic& each) { return each.where == "model.parallel"; });
    Arguments arguments;
    addDegrees(shape.parallel, arguments);
    std::string text = arguments.take() + result.text;
    addBatch(design, arguments);
    addMemory(design.schedule, design.workload->shape, arguments, result.diagnostics);
    addModel(shape, arguments);
    result.text = std::move(text) + arguments.take();
    result.diagnostics.push_back(
        {Severity::Note,
         "model",
         fmt::format("data, tokenizer, learning rate and the number of processes ({}) are yours to add",
                     design.schedule.devices() * shape.parallel.devicesPerStage()),
         {}});
    if (!saysAllOf(shape))
        result.diagnostics.push_back(
            {Severity::Warning, "model",
             "some properties of the model have no argument here (windows, sinks, caps, another "
             "activation, dropout, what routers do besides)",
             "compare them with the model's own configuration"});
    return result;
}

} // namespace pipewright
