// SPDX-License-Identifier: GPL-3.0-or-later
#include "machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <unistd.h>

namespace standin {

namespace {

std::string variable(const char* name, const char* otherwise)
{
    const char* value = std::getenv((std::string("PIPEWRIGHT_STANDIN_") + name).c_str());
    return value && *value ? value : otherwise;
}

Settings read()
{
    Settings made;
    made.gpus = std::stoi(variable("GPUS", "1"));
    made.multiprocessors = std::stoi(variable("MULTIPROCESSORS", "132"));
    const std::string capability = variable("CAPABILITY", "9.0");
    made.major = std::stoi(capability);
    made.minor = std::stoi(capability.substr(capability.find('.') + 1));
    made.driver = std::stoi(variable("DRIVER", "13000"));
    made.peers = variable("PEERS", "1") == "1";
    made.memory = std::stoull(variable("MEMORY", "8589934592"));
    made.seed = std::stoull(variable("SEED", "1"));
    made.delay = std::stoi(variable("DELAY", "50"));
    made.report = variable("REPORT", "");
    const std::string faults = variable("FAIL", "");
    for (std::size_t begin = 0; begin < faults.size();) {
        const std::size_t end = std::min(faults.find(',', begin), faults.size());
        const std::string each = faults.substr(begin, end - begin);
        made.fail[each.substr(0, each.find(':'))] = std::stol(each.substr(each.find(':') + 1));
        begin = end + 1;
    }
    return made;
}

/// Never destroyed: streams may run until the process ends.
struct Book {
    std::mutex mutex;
    std::map<std::string, long> counts, most, held, tries;
    std::set<std::string> broken;
};

void write();

Book& book()
{
    static Book& only = []() -> Book& {
        if (!settings().report.empty()) {
            std::atexit(write);
            std::at_quick_exit(write); // as the program ends
        }
        return *new Book;
    }();
    return only;
}

std::string quoted(const std::string& text)
{
    std::string result = "\"";
    for (const char c : text)
        if (c == '"' || c == '\\')
            result += {'\\', c};
        else
            result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    return result + '"';
}

std::string object(const std::map<std::string, long>& values)
{
    std::string text;
    for (const auto& [name, number] : values)
        text += (text.empty() ? "" : ",") + quoted(name) + ":" + std::to_string(number);
    return "{" + text + "}";
}

std::string reportText()
{
    Book& all = book();
    const std::lock_guard lock(all.mutex);
    std::string faults;
    for (const std::string& each : all.broken)
        faults += (faults.empty() ? "" : ",") + quoted(each);
    std::erase_if(all.held, [](const auto& each) { return each.second == 0; });
    return "{\"counts\":" + object(all.counts) + ",\"most\":" + object(all.most) + ",\"held\":" + object(all.held)
           + ",\"broken\":[" + faults + "]}";
}

void write()
{
    std::FILE* file = std::fopen((settings().report + "." + std::to_string(::getpid())).c_str(), "w");
    if (!file)
        return;
    std::fprintf(file, "%s\n", reportText().c_str());
    std::fclose(file);
}

} // namespace

const Settings& settings()
{
    static const Settings& only = *new Settings(read());
    return only;
}

void count(const std::string& what, long number)
{
    const std::lock_guard lock(book().mutex);
    book().counts[what] += number;
}

void atMost(const std::string& what, long number)
{
    const std::lock_guard lock(book().mutex);
    book().most[what] = std::max(book().most[what], number);
}

void hold(const std::string& what, long number)
{
    long now = 0;
    {
        const std::lock_guard lock(book().mutex);
        now = book().held[what] += number;
    }
    atMost(what, now);
}

void broken(const std::string& what, const char* rule)
{
    const std::string text = what + " [" + rule + "]";
    const std::lock_guard lock(book().mutex);
    if (book().broken.insert(text).second)
        std::fprintf(stderr, "stand-in: %s\n", text.c_str());
}

namespace {

/// The number of this try minus that of the try that is to fail; negative: before it, or none is to fail.
long after(const std::string& what)
{
    const auto planned = settings().fail.find(what);
    if (planned == settings().fail.end())
        return -1;
    const std::lock_guard lock(book().mutex);
    return ++book().tries[what] - planned->second;
}

} // namespace

bool failsNow(const std::string& what)
{
    return after(what) == 0;
}

bool failsFromNow(const std::string& what)
{
    return after(what) >= 0;
}

bool failed(const std::string& what)
{
    const auto planned = settings().fail.find(what);
    const std::lock_guard lock(book().mutex);
    return planned != settings().fail.end() && book().tries[what] >= planned->second;
}

} // namespace standin

extern "C" const char* standinReport()
{
    static thread_local std::string text;
    text = standin::reportText();
    return text.c_str();
}

extern "C" void standinForget()
{
    standin::Book& all = standin::book();
    const std::lock_guard lock(all.mutex);
    all.counts.clear();
    all.broken.clear();
    all.most = all.held;
}
