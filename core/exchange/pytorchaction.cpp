// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/pytorchaction.h"

#include "core/base/textcells.h"
#include "core/exchange/importedorder.h"
#include "core/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace pipewright {

namespace {

using Type = PytorchAction::Type;

constexpr std::array<std::string_view, 14> names = {
    "F",      "B",           "I",           "W",       "SEND_F",  "RECV_F",      "SEND_B",
    "RECV_B", "WAIT_SEND_F", "WAIT_SEND_B", "UNSHARD", "RESHARD", "REDUCE_GRAD", "WAIT_REDUCE_GRAD"};
static_assert(names.size() == static_cast<std::size_t>(Type::WaitReduceGrad) + 1);
constexpr std::string_view overlapName = "OVERLAP_F_B";
constexpr std::string_view example =
    "a cell is <stage><type><microbatch>, for example 0F3, 2SEND_F0 or (0F4;7B1)OVERLAP_F_B";

std::optional<CellFault> typeOf(std::string_view name, PytorchLetters letters, Type& type)
{
    if (letters == PytorchLetters::Legacy) {
        if (name == "B" || name == "BW") {
            type = name == "B" ? Type::I : Type::B;
            return std::nullopt;
        }
        if (name == "I")
            return CellFault{"the letter I does not exist among the legacy letters", "import without --legacy-letters"};
    } else if (name == "BW") {
        return CellFault{"BW is a legacy letter",
                         "import with --legacy-letters: B is then the input gradient and BW the full backward"};
    }
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
        return CellFault{fmt::format("unknown action type {}", inQuotes(name)), std::string(example)};
    type = static_cast<Type>(found - names.begin());
    return std::nullopt;
}

std::optional<CellFault> parseAction(std::string_view text, PytorchLetters letters, PytorchAction& action)
{
    action.stage = takeNumber(text, largestStage);
    if (action.stage < 0)
        return CellFault{action.stage == -1 ? "does not begin with a stage number" : "stage number too large",
                         action.stage == -1 ? std::string(example) : fmt::format("{} is the largest", largestStage)};
    const auto isName = [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; };
    const auto end = std::find_if_not(text.begin(), text.end(), isName);
    const std::string_view name(text.begin(), end);
    text.remove_prefix(name.size());
    if (auto fault = typeOf(name, letters, action.type))
        return fault;
    action.microbatch = -1;
    if (action.hasMicrobatch()) {
        action.microbatch = takeNumber(text, maxMicrobatches - 1);
        if (action.microbatch < 0)
            return CellFault{action.microbatch == -1 ? "has no microbatch number" : "microbatch number too large",
                             action.microbatch == -1 ? std::string(example)
                                                     : fmt::format("{} is the largest", maxMicrobatches - 1)};
    }
    if (!text.empty())
        return CellFault{fmt::format("{} stands behind the action", inQuotes(text)), std::string(example)};
    return std::nullopt;
}

std::optional<CellFault> parseOverlap(std::string_view cell, PytorchLetters letters,
                                      std::vector<PytorchAction>& actions)
{
    const std::size_t close = cell.find(')');
    if (close == std::string_view::npos)
        return CellFault{"the bracket is not closed", std::string(example)};
    if (cell.substr(close + 1) != overlapName)
        return CellFault{fmt::format("expected {} after the bracket", overlapName), std::string(example)};
    std::string_view inside = cell.substr(1, close - 1);
    const std::size_t before = actions.size();
    const auto failed = [&](CellFault fault) {
        actions.resize(before);
        return fault;
    };
    for (;;) {
        const std::size_t end = inside.find(';');
        PytorchAction action;
        if (auto fault = parseAction(withoutBlanks(inside.substr(0, end)), letters, action))
            return failed(*std::move(fault));
        if (!action.isCompute())
            return failed({fmt::format("{} is no computation, so it cannot overlap", toString(action)), {}});
        action.together = end != std::string_view::npos;
        actions.push_back(action);
        if (!action.together)
            break;
        inside.remove_prefix(end + 1);
    }
    if (actions.size() - before < 2)
        return failed({"an overlap of a single action", "write the action alone"});
    return std::nullopt;
}

void append(std::string& text, const PytorchAction& action)
{
    char digits[12];
    const auto number = [&](int value) {
        text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    };
    number(action.stage);
    text += names[static_cast<std::size_t>(action.type)];
    if (action.microbatch >= 0)
        number(action.microbatch);
}

} // namespace

std::optional<Type> exportedType(Op op)
{
    switch (op) {
    case Op::F: return Type::F;
    case Op::B: return Type::B;
    case Op::I: return Type::I;
    case Op::W: return Type::W;
    case Op::R:
    case Op::U: break;
    }
    return std::nullopt;
}

Type computeType(Op op)
{
    if (const std::optional<Type> type = exportedType(op))
        return *type;
    throw Error("export", fmt::format("PyTorch has no action for a {}", describe(op)),
                "this is a fault of the program: please report it with the design");
}

void appendRow(std::string& text, const std::vector<PytorchAction>& row)
{
    bool inBracket = false;
    for (std::size_t i = 0; i < row.size(); ++i) {
        if (i > 0)
            text += inBracket ? ';' : ',';
        if (row[i].together && !inBracket)
            text += '(';
        append(text, row[i]);
        if (inBracket && !row[i].together) {
            text += ')';
            text += overlapName;
        }
        inBracket = row[i].together;
    }
}

std::string toString(const PytorchAction& action)
{
    std::string text;
    append(text, action);
    return text;
}

std::optional<CellFault> parsePytorchCell(std::string_view cell, PytorchLetters letters,
                                          std::vector<PytorchAction>& actions)
{
    if (cell.starts_with('('))
        return parseOverlap(cell, letters, actions);
    PytorchAction action;
    if (auto fault = parseAction(cell, letters, action))
        return fault;
    actions.push_back(action);
    return std::nullopt;
}

} // namespace pipewright
