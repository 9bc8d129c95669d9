// SPDX-License-Identifier: GPL-3.0-or-later
// The operations, and the rules by which devices may divide them, as text tables in operations.cpp. A new operation
// needs new rows there (and, to run it, its maths in executor/sharding).
//
// A signature names the dimensions of operands and result by letters: "*h oh o? -> *o" is a linear layer whose input
// has any leading dimensions, whose weight has a row per output, and whose bias may be absent. Shapes are inferred and
// checked from it. A rule gives the required relation of each operand and the relation of the result:
//
//   I    whole on every device (Identity)
//   [x]  cut along the dimension with letter x (Gather); [*] stands for each of the leading dimensions
//   R    a sum over devices (Reduce)
//   1    whole on every device, but only device 0 adds it: a bias under a sum over devices
//   F    whole on every device, and its gradient is made whole from gathered factors (sufficient factor
//        broadcasting) instead of being reduced
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::sharding {

enum class Work : std::uint8_t {
    None,      ///< counted as free
    Product,   ///< 2 FLOPs per combination of all its letters
    Attention, ///< scores and their product with the values: 4 FLOPs per b · s · t · d
    Traffic,   ///< operands and result pass through memory once; free where memory bandwidth is unknown
};

struct OperandForm {
    std::string letters;   ///< '*', only in front: any leading dimensions
    bool optional = false; ///< only the last operands
    bool hasStar() const { return !letters.empty() && letters.front() == '*'; }
    int position(char letter, int stars) const; ///< of a letter in the shape; -1: not there. '*' counts as `stars` dims
};

struct AttributeForm {
    std::string name;
    bool required = true;
    bool whole = true; ///< a whole number from 1; else any
};

struct Operation {
    std::string_view name;
    Work work = Work::None;
    std::vector<OperandForm> operands;
    OperandForm result;
    std::vector<AttributeForm> attributes;
    char sizedLetter = 0; ///< a letter of the result alone, whose size is `sizeAttribute`
    std::string sizeAttribute;
    std::string wholeLetters;   ///< these dimensions may only be cut between so many equal parts …
    std::string partsAttribute; ///< … as this attribute says
};

enum class Need : std::uint8_t { Identity, Split, Reduce, Once, Factors };

struct RuleToken {
    Need need = Need::Identity;
    char letter = 0; ///< of Split
};

enum class RuleOrigin : std::uint8_t {
    Published, ///< among the released rules of arXiv 2401.05965
    Added,     ///< sound, but not among them: reduction and head splits, factors
};

struct Rule {
    int operation = 0;
    std::vector<RuleToken> operands;
    RuleToken result;
    RuleOrigin origin = RuleOrigin::Published;
    std::string_view text; ///< "[h] [h] 1 -> R"
    char split = 0;        ///< the letter that is cut, 0: every device does all of it
    bool factors() const;
};

/// The tables, parsed once. `rules()` are ordered by operation.
std::span<const Operation> operations();
std::span<const Rule> rules();
int findOperation(std::string_view name); ///< -1: unknown
std::vector<std::string_view> operationNames();

} // namespace pipewright::sharding
