// SPDX-License-Identifier: GPL-3.0-or-later
// Text formats of the panels: names of blocks, shares, differences. Always with units; differences are signed (with a
// real minus sign). Pure functions.
#pragma once

#include "core/design/design.h"
#include "core/predict/bubbles.h"

#include <QString>

namespace pipewright {

/// "Input gradient, microbatch 0".
QString blockTitle(const Block& block);
/// The two-line text of a chip on one line: "I 0".
QString chipText(const Block& block);

QString durationText(Nanoseconds value); ///< "18.52 ms"
QString sizeText(Bytes value);           ///< "68.8 GiB"
QString percentText(double share);       ///< 0.114 -> "11.4 %"
QString multipleText(double value);      ///< 4 -> "4.0 ×", 1024 -> "1,024 ×"
QString rateText(double perSecond);      ///< "38,400"

QString signedPercent(double share); ///< -0.021 -> "−2.1 %", 0 -> "unchanged"
QString signedPoints(double share);  ///< -0.019 -> "−1.9 pt"
QString signedDuration(Nanoseconds value);
QString signedSize(Bytes value);

/// The device with the highest peak, and -1 when there is none.
int fullestDevice(const Metrics& metrics);

} // namespace pipewright
