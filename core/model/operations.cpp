// SPDX-License-Identifier: GPL-3.0-or-later
// The tables of operations and rules, parsed once at the first use. Rules marked Published are those of arXiv
// 2401.05965; mixture of experts follows GShard (arXiv 2006.16668).
#include "core/model/operations.h"

#include "core/base/diagnostic.h"
#include "core/model/owntensors.h"

#include <algorithm>

namespace pipewright {

namespace {

struct OperationRow {
    std::string_view name, signature;
    Work work = Work::None;
    std::string_view keeps = {};
    std::string_view attributes = {}; ///< names; behind them ~ for any number, ? where they may be absent
    std::string_view sized = {};      ///< "c=capacity": a letter's size, of attributes, letters and digits
    std::string_view parts = {};      ///< "dk=heads": cut only between so many equal parts
    std::string_view atLeast = {};    ///< "ps": p is s or more
    bool passesGradient = false;
    Copies copies = Copies::AsRead;
    std::string_view resultGrad = {};
    OwnTensors own = nullptr;
};

#define PIPEWRIGHT_ATTENTION_ATTRIBUTES                                                                                \
    "heads window? bidirectional? keys? stored? streamed? dropout? scale~? soft_cap~? rotary_base~? rotary_scaling? "  \
    "rotary_factor~? rotary_low~? rotary_high~? rotary_original~? linear_biases? "
constexpr std::string_view attentionAttributes = PIPEWRIGHT_ATTENTION_ATTRIBUTES "key_value_heads?",
                           latentAttributes = PIPEWRIGHT_ATTENTION_ATTRIBUTES "query_size rotary_size?";
#undef PIPEWRIGHT_ATTENTION_ATTRIBUTES

// Attention is causal unless it is bidirectional. `scale` is 1 / sqrt(size of a head) where it is absent; with a
// `window` a query attends to that many keys; with a `rotary_base` queries and keys are rotated by their positions, at
// frequencies that `rotary_scaling` stretches (1 linear, 2 as Llama 3, 3 YaRN: kernels/rotary.h); with `linear_biases`
// scores fall with the distance (kernels/linearbiases.h). `keys`: how many a
// query meets, where earlier pieces of the sequence have some of them. `stored`, `streamed` and `dropout` say what is
// kept of the scores. head_norm is a norm of every head's n values. join_keys gives every head the rotary part that all
// share (DeepSeek-V2, arXiv 2405.04434).
//
// Mixture of experts, per group g of t tokens: route gives each token's weight for every slot c of every expert e,
// dispatch fills the slots, combine adds up the experts' outputs (GShard, arXiv 2006.16668).
constexpr OperationRow operationRows[] = {
    {"linear", "*h oh o? -> *o", Work::Product, "0.input.W g.outputGrad.W"},
    {"matmul", "*mk *kn -> *mn", Work::Product, "0.left.I 1.right.I"},
    {"transpose", "*ab -> *ba", Work::Traffic},
    {.name = "add", .signature = "* * -> *", .work = Work::Traffic, .passesGradient = true},
    {"multiply", "* * -> *", Work::Traffic, "0.factor.I? 1.gateInput.I"},
    {"clamped_silu", "* * -> *", Work::Traffic, "0.activationInput.I 1.gateInput.I"},
    {.name = "scale", .signature = "* -> *", .work = Work::Traffic, .attributes = "factor~", .passesGradient = true},
    {.name = "soft_cap", .signature = "* -> *", .work = Work::Traffic, .attributes = "cap~", .own = cappedLogits},
    {"gelu", "* -> *", Work::Traffic, "0.activationInput.I"},
    {"gelu_erf", "* -> *", Work::Traffic, "0.activationInput.I"},
    {"relu", "* -> *", Work::Traffic, "r.output.I"},
    {"silu", "* -> *", Work::Traffic, "0.activationInput.I"},
    {"tanh", "* -> *", Work::Traffic, "0.activationInput.I"},
    {.name = "dropout", .signature = "* -> *", .work = Work::Traffic, .own = dropoutMask},
    {"softmax", "*v -> *v", Work::Traffic, "r.probabilities.I"},
    {"log_softmax", "*v -> *v", Work::Traffic, "r.probabilities.I"},
    {"layer_norm", "*h h h? -> *h", Work::Traffic, "0.input.I", "epsilon~?"},
    {"rms_norm", "*h h -> *h", Work::Traffic, "0.input.I", "epsilon~?"},
    {"head_norm", "bsd n n? -> bsd", Work::Traffic, "0.input.I", "heads epsilon~?", {}, "d=heads"},
    {"embedding", "* vh -> *h", Work::Traffic, "0.tokens.W4 g.outputGrad.W"},
    // The sum of a row's l features, by the square root of l.
    {"feature_bag", "bl vh -> bh", Work::Traffic, "0.features.W4 g.outputGrad.W"},
    {.name = "positions", // the table's first rows; the further ones are of later pieces of the sequence
     .signature = "bsh ph -> bsh",
     .work = Work::Traffic,
     .keeps = "g.outputGrad.W",
     .atLeast = "ps",
     .passesGradient = true},
    {.name = "segments",
     .signature = "bsh gh -> bsh",
     .work = Work::Traffic,
     .keeps = "g.outputGrad.W",
     .passesGradient = true},
    {.name = "class_token",
     .signature = "bph h -> bsh",
     .work = Work::Traffic,
     .keeps = "g.outputGrad.W",
     .sized = "s=p+1",
     .passesGradient = true},
    {"first_row", "bsh -> bh", Work::Traffic},
    {"last_row", "bsh -> bh", Work::Traffic},
    {.name = "attention",
     .signature = "bsd btk btk n? -> bsd",
     .work = Work::Attention,
     .keeps = "0.query.I 1.key.I+ 2.value.I+",
     .attributes = attentionAttributes,
     .parts = "dkn=key_value_heads",
     .own = attentionCore},
    {.name = "join_keys",
     .signature = "bsk bsr -> bsd",
     .work = Work::Traffic,
     .attributes = "heads",
     .sized = "d=k+heads*r",
     .parts = "kd=heads",
     .resultGrad = "d.key"},
    {.name = "latent_attention",
     .signature = "bsd btd btv n? -> bsv",
     .work = Work::Attention,
     .keeps = "0.query.I 1.key.I+ 2.value.I+",
     .attributes = latentAttributes,
     .parts = "dvn=heads",
     .own = attentionCore},
    {"reduce_last", "*v -> *", Work::Traffic},
    {"sum", "* -> ", Work::None},
    {"hand_over", "* -> ", Work::None}, // to the next stage, in place of the loss
    {.name = "cross_entropy",
     .signature = "*v * -> ",
     .work = Work::Traffic,
     .keeps = "1.targets.I4",
     .own = lossProbabilities},
    {.name = "route",
     .signature = "gte e? -> gtec",
     .work = Work::Traffic,
     .attributes = "top_k capacity sigmoid? groups? groups_per_token? unnormalised? scale~? balance~? spread~?",
     .sized = "c=capacity",
     .own = routing},
    {.name = "dispatch", .signature = "gtec gth -> gech", .work = Work::Traffic, .copies = Copies::Made},
    {"expert_linear", "gech eoh eo? -> geco", Work::Product, "0.input.W g.outputGrad.W"},
    {.name = "combine",
     .signature = "gtec gech -> gth",
     .work = Work::Traffic,
     .keeps = "1.output.I",
     .copies = Copies::Summed},
};

struct RuleRow {
    std::string_view operation, text;
    RuleOrigin origin = RuleOrigin::Published;
    std::string_view optional = {}; ///< of the operands that may be absent, where the text does not name them
};

constexpr auto published = RuleOrigin::Published;

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
    {"tanh", "[*] -> [*]"},
    {"tanh", "I -> I"},
    {"dropout", "[*] -> [*]"},
    {"dropout", "R -> R"},
    {"dropout", "I -> I"},
    {"clamped_silu", "[*] [*] -> [*]"},
    {"clamped_silu", "I I -> I"},
    {"head_norm", "[b] I -> [b]", published, "I"},
    {"head_norm", "[s] I -> [s]", published, "I"},
    {"head_norm", "[d] I -> [d]", published, "I"},
    {"head_norm", "I I -> I", published, "I"},
    {"embedding", "[*] I -> [*]"},
    {"embedding", "I [h] -> [h]"},
    {"embedding", "I [v] -> R", added},
    {"embedding", "I I -> I"},
    {"feature_bag", "[b] I -> [b]"},
    {"feature_bag", "I [h] -> [h]"},
    {"feature_bag", "I I -> I"},
    {"positions", "[b] I -> [b]"},
    {"positions", "[s] [p] -> [s]"},
    {"positions", "[h] [h] -> [h]"},
    {"positions", "I I -> I"},
    {"positions", "R 1 -> R", added},
    {"segments", "[b] I -> [b]"},
    {"segments", "[h] [h] -> [h]"},
    {"segments", "I I -> I"},
    {"class_token", "[b] I -> [b]"},
    {"class_token", "[h] [h] -> [h]"},
    {"class_token", "I I -> I"},
    {"first_row", "[b] -> [b]"},
    {"first_row", "[h] -> [h]"},
    {"first_row", "R -> R"},
    {"first_row", "I -> I"},
    {"last_row", "[b] -> [b]"},
    {"last_row", "[h] -> [h]"},
    {"last_row", "R -> R"},
    {"last_row", "I -> I"},
    {"attention", "[b] [b] [b] -> [b]", published, "I"},
    {"attention", "[d] [k] [k] -> [d]", added, "[n]"},
    {"attention", "I I I -> I", published, "I"},
    {"join_keys", "[b] [b] -> [b]"},
    {"join_keys", "[k] I -> [d]", added},
    {"join_keys", "I I -> I"},
    {"latent_attention", "[b] [b] [b] -> [b]", published, "I"},
    {"latent_attention", "[d] [d] [v] -> [v]", added, "[n]"},
    {"latent_attention", "I I I -> I", published, "I"},
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
    {"route", "[g] -> [g]", published, "I"},
    {"route", "I -> I", published, "I"},
    {"dispatch", "[g] [g] -> [g]"},
    {"dispatch", "[e] I -> [e]"},
    {"dispatch", "[c] I -> [c]"},
    {"dispatch", "I [h] -> [h]"},
    {"dispatch", "[t] [t] -> R"},
    {"dispatch", "I I -> I"},
    {"expert_linear", "[g] I -> [g]", published, "I"},
    {"expert_linear", "[c] I -> [c]", published, "I"},
    {"expert_linear", "[e] [e] -> [e]", published, "[e]"},
    {"expert_linear", "I [o] -> [o]", published, "[o]"},
    {"expert_linear", "[h] [h] -> R", published, "1"},
    {"expert_linear", "I I -> I", published, "I"},
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

/// "0.input.W", "1.targets.I4", "g.outputGrad.W".
KeptForm parseKept(std::string_view word)
{
    KeptForm kept;
    const std::size_t end = word.rfind('.');
    if (word.front() == 'r')
        kept.what = KeptForm::What::Result;
    else if (word.front() == 'g')
        kept.what = KeptForm::What::ResultGrad;
    else
        kept.operand = word.front() - '0';
    kept.name = word.substr(2, end - 2);
    const std::string_view until = word.substr(end + 1);
    if (kept.what == KeptForm::What::ResultGrad)
        kept.lifetime = Lifetime::FromInputGrad;
    else if (until.front() == 'W')
        kept.lifetime = Lifetime::UntilWeightGrad;
    kept.bytesPerElement = until.ends_with('4') ? 4 : 0;
    kept.readByLaterPieces = until.ends_with('+');
    kept.unlessRemade = until.ends_with('?');
    return kept;
}

Operation parseOperation(const OperationRow& row)
{
    Operation operation;
    operation.name = row.name;
    operation.work = row.work;
    for (const std::string_view word : words(row.keeps))
        operation.keeps.push_back(parseKept(word));
    operation.atLeast = row.atLeast;
    operation.passesGradient = row.passesGradient;
    operation.copies = row.copies;
    operation.resultGrad = row.resultGrad;
    operation.own = row.own;
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
        operation.sizeFormula = row.sized.substr(2);
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

SharingRule parseRule(const RuleRow& row)
{
    SharingRule rule;
    rule.operation = findOperation(row.operation);
    rule.origin = row.origin;
    rule.text = row.text;
    const auto [left, right] = sides(row.text);
    for (const std::string_view text : {left, row.optional})
        for (const std::string_view word : words(text))
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

bool Operation::isElementwise() const
{
    return result.letters == "*" && !keeps.empty()
           && std::all_of(operands.begin(), operands.end(),
                          [](const OperandForm& form) { return form.letters == "*"; });
}

bool SharingRule::factors() const
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

std::span<const SharingRule> sharingRules()
{
    static const std::vector<SharingRule> table = [] {
        std::vector<SharingRule> parsed;
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

} // namespace pipewright
