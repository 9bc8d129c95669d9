// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/words.h"

#include <QCoreApplication>
#include <QLocale>
#include <QRegularExpression>
#include <QStringList>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace pipewright {

namespace {

QString tr(const char* text)
{
    return QCoreApplication::translate("Words", text);
}

const QChar noBreak(0x00A0);
const QString minus = QStringLiteral("\u2212");

QString sign(bool negative)
{
    return negative ? minus : QStringLiteral("+");
}

/// "18.52 ms" -> "ms".
std::string unitOf(const std::string& written)
{
    return written.substr(written.find(' ') + 1);
}

/// A value in a unit of `scale`, with as many decimals as give the largest value four digits.
QString alike(std::int64_t value, std::int64_t largest, std::int64_t scale, const std::string& unit)
{
    const double of = std::fabs(static_cast<double>(largest)) / static_cast<double>(scale);
    const int decimals = scale == 1 ? 0 : of >= 999.5 ? 0 : of >= 99.95 ? 1 : of >= 9.995 ? 2 : 3;
    const QString text = QString::number(static_cast<double>(value) / static_cast<double>(scale), 'f', decimals);
    return quantityText(text.toStdString() + " " + unit);
}

/// How core writes and reads a kind of quantity.
struct Written {
    std::string (*format)(std::int64_t value);
    std::int64_t (*parse)(const std::string& text);

    std::string unitOfValue(std::int64_t value) const { return unitOf(format(std::abs(value))); }
    double scaleOf(const std::string& unit) const { return static_cast<double>(parse("1" + unit)); }
};

constexpr Written sizes{[](std::int64_t value) { return formatSize(value); },
                        [](const std::string& text) -> std::int64_t { return parseSize(text, {}); }};
constexpr Written durations{[](std::int64_t value) { return formatDuration(value); },
                            [](const std::string& text) -> std::int64_t { return parseDuration(text, {}); }};

/// A value with its own digits, in the unit of the largest.
QString among(std::int64_t value, std::int64_t largest, const Written& kind)
{
    const std::string unit = kind.unitOfValue(largest);
    if (kind.unitOfValue(value) == unit)
        return quantityText(kind.format(value));
    const double units = static_cast<double>(value) / kind.scaleOf(unit);
    if (value > 0 && units < 0.0005)
        return quantityText("<0.001 " + unit);
    const QString number = std::fabs(units) >= 999.5 ? QLocale(QLocale::English).toString(units, 'f', 0)
                                                     : QString::number(std::round(units * 1000) / 1000, 'g', 3);
    return quantityText(number.toStdString() + " " + unit);
}

/// One of two values, in a unit in which both can be read.
QString beside(std::int64_t value, std::int64_t other, const Written& kind)
{
    constexpr double leastShare = 0.05;
    const std::int64_t smaller = std::min(std::abs(value), std::abs(other)),
                       larger = std::max(std::abs(value), std::abs(other));
    const bool tooLittle =
        smaller > 0 && static_cast<double>(smaller) < leastShare * kind.scaleOf(kind.unitOfValue(larger));
    return among(value, tooLittle ? smaller : larger, kind);
}

} // namespace

QString blockTitle(const Block& block)
{
    QString text = QString::fromUtf8(describe(block.op));
    if (!text.isEmpty())
        text[0] = text[0].toUpper();
    if (isPass(block.op))
        text += tr(", microbatch %1").arg(block.microbatch);
    return text;
}

QString quantityText(const std::string& written)
{
    QString text = QString::fromStdString(written);
    const auto unit = std::find_if(text.cbegin(), text.cend(), [](QChar c) { return c.isLetter(); });
    const auto at = static_cast<qsizetype>(unit - text.cbegin());
    const QString name = text.mid(at) == QLatin1String("us") ? QStringLiteral("µs") : text.mid(at);
    return text.left(at).trimmed() + noBreak + name;
}

QString durationText(Nanoseconds value)
{
    constexpr Nanoseconds minute = 60'000'000'000;
    if (std::abs(value) < 100 * minute)
        return quantityText(formatDuration(value));
    return QString::number(static_cast<double>(value) / (60.0 * minute), 'g', 4) + noBreak + QLatin1Char('h');
}

QString sizeText(Bytes value)
{
    return quantityText(formatSize(value));
}

QString durationText(Nanoseconds value, Nanoseconds largest)
{
    const std::string unit = unitOf(formatDuration(std::abs(largest)));
    return alike(value, largest, parseDuration("1" + unit, {}), unit);
}

QString sizeText(Bytes value, Bytes largest)
{
    const std::string unit = unitOf(formatSize(std::abs(largest)));
    return alike(value, largest, parseSize("1" + unit, {}), unit);
}

QString sizeAmong(Bytes value, Bytes largest)
{
    return among(value, largest, sizes);
}

QString sizeBeside(Bytes value, Bytes other)
{
    return beside(value, other, sizes);
}

QString durationBeside(Nanoseconds value, Nanoseconds other)
{
    return beside(value, other, durations);
}

QString ofWhole(Bytes value, Bytes whole, const QString& form)
{
    const QString part = sizeBeside(value, whole);
    return (form.isEmpty() ? tr("%1 of %2") : form).arg(part.left(part.indexOf(noBreak)), sizeBeside(whole, value));
}

QString withDecimalPoint(QString text)
{
    return text.replace(QLatin1Char(','), QLatin1Char('.'));
}

std::string typedQuantity(const QString& text)
{
    QString plain = withDecimalPoint(text);
    for (QChar& c : plain)
        if (c.isSpace())
            c = QLatin1Char(' ');
    return plain.trimmed().toStdString();
}

QString fieldNameOf(const QString& option)
{
    QString name = option.mid(option.startsWith(QLatin1String("--")) ? 2 : 0);
    if (name == QLatin1String("chunks"))
        return tr("Chunks per device");
    if (name == QLatin1String("recompute"))
        return tr("Recomputed");
    if (name == QLatin1String("microbatch-size"))
        return tr("Microbatch size");
    name.replace(QLatin1Char('-'), QLatin1Char(' '));
    return name.left(1).toUpper() + name.mid(1);
}

QString proseText(QString written)
{
    static const QRegularExpression option(QStringLiteral("(?<![\\w-])--[a-z][a-z0-9-]*"));
    static const QRegularExpression inFile(QStringLiteral(" \\(in a file: [^)]*\\)")); // for those who write the file
    static const QRegularExpression quantity(
        QStringLiteral("(?<![\\w.])(\\d[\\d.,]*)\\s?(ns|us|ms|s|B|KiB|MiB|GiB|TiB)(?![\\w/])"));
    written.remove(inFile);
    for (QRegularExpressionMatch match = option.match(written); match.hasMatch(); match = option.match(written))
        written.replace(match.capturedStart(), match.capturedLength(), fieldNameOf(match.captured()));
    qsizetype from = 0;
    for (QRegularExpressionMatch match = quantity.match(written); match.hasMatch();
         match = quantity.match(written, from)) {
        QString unit = match.captured(2);
        if (unit == QLatin1String("us"))
            unit = QStringLiteral("µs");
        const QString value = match.captured(1) + noBreak + unit;
        written.replace(match.capturedStart(), match.capturedLength(), value);
        from = match.capturedStart() + value.size();
    }
    return written;
}

QString proseText(const Diagnostic& diagnostic)
{
    QString text = QString::fromStdString(diagnostic.what);
    if (!diagnostic.where.empty())
        text.prepend(QString::fromStdString(diagnostic.where) + QStringLiteral(": "));
    if (!diagnostic.hint.empty())
        text += QStringLiteral(" (%1)").arg(QString::fromStdString(diagnostic.hint));
    return proseText(text);
}

QString proseText(const Diagnostics& diagnostics)
{
    QStringList lines;
    for (const Diagnostic& each : diagnostics)
        lines << proseText(each);
    return lines.join(QLatin1Char('\n'));
}

QString proseText(const std::exception& error)
{
    const auto* ours = dynamic_cast<const Error*>(&error);
    return ours ? proseText(ours->diagnostics()) : proseText(QString::fromUtf8(error.what()));
}

QString percentText(double share)
{
    // Round first, so that a tiny negative never shows as "-0.0 %".
    const double rounded = std::round(share * 1000.0) / 10.0;
    return (rounded < 0 ? minus : QString()) + QString::number(std::fabs(rounded), 'f', 1) + QStringLiteral("\u00a0%");
}

QString multipleText(double value)
{
    // Large values are shown without decimals.
    return QLocale(QLocale::English).toString(value, 'f', value < 99.95 ? 1 : 0) + QStringLiteral("\u00a0×");
}

QString rateText(double perSecond)
{
    const int digits = perSecond < 10 ? 2 : perSecond < 100 ? 1 : 0;
    return QLocale(QLocale::English).toString(perSecond, 'f', digits);
}

QString signedPercent(double share)
{
    const double rounded = std::round(share * 1000.0) / 10.0;
    if (rounded == 0)
        return share == 0 ? tr("unchanged") : sign(share < 0) + QStringLiteral("0.0\u00a0%");
    return sign(rounded < 0) + QString::number(std::fabs(rounded), 'f', std::fabs(rounded) < 100 ? 1 : 0)
           + QStringLiteral("\u00a0%");
}

QString signedPoints(double share)
{
    const double rounded = std::round(share * 1000.0) / 10.0;
    if (rounded == 0)
        return share == 0 ? tr("unchanged") : sign(share < 0) + QStringLiteral("0.0\u00a0pt");
    return sign(rounded < 0) + QString::number(std::fabs(rounded), 'f', 1) + QStringLiteral("\u00a0pt");
}

QString signedDuration(Nanoseconds value)
{
    return value == 0 ? tr("unchanged") : sign(value < 0) + durationText(std::abs(value));
}

QString signedSize(Bytes value)
{
    return value == 0 ? tr("unchanged") : sign(value < 0) + sizeText(std::abs(value));
}

QString signedSize(Bytes value, Bytes largest)
{
    return value == 0 ? tr("unchanged") : sign(value < 0) + sizeText(std::abs(value), largest);
}

QString signedSizeAmong(Bytes value, Bytes largest)
{
    return value == 0 ? tr("unchanged") : sign(value < 0) + sizeAmong(std::abs(value), largest);
}

int fullestDevice(const Metrics& metrics)
{
    int best = -1;
    Bytes most = -1;
    for (std::size_t d = 0; d < metrics.devices.size(); ++d) {
        if (metrics.devices[d].peakBytes > most) {
            most = metrics.devices[d].peakBytes;
            best = static_cast<int>(d);
        }
    }
    return best;
}

} // namespace pipewright
