// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/blasthreads.h"

#include <string_view>

#include <unistd.h>

namespace pipewright::app {

namespace {

char oneThread[] = "OPENBLAS_NUM_THREADS=1";
char* replaced = nullptr; ///< the entry of the environment in whose place that is

/// Before the C library is initialised, which then takes `environment` as it is: setenv() would be in vain. The list
/// cannot grow, so without such a variable the last one is away until main().
void askForOneThread(int, char**, char** environment)
{
    constexpr std::string_view name = "OPENBLAS_NUM_THREADS=";
    char** place = nullptr;
    for (char** entry = environment; *entry != nullptr; ++entry) {
        place = entry;
        if (std::string_view(*entry).starts_with(name))
            break;
    }
    if (place != nullptr) {
        replaced = *place;
        *place = oneThread;
    }
}

// The loader calls the functions in this section before it initialises the first library.
[[gnu::section(".preinit_array"), gnu::used]] void (*const beforeLibraries)(int, char**, char**) = askForOneThread;

} // namespace

void restoreEnvironment()
{
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
        if (*entry == oneThread)
            *entry = replaced;
}

} // namespace pipewright::app
