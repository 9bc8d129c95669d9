// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/progress.h"

#include "app/cancel.h"
#include "app/terminal.h"

#include "core/base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <unistd.h>
#include <utility>

namespace pipewright::app {

void checkProgressStyle(const std::string& choice)
{
    if (choice != "auto" && choice != "bar" && choice != "json" && choice != "none")
        throw Error("--progress", "\"" + choice + "\" is none that is known", "use one of auto, bar, json, none");
}

ProgressPrinter::ProgressPrinter(const std::string& choice)
{
    checkProgressStyle(choice);
    if (choice == "json")
        m_style = Style::Json;
    else if (choice == "bar" || (choice == "auto" && isatty(STDERR_FILENO) == 1))
        m_style = Style::Bar;
}

ProgressPrinter::~ProgressPrinter()
{
    if (m_drawn > 0)
        printError("\n");
}

void ProgressPrinter::show(double fraction, const Text& beside, const Text& object)
{
    const std::lock_guard lock(m_mutex);
    if (m_style == Style::Json)
        writeLine(object());
    if (m_style != Style::Bar)
        return;
    constexpr int width = 30;
    const int full = std::clamp(static_cast<int>(fraction * width), 0, width);
    const std::string line = fmt::format("[{:=<{}}{:<{}}] {}", "", full, "", width - full, beside());
    // Blanks overwrite the end of a longer previous line.
    std::fputc('\r', stderr); // the one intended control character
    printError("{:<{}}", line, std::max(m_drawn, line.size()));
    m_drawn = line.size();
}

void ProgressPrinter::interrupt(const std::function<void()>& say)
{
    const std::lock_guard lock(m_mutex);
    if (m_drawn > 0)
        printError("\n");
    m_drawn = 0;
    say();
}

void ProgressPrinter::writeLine(const std::string& object)
{
    if (m_style == Style::Json)
        printError("{}\n", object);
}

WorkProgress percentsOn(ProgressPrinter& printer, std::string what)
{
    return {[&printer, what = std::move(what), shown = -1, cancelled = cancelOnSignals()](double fraction) mutable {
        const int percent = std::clamp(static_cast<int>(fraction * 100), 0, 100);
        if (percent != std::exchange(shown, percent))
            printer.show(
                percent / 100.0, [&] { return fmt::format("{} {} %", what, percent); },
                [&] { return fmt::format("{{\"progress\":{:.2f}}}", percent / 100.0); });
        return !cancelled->load();
    }};
}

} // namespace pipewright::app
