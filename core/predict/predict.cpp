// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/predict.h"

#include "core/predict/evaluator.h"
#include "core/predict/throughput.h"
#include "core/program/compile.h"

namespace pipewright {

namespace {

/// The rest, of a program and its times.
void finish(Prediction& prediction)
{
    for (int device = 0; device < static_cast<int>(prediction.program.devices.size()); ++device)
        prediction.timeline.memory.push_back(memoryCurve(prediction.program, prediction.timeline, device));
    prediction.metrics = measure(prediction.program, prediction.timeline);
    prediction.transfers = prediction.program.transferCount();
    prediction.transferred = transferBytes(prediction.program);
}

Prediction predictWith(const Design& design, const CompileOptions& options)
{
    Prediction prediction;
    prediction.program = compile(design.schedule, design.costs, design.dataflow, options);
    Evaluator(prediction.program, design.costs).evaluate(prediction.timeline);
    finish(prediction);
    return prediction;
}

} // namespace

Prediction predict(const Design& design)
{
    return predictWith(design, {});
}

Prediction predictMembers(const MemberProgram& members)
{
    Prediction prediction;
    prediction.program = members.program;
    Evaluator evaluator(prediction.program);
    evaluator.setDurations(members.durations);
    evaluator.evaluate(prediction.timeline);
    finish(prediction);
    return prediction;
}

Prediction predictPlaced(const Design& design)
{
    CompileOptions options;
    options.allowMissing = true;
    return predictWith(design, options);
}

} // namespace pipewright
