// SPDX-License-Identifier: GPL-3.0-or-later
// Text formats of the panels: names of blocks, shares, differences. Always with units, a no-break space before them;
// differences are signed (with a real minus sign). Pure functions.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "core/predict/bubbles.h"

#include <QString>

#include <string>

namespace pipewright {

/// "Input gradient, microbatch 0".
QString blockTitle(const Block& block);

/// A quantity that core wrote, with a no-break space before its unit, and with "us" as "µs".
QString quantityText(const std::string& written);
QString durationText(Nanoseconds value); ///< "18.52 ms"; beyond 100 minutes in hours, "11.36 h"
QString sizeText(Bytes value);           ///< "68.8 GiB"
/// The same for a value of a column or list, in the unit and with the decimals of the largest value: "58.0 GiB" and
/// "0.5 GiB" beside "103.2 GiB".
QString durationText(Nanoseconds value, Nanoseconds largest);
QString sizeText(Bytes value, Bytes largest);
/// With its own three digits, in the unit of the largest of a table: "0.775 GiB" and "18 GiB" beside 103 GiB; less than
/// a thousandth of the unit is "<0.001 GiB".
QString sizeAmong(Bytes value, Bytes largest);
/// One of two sizes in a sentence, in the unit of the larger; where less than a twentieth of that is left of the
/// smaller, both are in its unit: "25.6 MiB" beside "20,275 MiB".
QString sizeBeside(Bytes value, Bytes other);
QString durationBeside(Nanoseconds value, Nanoseconds other); ///< the same of durations: "0.095 ms" beside "1.2 ms"
/// "68.8 of 80 GiB"; `form` has places for both, where it is written otherwise.
QString ofWhole(Bytes value, Bytes whole, const QString& form = {});
/// The typed text in the form that core parses: commas become decimal points, and every kind of space a plain one. All
/// fields follow this rule, so a comma never separates thousands.
std::string typedQuantity(const QString& text);
QString withDecimalPoint(QString text);
QString percentText(double share);  ///< 0.114 -> "11.4 %"
QString multipleText(double value); ///< 4 -> "4.0 ×", 1024 -> "1,024 ×"
QString rateText(double perSecond); ///< "38,400"

/// Core's diagnostics as a window shows them: one line each, without "error:"; a command-line option by its field's
/// name, "Microbatches" for "--microbatches"; quantities as everywhere else, "141 GiB" for "141GiB".
QString proseText(const Diagnostics& diagnostics);
QString proseText(const Diagnostic& diagnostic);
QString proseText(const std::exception& error); ///< the diagnostics of an Error, else what()
QString proseText(QString written);             ///< the same for any text
/// "--microbatches" -> "Microbatches", "--layers-per-stage" -> "Layers per stage".
QString fieldNameOf(const QString& option);

QString signedPercent(double share); ///< -0.021 -> "−2.1 %", 0 -> "unchanged"
QString signedPoints(double share);  ///< -0.019 -> "−1.9 pt"
QString signedDuration(Nanoseconds value);
QString signedSize(Bytes value);
QString signedSize(Bytes value, Bytes largest); ///< in the unit and with the decimals of the largest
QString signedSizeAmong(Bytes value, Bytes largest);

/// The device with the highest peak, and -1 when there is none.
int fullestDevice(const Metrics& metrics);

} // namespace pipewright
