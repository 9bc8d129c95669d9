// SPDX-License-Identifier: GPL-3.0-or-later
// The tables of operations and rules, parsed once at the first use. Rules marked Published are those of arXiv
// 2401.05965; mixture of experts follows GShard (arXiv 2006.16668).
#include "core/sharding/operations.h"

#include "core/base/diagnostic.h"

#include <algorithm>

namespace pipewright::sharding {

namespace {

struct OperationRow {
    std::string_view name, signature;
    Work work = Work::None;
    std::string_view attributes = {}; ///< names; behind them ~ for any number, ? where they may be absent
    std::string_view sized = {};      ///< "c=capacity": a letter's size is an attribute
    std::string_view parts = {};      ///< "dk=heads": cut only between so many equal parts
};

// Attention is causal. `scale` is 1 / sqrt(size of a head) where it is absent; with a `window` a query attends to that
// many keys; with a `rotary_base` queries and keys are rotated by their positions, at frequencies that `rotary_scaling`
// stretches (1 linear, 2 as Llama 3, 3 YaRN: kernels/rotary.h). head_norm is an RMS norm of every head's n values.
//
// Mixture of experts, per group g of t tokens: route gives each token's weight for every slot c of every expert e,
// dispatch fills the slots, combine adds up the experts' outputs (GShard, arXiv 2006.16668).
constexpr OperationRow operationRows[] = {
    {"linear", "*h oh o? -> *o", Work::Product},
    {"matmul", "*mk *kn -> *mn", Work::Product},
    {"transpose", "*ab -> *ba", Work::Traffic},
    {"add", "* * -> *", Work::Traffic},
    {"multiply", "* * -> *", Work::Traffic},
    {"scale", "* -> *", Work::Traffic, "factor~"},
    {"soft_cap", "* -> *", Work::Traffic, "cap~"},
    {"gelu", "* -> *", Work::Traffic},
    {"gelu_erf", "* -> *", Work::Traffic},
    {"relu", "* -> *", Work::Traffic},
    {"silu", "* -> *", Work::Traffic},
    {"softmax", "*v -> *v", Work::Traffic},
    {"log_softmax", "*v -> *v", Work::Traffic},
    {"layer_norm", "*h h h? -> *h", Work::Traffic, "epsilon~?"},
    {"rms_norm", "*h h -> *h", Work::Traffic, "epsilon~?"},
    {"head_norm", "bsd n -> bsd", Work::Traffic, "heads epsilon~?", {}, "d=heads"},
    {"embedding", "* vh -> *h", Work::Traffic},
    {"feature_bag", "bl vh -> bh", Work::Traffic}, // the sum of a row's l features, by the square root of l
    {"positions", "bsh sh -> bsh", Work::Traffic},
    {"attention",
     "bsd btk btk -> bsd",
     Work::Attention,
     "heads key_value_heads? window? scale~? soft_cap~? rotary_base~? rotary_scaling? rotary_factor~? rotary_low~? "
     "rotary_high~? rotary_original~?",
     {},
     "dk=key_value_heads"},
    {"reduce_last", "*v -> *", Work::Traffic},
    {"sum", "* -> ", Work::None},
    {"hand_over", "* -> ", Work::None}, // to the next stage, in place of the loss
    {"cross_entropy", "*v * -> ", Work::Traffic},
    {"route", "gte -> gtec", Work::Traffic, "top_k capacity", "c=capacity"},
    {"dispatch", "gtec gth -> gech", Work::Traffic},
    {"expert_linear", "gech eoh -> geco", Work::Product},
    {"combine", "gtec gech -> gth", Work::Traffic},
};

struct RuleRow {
    std::string_view operation, text;
    RuleOrigin origin = RuleOrigin::Published;
};

constexpr auto added = RuleOrigin::Added;

constexpr RuleRow ruleRows[] = {
    {"linear", "[*] I I -> [*]"},
    {"linear", "I [o] [o] -> [o]"},
    {"linear", "I I I -> I"},
    {"linear", "[h] [h] 1 -> R", added},
    {"linear", "[*] F F -> [*]", added},
    {"matmul", "[*] [*] -> [*]"},
    {"matmul", "[m] I -> [m]"},
    {"matmul", "I [n] -> [n]"},
    {"matmul", "I I -> I"},
    {"matmul", "[k] [k] -> R", added},
    {"transpose", "[*] -> [*]"},
    {"transpose", "[a] -> [a]"},
    {"transpose", "[b] -> [b]"},
    {"transpose", "R -> R"},
    {"transpose", "I -> I"},
    {"add", "[*] [*] -> [*]"},
    {"add", "R R -> R"},
    {"add", "I I -> I"},
    {"multiply", "[*] [*] -> [*]"},
    {"multiply", "R I -> R"},
    {"multiply", "I R -> R"},
    {"multiply", "I I -> I"},
    {"scale", "[*] -> [*]"},
    {"scale", "R -> R"},
    {"scale", "I -> I"},
    {"soft_cap", "[*] -> [*]"},
    {"soft_cap", "I -> I"},
    {"gelu", "[*] -> [*]"},
    {"gelu", "I -> I"},
    {"gelu_erf", "[*] -> [*]"},
    {"gelu_erf", "I -> I"},
    {"relu", "[*] -> [*]"},
    {"relu", "I -> I"},
    {"silu", "[*] -> [*]"},
    {"silu", "I -> I"},
    {"softmax", "[*] -> [*]"},
    {"softmax", "I -> I"},
    {"log_softmax", "[*] -> [*]"},
    {"log_softmax", "I -> I"},
    {"layer_norm", "[*] I I -> [*]"},
    {"layer_norm", "I I I -> I"},
    {"rms_norm", "[*] I -> [*]"},
    {"rms_norm", "I I -> I"},
    {"head_norm", "[b] I -> [b]"},
    {"head_norm", "[s] I -> [s]"},
    {"head_norm", "[d] I -> [d]"},
    {"head_norm", "I I -> I"},
    {"embedding", "[*] I -> [*]"},
    {"embedding", "I [h] -> [h]"},
    {"embedding", "I [v] -> R", added},
    {"embedding", "I I -> I"},
    {"feature_bag", "[b] I -> [b]"},
    {"feature_bag", "I [h] -> [h]"},
    {"feature_bag", "I I -> I"},
    {"positions", "[b] I -> [b]"},
    {"positions", "[s] [s] -> [s]"},
    {"positions", "[h] [h] -> [h]"},
    {"positions", "I I -> I"},
    {"positions", "R 1 -> R", added},
    {"attention", "[b] [b] [b] -> [b]"},
    {"attention", "[d] [k] [k] -> [d]", added},
    {"attention", "I I I -> I"},
    {"reduce_last", "[*] -> [*]"},
    {"reduce_last", "[v] -> R"},
    {"reduce_last", "R -> R"},
    {"reduce_last", "I -> I"},
    {"sum", "[*] -> R"},
    {"sum", "R -> R"},
    {"sum", "I -> I"},
    {"hand_over", "[*] -> R"},
    {"hand_over", "I -> I"},
    {"cross_entropy", "[*] [*] -> R"},
    {"cross_entropy", "I I -> I"},
    {"route", "[g] -> [g]"},
    {"route", "I -> I"},
    {"dispatch", "[g] [g] -> [g]"},
    {"dispatch", "[e] I -> [e]"},
    {"dispatch", "[c] I -> [c]"},
    {"dispatch", "I [h] -> [h]"},
    {"dispatch", "[t] [t] -> R"},
    {"dispatch", "I I -> I"},
    {"expert_linear", "[g] I -> [g]"},
    {"expert_linear", "[c] I -> [c]"},
    {"expert_linear", "[e] [e] -> [e]"},
    {"expert_linear", "I [o] -> [o]"},
    {"expert_linear", "[h] [h] -> R"},
    {"expert_linear", "I I -> I"},
    {"combine", "[g] [g] -> [g]"},
    {"combine", "[e] [e] -> R"},
    {"combine", "[c] [c] -> R"},
    {"combine", "[t] I -> [t]"},
    {"combine", "I [h] -> [h]"},
    {"combine", "I I -> I"},
};

std::vector<std::string_view> words(std::string_view text)
{
    std::vector<std::string_view> found;
    while (!text.empty()) {
        const std::size_t blank = std::min(text.find(' '), text.size());
        if (blank > 0)
            found.push_back(text.substr(0, blank));
        text.remove_prefix(std::min(blank + 1, text.size()));
    }
    return found;
}

/// Before and after "->".
std::pair<std::string_view, std::string_view> sides(std::string_view text)
{
    const std::size_t arrow = text.find("->");
    std::string_view right = text.substr(arrow + 2);
    while (!right.empty() && right.front() == ' ')
        right.remove_prefix(1);
    return {text.substr(0, arrow), right};
}

Operation parseOperation(const OperationRow& row)
{
    Operation operation;
    operation.name = row.name;
    operation.work = row.work;
    const auto [left, right] = sides(row.signature);
    for (const std::string_view word : words(left)) {
        const bool optional = word.back() == '?';
        operation.operands.push_back({std::string(word.substr(0, word.size() - optional)), optional});
    }
    operation.result.letters = std::string(right);
    for (const std::string_view word : words(row.attributes)) {
        const std::string_view name = word.substr(0, word.find_first_of("~?"));
        const auto has = [marks = word.substr(name.size())](char mark) { return marks.find(mark) != marks.npos; };
        operation.attributes.push_back({std::string(name), !has('?'), !has('~')});
    }
    if (!row.sized.empty()) {
        operation.sizedLetter = row.sized.front();
        operation.sizeAttribute = std::string(row.sized.substr(2));
    }
    if (const std::size_t equals = row.parts.find('='); equals != std::string_view::npos) {
        operation.wholeLetters = std::string(row.parts.substr(0, equals));
        operation.partsAttribute = std::string(row.parts.substr(equals + 1));
    }
    return operation;
}

RuleToken parseToken(std::string_view word)
{
    if (word == "R")
        return {Need::Reduce, 0};
    if (word == "1")
        return {Need::Once, 0};
    if (word == "F")
        return {Need::Factors, 0};
    if (word.size() == 3)
        return {Need::Split, word[1]};
    return {Need::Identity, 0};
}

Rule parseRule(const RuleRow& row)
{
    Rule rule;
    rule.operation = findOperation(row.operation);
    rule.origin = row.origin;
    rule.text = row.text;
    const auto [left, right] = sides(row.text);
    for (const std::string_view word : words(left))
        rule.operands.push_back(parseToken(word));
    rule.result = parseToken(right);
    // One dimension of the work is cut; operands and result may know it by different letters (attention's d and k).
    for (const RuleToken& token : rule.operands)
        if (token.need == Need::Split && rule.split == 0)
            rule.split = token.letter;
    return rule;
}

} // namespace

int OperandForm::position(char letter, int stars) const
{
    const std::size_t at = letters.find(letter);
    if (at == std::string::npos)
        return -1;
    return hasStar() ? static_cast<int>(at) - 1 + stars : static_cast<int>(at);
}

bool Rule::factors() const
{
    return std::any_of(operands.begin(), operands.end(),
                       [](const RuleToken& token) { return token.need == Need::Factors; });
}

std::span<const Operation> operations()
{
    static const std::vector<Operation> table = [] {
        std::vector<Operation> parsed;
        for (const OperationRow& row : operationRows)
            parsed.push_back(parseOperation(row));
        return parsed;
    }();
    return table;
}

std::span<const Rule> rules()
{
    static const std::vector<Rule> table = [] {
        std::vector<Rule> parsed;
        for (const RuleRow& row : ruleRows)
            parsed.push_back(parseRule(row));
        return parsed;
    }();
    return table;
}

int findOperation(std::string_view name)
{
    const auto table = operations();
    const auto found =
        std::find_if(table.begin(), table.end(), [name](const Operation& operation) { return operation.name == name; });
    return found == table.end() ? -1 : static_cast<int>(found - table.begin());
}

std::vector<std::string_view> operationNames()
{
    std::vector<std::string_view> names;
    for (const Operation& operation : operations())
        names.push_back(operation.name);
    return names;
}

} // namespace pipewright::sharding
