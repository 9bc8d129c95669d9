// SPDX-License-Identifier: GPL-3.0-or-later
// One cell of a torch.distributed.pipelining schedule: "0F3", "2SEND_F0", "1REDUCE_GRAD", or several actions side by
// side, "(0F4;7B1)OVERLAP_F_B": these are stored one after the other in a row, and all but the last are marked
// `together`. PyTorch matches a prefix and ignores what follows; this parser accepts the whole cell or rejects it. In
// files from before late 2024 B meant the input-gradient half and BW the full backward; those letters are read only on
// request, since a cell alone is ambiguous.
#pragma once

#include "core/schedule/block.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class PytorchLetters {
    Current, ///< I input gradient, W weight gradient, B full backward
    Legacy,  ///< B input gradient, W weight gradient, BW full backward
};

struct PytorchAction {
    enum class Type : std::uint8_t {
        F,
        B,
        I,
        W,
        SendF,
        RecvF,
        SendB,
        RecvB,
        WaitSendF,
        WaitSendB,
        Unshard,
        Reshard,
        ReduceGrad,
        WaitReduceGrad
    };
    Type type = Type::F;
    std::int32_t stage = 0;
    std::int32_t microbatch = -1; ///< -1 for the last four types
    bool together = false;        ///< overlaps with the next action, in the same cell

    bool isCompute() const { return type <= Type::W; }
    bool isTransfer() const { return type >= Type::SendF && type <= Type::RecvB; }
    bool isSend() const { return type == Type::SendF || type == Type::SendB; }
    bool isSendWait() const { return type == Type::WaitSendF || type == Type::WaitSendB; }
    bool isBackward() const { return type == Type::B || type == Type::I; } ///< makes a gradient for the stage before
    bool carriesGradient() const { return type == Type::SendB || type == Type::RecvB || type == Type::WaitSendB; }
    bool hasMicrobatch() const { return type <= Type::WaitSendB; }
    Block block() const { return {static_cast<Op>(type), stage, microbatch}; } ///< of a computation
    bool operator==(const PytorchAction&) const = default;
};

std::optional<PytorchAction::Type> exportedType(Op op); ///< nothing for blocks that the other tools do not have
PytorchAction::Type computeType(Op op);                 ///< op is F, B, I or W

/// "3SEND_F12", without its neighbours in the cell.
std::string toString(const PytorchAction& action);
/// One line of a file: the cells of a rank with commas between them. The last action is not `together`.
void appendRow(std::string& text, const std::vector<PytorchAction>& row);

struct CellFault {
    std::string what, hint;
};

/// Appends the actions of one cell, which is not empty: one, or the members of an overlap in their order, all but the
/// last of them `together`. Nothing is appended when the cell is at fault.
std::optional<CellFault> parsePytorchCell(std::string_view cell, PytorchLetters letters,
                                          std::vector<PytorchAction>& actions);

} // namespace pipewright
