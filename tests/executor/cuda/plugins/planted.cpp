// SPDX-License-Identifier: GPL-3.0-or-later
// Under the name of a library that the program needs: says that it was loaded, and ends the process.
#include <cstdlib>
#include <unistd.h>

__attribute__((constructor)) static void loaded()
{
    constexpr char text[] = "PLANTED\n";
    [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, text, sizeof text - 1);
    std::_Exit(77);
}
