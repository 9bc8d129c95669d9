// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/side.h"

#include "core/base/beyondprediction.h"
#include "gui/widgets/words.h"

#include <QCoreApplication>

namespace pipewright {
namespace {

QString sideWords(const char* text)
{
    return QCoreApplication::translate("Side", text);
}

/// The unit with the no-break space before it; empty where there is no unit.
QString unitOf(const QString& text)
{
    const qsizetype space = text.lastIndexOf(QChar(0x00A0));
    return space < 0 ? QString() : text.mid(space);
}

} // namespace

QString sideName(Side side)
{
    switch (side) {
    case Side::Predicted: return sideWords("predicted");
    case Side::Measured: return sideWords("measured");
    case Side::Both: break;
    }
    return sideWords("predicted → measured");
}

QString pairText(const QString& predicted, const QString& measured)
{
    const QString unit = unitOf(predicted);
    const bool shared = !unit.isEmpty() && unit == unitOf(measured);
    return QStringLiteral("%1 → %2").arg(shared ? predicted.left(predicted.size() - unit.size()) : predicted, measured);
}

QString sidedText(Side side, const QString& predicted, const QString& measured)
{
    const QString recorded = measured.isEmpty() ? sideWords("not recorded") : measured;
    switch (side) {
    case Side::Predicted: return predicted;
    case Side::Measured: return recorded;
    case Side::Both: break;
    }
    return pairText(predicted, recorded);
}

QString pairOfSizes(Bytes first, Bytes second)
{
    return pairText(sizeBeside(first, second), sizeBeside(second, first));
}

QString sidedSizes(Side side, std::optional<Bytes> predicted, std::optional<Bytes> measured)
{
    if (side == Side::Both && predicted && measured)
        return pairOfSizes(*predicted, *measured);
    const auto text = [](const std::optional<Bytes>& size) { return size ? sizeText(*size) : QString(); };
    return sidedText(side, text(predicted), text(measured));
}

QString pairOfDurations(Nanoseconds first, Nanoseconds second)
{
    const QString before = durationText(first), after = durationText(second);
    return unitOf(before) == unitOf(after) ? pairText(before, after) // hours, which core does not write, too
                                           : pairText(durationBeside(first, second), durationBeside(second, first));
}

QString sidedDurations(Side side, Nanoseconds predicted, std::optional<Nanoseconds> measured)
{
    if (side == Side::Both && measured)
        return pairOfDurations(predicted, *measured);
    return sidedText(side, durationText(predicted), measured ? durationText(*measured) : QString());
}

QString comparedText(Nanoseconds measured, Nanoseconds predicted)
{
    if (measured == predicted || predicted <= 0)
        return sideWords("measured %1, predicted %2").arg(durationText(measured), durationText(predicted));
    return sideWords("measured %1, %2 of predicted %3")
        .arg(durationText(measured),
             signedPercent(beyondPrediction(static_cast<double>(measured), static_cast<double>(predicted))),
             durationText(predicted));
}

} // namespace pipewright
