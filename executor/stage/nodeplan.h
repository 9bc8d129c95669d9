// SPDX-License-Identifier: GPL-3.0-or-later
// What the rows of operations ask about a node: where its tensors lie, and what of the layer around it is done together
// with it. Two answer. In a layer (layerplan.h) values pass in a stream, gradients take each other's places and
// neighbours are fused. For a node alone, of a member of a group (executor/sharding), every value is a tensor of its
// own; what this class answers by itself holds for that.
#pragma once

#include "core/model/tensorgraph.h"
#include "executor/stage/steps.h"

#include <string_view>

namespace pipewright {

class NodePlan {
public:
    virtual ~NodePlan() = default;

    virtual bool isAlone() const { return true; }
    virtual const Node& node(int tensor) const = 0;
    virtual int operand(int tensor, std::size_t index) const = 0;
    virtual bool hasOperand(int tensor, std::size_t index) const = 0;
    /// Of the node that makes a tensor; empty: it is a leaf, or its node is not this one.
    virtual std::string_view operation(int tensor) const = 0;
    /// Of what is here, which may be a share.
    virtual const Shape& shape(int tensor) const = 0;
    /// Elements that tokens fill.
    virtual std::int64_t elements(int tensor) const = 0;
    /// Whether it arrives as bytes, for values from -1 to 1.
    virtual bool isBytes(int) const { return false; }
    std::int64_t width(int tensor) const { return shape(tensor).back(); }
    int rows(int tensor) const { return int(elements(tensor) / width(tensor)); }
    /// Before the share of an attention's heads that is here.
    virtual int firstHead() const { return 0; }

    /// Where F makes a value, and where the passes read it.
    virtual Place value(int tensor) const = 0;
    virtual Place read(int tensor) const { return value(tensor); }
    /// Where F may change an operand, and I finds it changed.
    virtual Place changed(int operand) const = 0;
    /// A tensor of an operation's own, which F makes for I and W.
    virtual Place own(int tensor, std::string_view name, std::int64_t elements) const = 0;
    /// A copy of the result that I reads; the result itself, where it stays as it is.
    virtual Place keptResult(int tensor, std::string_view name) const = 0;
    virtual Place gradient(int tensor) const = 0;
    virtual Place workspace(std::string_view name, std::int64_t elements) const = 0;
    /// Where an attention collects the gradients of earlier pieces' keys and values.
    virtual Place sequenceGradient(std::int64_t elements) const = 0;
    virtual ParameterPlace parameter(int tensor) const = 0;
    /// Of an operand that may be absent.
    ParameterPlace optionalParameter(int tensor, std::size_t index) const
    {
        return hasOperand(tensor, index) ? parameter(operand(tensor, index)) : ParameterPlace();
    }
    kernels::Store storeOf(int tensor) const
    {
        return addsToStream(tensor) ? kernels::Store::Add : kernels::Store::Replace;
    }

    // What a layer's plan knows of its neighbours.
    virtual bool isHead() const { return false; }
    virtual bool isOnStream(int) const { return false; }
    virtual bool addsToStream(int) const { return false; }
    virtual bool needsGradient(int) const { return true; }
    /// From which W makes the gradients of tables that are added to a tensor.
    virtual Place tableGradient(int tensor) const { return gradient(tensor); }
    /// The only node that reads a tensor; -1: none or several do, or it is unknown.
    virtual int reader(int) const { return -1; }
    /// The route node by which a value in the slots of experts was sent there.
    virtual int route(int tensor) const { return operand(tensor, 0); }
    virtual bool isActivation(int) const { return false; }
    virtual bool isNorm(int) const { return false; }
    /// A product whose result plain attention reads: its gradient, and those of the two others, are rows side by side.
    virtual bool isPartOfPlain(int) const { return false; }
    /// Of activations between two products: the products do them.
    virtual bool isFused(int) const { return false; }
    /// Product to a picture's patches, of which the result lies behind a class token.
    virtual bool isBehindClassToken(int) const { return false; }
    /// A norm of which only every sequence's first row is read, by the node that is returned; -1: all of it is.
    virtual int firstRowOf(int) const { return -1; }
};

} // namespace pipewright
