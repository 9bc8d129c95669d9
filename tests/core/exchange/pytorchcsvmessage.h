// SPDX-License-Identifier: GPL-3.0-or-later
// The error message of importing a PyTorch CSV, for tests.
#pragma once

#include "core/base/diagnostic.h"
#include "core/exchange/pytorchcsv.h"

#include <QString>

#include <optional>

namespace pipewright::test {

/// Empty when the import succeeds.
inline QString messageOf(const std::string& csv, PytorchLetters letters = PytorchLetters::Current,
                         std::optional<PytorchCsv> form = {})
{
    try {
        importPytorchCsv(csv, "s.csv", letters, form);
    } catch (const Error& error) {
        return QString::fromStdString(error.what());
    }
    return {};
}

} // namespace pipewright::test
