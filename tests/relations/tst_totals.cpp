// SPDX-License-Identifier: GPL-3.0-or-later
// What has to add up: busy and idle time, parameters, the model's arithmetic, memory.
#include "core/design/redesign.h"
#include "core/model/transformer.h"
#include "core/predict/designcheck.h"
#include "core/predict/predict.h"
#include "core/predict/throughput.h"
#include "relations/question.h"
#include "testmain.h"

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// In billions, as published.
const std::map<std::string, double> published{
    {"llama-3-8b", 8.03}, {"llama-3-70b", 70.55}, {"qwen2.5-7b", 7.62},     {"qwen3-8b", 8.19},
    {"qwen3-32b", 32.76}, {"mixtral-8x7b", 46.7}, {"qwen3-30b-a3b", 30.53}, {"deepseek-v3", 671.0},
};

Bytes fullest(const Design& design)
{
    Bytes most = 0;
    for (const DeviceMetrics& device : predict(design).metrics.devices)
        most = std::max(most, device.peakBytes);
    return most;
}

} // namespace

class TotalsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aDeviceIsBusyOrIdle()
    {
        RELATION_HOLDS(brokenRelation(60, {}, [](const Question& question, Draw&) -> Answer {
            const Metrics& metrics = question.prediction.metrics;
            for (std::size_t d = 0; d < metrics.devices.size(); ++d) {
                const DeviceMetrics& device = metrics.devices[d];
                if (device.busy + device.idle != metrics.makespan)
                    return unequal("busy and idle", device.busy + device.idle, metrics.makespan);
                if (metrics.idleCauses[d].sum() != device.idle)
                    return unequal("causes of idle time", metrics.idleCauses[d].sum(), device.idle);
            }
            return holds;
        }));
    }

    /// The rates are those of the table under them.
    void bubblesAreTheTablesIdleTime()
    {
        RELATION_HOLDS(brokenRelation(60, {}, [](const Question& question, Draw&) -> Answer {
            const Metrics& metrics = question.prediction.metrics;
            double idle = 0;
            for (const DeviceMetrics& device : metrics.devices)
                idle += double(device.idle);
            const auto makespan = double(metrics.makespan), span = double(metrics.span), ideal = double(metrics.ideal);
            QString wrong =
                unlike("rate_makespan", metrics.rateMakespan, idle / makespan / double(metrics.devices.size()), 1e-9);
            if (wrong.isEmpty())
                wrong = unlike("rate_papers", metrics.ratePapers, (span - ideal) / span, 1e-9);
            return wrong.isEmpty() ? unlike("ratio_ideal", metrics.ratioIdeal, (makespan - ideal) / ideal, 1e-9)
                                   : wrong;
        }));
    }

    void stagesHoldTheModelsParameters()
    {
        RELATION_HOLDS(brokenRelation(40, {.degrees = false}, [](const Question& question, Draw&) -> Answer {
            const Design& design = question.design;
            const auto known = published.find(*question.request.model);
            if (known == published.end())
                return otherQuestion;
            double bytes = 0;
            for (const StageCosts& stage : design.costs.stages)
                bytes += double(stage.parameters);
            return unlike("billions of parameters", bytes / design.workload->state.parameter / 1e9, known->second,
                          0.01);
        }));
    }

    /// 6 N D, and for every pair of query and key of the attention 12 times the width; the table of tokens is looked
    /// up and not multiplied with.
    void aStepIsSixTimesParametersTimesTokens()
    {
        RELATION_HOLDS(brokenRelation(40, {}, [](const Question& question, Draw&) -> Answer {
            const Design& design = question.design;
            const ModelShape& shape = design.workload->shape;
            if (shape.experts > 0 || shape.architecture != Architecture::Decoder || shape.window > 0)
                return otherQuestion;
            double parameters = 0;
            for (const Layer& layer : wholeLayersOf(*design.workload))
                parameters += layer.kind == LayerKind::Embedding ? 0 : double(layer.parameters);
            const double tokens = double(shape.sequence * shape.microbatchSize) * design.schedule.microbatches
                                  / design.schedule.sequencePieces * shape.parallel.data;
            const double attention = 12.0 * shape.layers * double(shape.sequence * shape.heads * shape.headSize);
            return unlike("FLOPs", modelFlops(design), tokens * (6 * parameters + attention), 2e-3);
        }));
    }

    void noDeviceIsFasterThanItIs()
    {
        RELATION_HOLDS(brokenRelation(60, {}, [](const Question& question, Draw&) -> Answer {
            const Design& design = question.design;
            const Nanoseconds makespan = question.prediction.metrics.makespan;
            // MFU counts attention as whole squares; what is computed leaves out what its mask does.
            double computed = 0;
            for (const Layer& layer : wholeLayersOf(*design.workload))
                computed += layer.forwardFlops + layer.inputGradFlops + layer.weightGradFlops;
            computed *= double(design.schedule.microbatches) * design.workload->shape.parallel.data;
            const double used = modelFlopsUtilization(design, makespan) * computed / modelFlops(design);
            if (used > design.cluster.devices.front().efficiency)
                return unequal("share of the peak", used, design.cluster.devices.front().efficiency);
            const ModelShape& shape = design.workload->shape;
            const double tokens = double(shape.sequence * shape.microbatchSize) * design.schedule.microbatches
                                  / design.schedule.sequencePieces * shape.parallel.data;
            if (shape.architecture == Architecture::Vision)
                return holds;
            return unlike("tokens of a step", tokensPerSecond(design, makespan) * double(makespan) / 1e9, tokens, 1e-9);
        }));
    }

    void largerMicrobatchesAndLongerSequencesTakeMoreMemory()
    {
        RELATION_HOLDS(brokenRelation(40, {}, [](const Question& question, Draw&) -> Answer {
            const Design& design = question.design;
            const ModelShape& shape = design.workload->shape;
            if (shape.architecture != Architecture::Decoder || shape.learnedPositions || question.offload
                || findFamily(question.request.family)->updates) // there it depends on times
                return otherQuestion;
            DesignRequest larger = question.request;
            larger.microbatchSize = static_cast<int>(shape.microbatchSize) + 1;
            DesignRequest further = question.request;
            further.sequence = static_cast<int>(shape.sequence) * 2;
            const Bytes now = fullest(design);
            for (const DesignRequest& more : {larger, further})
                if (const Bytes then = fullest(makeDesign(more));
                    double(then) < 0.999 * double(now)) // values under way
                    return unequal("bytes", now, then);
            return holds;
        }));
    }

    void aDesignIsRefusedExactlyWhereItDoesNotFit()
    {
        RELATION_HOLDS(brokenRelation(40, {}, [](const Question& question, Draw& draw) -> Answer {
            const Design& design = question.design;
            const Bytes needed = fullest(design);
            Design limited = design;
            const bool fits = draw.oneIn(2);
            for (DeviceSpec& device : limited.cluster.devices)
                device.memory = needed - (fits ? 0 : 1);
            const bool refused = hasErrors(checkDesign(limited));
            return refused == fits ? QString("it %1, and is %2")
                                         .arg(fits ? "fits" : "does not fit", refused ? "refused" : "not refused")
                                   : QString();
        }));
    }
};

PIPEWRIGHT_TEST(TotalsTest, NoApplication)
#include "tst_totals.moc"
