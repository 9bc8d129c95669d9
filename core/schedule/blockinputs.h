// SPDX-License-Identifier: GPL-3.0-or-later
// Which blocks a pass waits for: one of its own stage, that of the neighbouring stage whose value travels to it, with
// sequence pieces its own stage's block of the piece before (of a backward: behind), and those of skip connections.
#pragma once

#include "core/schedule/pipelineshape.h"
#include "core/schedule/validate.h"

#include <span>

namespace pipewright {

/// `visit(op, stage, microbatch)` for each of them; `exists`, of the same arguments, says which backward a stage has,
/// and whether it is made again.
template<typename Exists, typename Visit>
void forEachInput(const PipelineShape& shape, std::span<const SkipConnection> skips, const Block& pass, Exists exists,
                  Visit visit)
{
    const int stage = pass.stage, microbatch = pass.microbatch, step = stageStep(pass.op);
    if (const std::optional<Op> own = waitsFor(pass.op))
        visit(makesInputGrad(pass.op) && exists(Op::R, stage, microbatch) ? Op::R : *own, stage, microbatch);
    const auto visitAlike = [&](int ofStage, int ofMicrobatch) {
        visit(step > 0 ? Op::F : exists(Op::B, ofStage, ofMicrobatch) ? Op::B : Op::I, ofStage, ofMicrobatch);
    };
    if (step == 0)
        return;
    if (const int from = stage - step; from >= 0 && from < shape.stages())
        visitAlike(from, microbatch);
    if (const int piece = microbatch % shape.sequencePieces - step; piece >= 0 && piece < shape.sequencePieces)
        visitAlike(stage, microbatch - step);
    for (const SkipConnection& skip : skips)
        if ((step > 0 ? skip.toStage : skip.fromStage) == stage)
            visitAlike(step > 0 ? skip.fromStage : skip.toStage, microbatch);
}

} // namespace pipewright
