// SPDX-License-Identifier: GPL-3.0-or-later
// All exchange formats of designs, by name, as offered by `export`, `import` and the designer's menus. Adding a format
// means adding its file to this folder and a line to the tables in exchange.cpp.
#pragma once

#include "core/base/pieces.h"
#include "core/exchange/exportedtext.h"
#include "core/exchange/importedtransfers.h"
#include "core/exchange/pytorchaction.h"
#include "core/predict/predict.h"

#include <span>
#include <string>
#include <string_view>

namespace pipewright {

struct ExportOptions {
    std::string csv = "schedule.csv"; ///< torchtitan, automodel: the schedule file that the configuration names
    const Timeline* measured =
        nullptr; ///< formats with times: a measured step of the same design, shown with the prediction
    const Prediction* predicted = nullptr; ///< formats with times: predict() of the design; null: it is computed
    /// Gives the memory curves where `predicted` has none and the format's `curves` asks for them.
    CurveOf predictedCurve{};
};

struct ExportFormat {
    std::string_view name;                                     ///< as on the command line: "pytorch-csv"
    std::string_view title;                                    ///< "PyTorch schedule, computations only"
    std::string_view extension;                                ///< "csv"
    std::string_view description;                              ///< one sentence
    ExportedText (*text)(const Design&, const ExportOptions&); ///< null for formats with times
    /// Formats with times: writes the file piece by piece, since it can be long.
    void (*times)(const Design&, const Prediction&, const ExportOptions&, const Pieces&) = nullptr;
    Curves curves = Curves::NotNeeded;

    /// Writes the file to `to`; returns warnings and notes. Throws Error.
    Diagnostics writeTo(const Pieces& to, const Design& design, const ExportOptions& options) const;
    /// The whole file.
    ExportedText write(const Design& design, const ExportOptions& options) const;
};

std::span<const ExportFormat> exportFormats();
/// Throws Error listing the known formats.
const ExportFormat& exportFormat(std::string_view name);

struct ImportOptions {
    std::string format; ///< empty: found out from the text
    PytorchLetters letters = PytorchLetters::Current;
    std::optional<TransferSource> transfers{}; ///< PyTorch's formats; unset: the file's own, where it has them
};

struct ImportFormat {
    std::string_view name, title;
    Imported (*read)(std::string_view text, const std::string& source, const ImportOptions&);
};

std::span<const ImportFormat> importFormats();

/// `source` names the text in diagnostics. Throws Error naming line and cell.
Imported importDesign(std::string_view text, const std::string& source, const ImportOptions& options = {});

} // namespace pipewright
