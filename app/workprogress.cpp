// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workprogress.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <unistd.h>
#include <utility>

namespace pipewright::app {

namespace {

// A signal handler can reach nothing else than what has a fixed address.
std::atomic<bool> interrupted{false};

extern "C" void interruptWork(int)
{
    interrupted.store(true);
}

} // namespace

WorkProgressPrinter::WorkProgressPrinter(const std::string& choice, std::string title) : m_title(std::move(title))
{
    if (choice != "auto" && choice != "bar" && choice != "json" && choice != "none")
        throw Error("--progress", "\"" + choice + "\" is none that is known", "use one of auto, bar, json, none");
    m_json = choice == "json";
    m_bar = choice == "bar" || (choice == "auto" && isatty(STDERR_FILENO) == 1);
    struct sigaction action {};
    action.sa_handler = interruptWork;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

WorkProgressPrinter::~WorkProgressPrinter()
{
    if (m_drawn && m_bar)
        fmt::print(stderr, "\n");
}

WorkProgress WorkProgressPrinter::progress()
{
    return {[this](double fraction) { return show(fraction); }};
}

void WorkProgressPrinter::finish()
{
    show(1);
}

bool WorkProgressPrinter::show(double fraction)
{
    const int percent = std::clamp(static_cast<int>(fraction * 100), 0, 100);
    if (percent != m_shown) {
        m_shown = percent;
        m_drawn = true;
        constexpr int width = 30;
        if (m_bar)
            fmt::print(stderr, "\r[{:=<{}}{:<{}}] {} {} %", "", percent * width / 100, "",
                       width - percent * width / 100, m_title, percent);
        else if (m_json)
            fmt::print(stderr, "{{\"progress\":{:.2f}}}\n", percent / 100.0);
    }
    return !interrupted.load();
}

} // namespace pipewright::app
