// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of models: one row each, with all that is derived from it (shapes, work, what its passes keep), and
// the rules by which devices may divide it, as text tables in operations.cpp. A new operation needs new rows there
// (and, to run it, its maths in the executor).
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
//
// What the forward keeps for the input gradient (I) and the weight gradient (W), word by word: "0.input.W" is operand
// 0, until W; "r.output.I" the result; "g.outputGrad.W" the gradient of the result, which I makes and W reads. The
// second part is its name. "W4": its elements have four bytes, whatever the model's type; "I+": later pieces of a
// sequence read it too; "I?": not where an operation of one operand makes it, as I then makes it again. Parameters
// are never kept. Tensors of the operation's own (probabilities, masks) are added by a function of the row.
#pragma once

#include "core/model/savedtensor.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class Work : std::uint8_t {
    None,      ///< counted as free
    Product,   ///< 2 FLOPs per combination of all its letters
    Attention, ///< scores and the sum of values: 2 FLOPs per key for every value of the queries and of the result
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

/// What a pass reads of an operation's forward, or W of I.
struct KeptForm {
    enum class What : std::uint8_t { Operand, Result, ResultGrad };
    What what = What::Operand;
    int operand = 0;
    std::string_view name;
    Lifetime lifetime = Lifetime::UntilInputGrad;
    int bytesPerElement = 0; ///< 0: the model's
    bool readByLaterPieces = false;
    bool unlessRemade = false; ///< "I?" above
};

/// Tokens are copied to their experts' slots, of which some may stay empty, and their copies are summed again.
enum class Copies : std::uint8_t { AsRead, Made, Summed };

class TensorGraph;
struct Node;

struct Operation {
    std::string_view name;
    Work work = Work::None;
    std::vector<KeptForm> keeps;
    bool passesGradient = false; ///< that of operand 0 is that of the result, or a part of it, but for a factor
    Copies copies = Copies::AsRead;
    /// Workspace of I for the result's gradient; empty: it takes the place of another one.
    std::string_view resultGrad;
    /// Tensors of its own that the forward keeps; null: none.
    std::vector<SavedTensor> (*own)(const TensorGraph&, const Node&) = nullptr;
    std::vector<OperandForm> operands;
    OperandForm result;
    std::vector<AttributeForm> attributes;
    char sizedLetter = 0;         ///< a letter of the result alone, whose size is …
    std::string_view sizeFormula; ///< … "p+1" or "k+heads*r", of letters, attributes and digits
    std::string_view atLeast;     ///< two letters: the first's size is the second's, or more
    bool isElementwise() const;   ///< makes every element from those in its place, and keeps some of them
    std::string wholeLetters;     ///< these dimensions may only be cut between so many equal parts …
    std::string partsAttribute;   ///< … as this attribute says
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

struct SharingRule {
    int operation = 0;
    std::vector<RuleToken> operands;
    RuleToken result;
    RuleOrigin origin = RuleOrigin::Published;
    std::string_view text; ///< "[h] [h] 1 -> R"
    char split = 0;        ///< the letter that is cut, 0: every device does all of it
    bool factors() const;
};

/// The tables, parsed once. `sharingRules()` are ordered by operation.
std::span<const Operation> operations();
std::span<const SharingRule> sharingRules();
int findOperation(std::string_view name); ///< -1: unknown
std::vector<std::string_view> operationNames();

} // namespace pipewright
