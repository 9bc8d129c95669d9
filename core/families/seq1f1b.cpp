// SPDX-License-Identifier: GPL-3.0-or-later
// Seq1F1B (arXiv 2406.03488): every microbatch is cut into k pieces of its sequence, and 1F1B runs on the
// pieces, with k-1 more of them in the warm-up. Forwards run the pieces of a sequence in order, backwards from the last
// piece to the first, since attention reads earlier pieces. About 1/k of the activations of 1F1B per piece.
#include "core/families/orders.h"

namespace pipewright {

namespace {

Schedule makeSeq1F1B(const FamilyParameters& p)
{
    const int pieces = p.pieces.value_or(defaultSequencePieces);
    const int total = p.microbatches * pieces;
    Schedule schedule;
    schedule.microbatches = total;
    schedule.sequencePieces = pieces;
    schedule.deviceOfStage = linearPlacement(p.devices);
    for (int stage = 0; stage < p.devices; ++stage) {
        std::vector<Block>& lane =
            schedule.order.emplace_back(alternate(stage, total, std::min(p.devices - stage - 1 + pieces, total)));
        for (Block& block : lane)
            if (block.op == Op::B) {
                const int piece = block.microbatch % pieces;
                block.microbatch += pieces - 1 - 2 * piece;
            }
    }
    return schedule;
}

} // namespace

Family seq1F1B()
{
    return {.name = "seq1f1b",
            .title = "Seq1F1B",
            .description = "1F1B on pieces of each sequence: smaller steps, less memory and a smaller bubble.",
            .backward = BackwardStyle::Full,
            .make = makeSeq1F1B,
            .cutsSequences = true};
}

} // namespace pipewright
