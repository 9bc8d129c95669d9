// SPDX-License-Identifier: GPL-3.0-or-later
// Reads a file of rates: tables, each with the names of its dimensions and a list of shapes, in which a line is the
// sizes of a shape, then its share of the peak, then seconds that it takes besides (may be left out). A list in place
// of a layout or of types is of those for which a table counts alike.
#pragma once

#include "core/rates/operationrates.h"

#include <string>

namespace pipewright {

/// Throws Error with every fault and its line: unknown operations and dimensions, shares that are no positive number,
/// sizes below 1, shapes or tables that are there twice. `where` names the text: "b200-sxm.json".
OperationRates parseRates(std::string_view text, const std::string& where);

} // namespace pipewright
