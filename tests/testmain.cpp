// SPDX-License-Identifier: GPL-3.0-or-later
// main() of every program of tests.
//   core_tests                         lists its tests
//   core_tests tst_compile [OPTION…]   runs one; the options are Qt Test's, for example a function's name
// A program with one test runs it without being given its name.
#include "testmain.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

namespace pipewright::testing {

namespace {

/// A function's own variable, because registrations in other files may come before this file's variables.
std::map<std::string, TestRegistration::Run, std::less<>>& tests()
{
    static std::map<std::string, TestRegistration::Run, std::less<>> tests;
    return tests;
}

std::string nameOf(std::string_view file)
{
    file.remove_prefix(file.find_last_of('/') + 1); // npos + 1 is 0
    return std::string(file.substr(0, file.find('.')));
}

int runNamed(int argc, char** argv)
{
    const auto named = argc > 1 ? tests().find(std::string_view(argv[1])) : tests().end();
    if (named != tests().end()) {
        // Qt Test is to see its own options only, behind the program's name.
        argv[1] = argv[0];
        return named->second(argc - 1, argv + 1);
    }
    if (tests().size() == 1)
        return tests().begin()->second(argc, argv);
    if (argc > 1)
        std::fprintf(stderr, "%s has no test named \"%s\". It has:\n", argv[0], argv[1]);
    for (const auto& test : tests())
        std::fprintf(argc > 1 ? stderr : stdout, "%s\n", test.first.c_str());
    return argc > 1 ? EXIT_FAILURE : EXIT_SUCCESS;
}

} // namespace

TestRegistration::TestRegistration(const char* file, Run run)
{
    if (!tests().emplace(nameOf(file), run).second) {
        std::fprintf(stderr, "Two files of tests are named %s; rename one of them.\n", nameOf(file).c_str());
        std::abort();
    }
}

} // namespace pipewright::testing

int main(int argc, char** argv)
{
    return pipewright::testing::runNamed(argc, argv);
}
