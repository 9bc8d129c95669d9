// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/timetext.h"

#include "gui/widgets/words.h"

#include <QLocale>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace pipewright {

QString timeText(Nanoseconds time, double resolution)
{
    static constexpr struct {
        double size;
        const char* name;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};
    const double length = std::abs(static_cast<double>(time));
    const auto* const unit = std::find_if(std::begin(units), std::prev(std::end(units)),
                                          [&](const auto& each) { return length >= each.size; });
    const double value = static_cast<double>(time) / unit->size;
    const int decimals =
        std::clamp(static_cast<int>(std::ceil(std::log10(unit->size / std::max(resolution, 1.0)) - 1e-9)), 0, 9);
    const int whole = std::abs(value) >= 1 ? static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1 : 1;
    constexpr int usual = 4; // digits of durationText()
    if (whole + decimals <= usual)
        return durationText(time);
    return QLocale::c().toString(value, 'f', decimals) + QChar(0x00A0) + QString::fromUtf8(unit->name);
}

} // namespace pipewright
