// SPDX-License-Identifier: GPL-3.0-or-later
// The two sides of every number under a recording: predicted, measured, or both as a pair. One notation for all panels:
// a pair is written predicted → measured, a difference is measured minus predicted, as a share of predicted.
#pragma once

#include "core/base/units.h"

#include <QString>

#include <optional>

namespace pipewright {

enum class Side { Predicted, Measured, Both };
inline constexpr Side allSides[] = {Side::Predicted, Side::Measured, Side::Both};

QString sideName(Side side); ///< "predicted", "measured", "predicted → measured"; for headings

/// "202.1 → 954 ms", the unit written once where both have the same.
QString pairText(const QString& predicted, const QString& measured);
/// One of the two texts or the pair; an empty `measured` is written as "not recorded".
QString sidedText(Side side, const QString& predicted, const QString& measured);

/// The same of sizes, a pair in one unit. A prediction that is not known is not written.
QString sidedSizes(Side side, std::optional<Bytes> predicted, std::optional<Bytes> measured);
QString pairOfSizes(Bytes first, Bytes second); ///< "0.775 → 77.6 GiB"
/// The same of durations; an empty `measured` is "not recorded".
QString sidedDurations(Side side, Nanoseconds predicted, std::optional<Nanoseconds> measured);
QString pairOfDurations(Nanoseconds first, Nanoseconds second); ///< "0.95 → 1.337 ms"

/// "measured 954 ms, +372 % of predicted 202.1 ms"
QString comparedText(Nanoseconds measured, Nanoseconds predicted);

} // namespace pipewright
