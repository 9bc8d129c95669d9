// SPDX-License-Identifier: GPL-3.0-or-later
// One program holds the tests of a folder: linking one for each file took longer than compiling it. Every file
// ends with PIPEWRIGHT_TEST(Class, Application), which enters the class under the file's name; testmain.cpp runs
// the one that the command line names, so that each still has a process and an application of its own.
#pragma once

#include <QCoreApplication>
#include <QTest>

#include <type_traits>

namespace pipewright::testing {

/// For a test that needs no event loop; the others say QCoreApplication or QApplication.
struct NoApplication {
    NoApplication(int&, char**) {}
};

/// Enters a test under the name of its file, without folder and suffix.
class TestRegistration {
public:
    using Run = int (*)(int argc, char** argv);
    TestRegistration(const char* file, Run run);
};

template<typename Test, typename Application>
int runTest(int argc, char** argv)
{
    [[maybe_unused]] Application application(argc, argv);
    if constexpr (std::is_base_of_v<QCoreApplication, Application>)
        application.setAttribute(Qt::AA_Use96Dpi, true); // as QTEST_MAIN does: the same sizes on every screen
    Test test;
    return QTest::qExec(&test, argc, argv);
}

} // namespace pipewright::testing

#define PIPEWRIGHT_TEST(Test, Application)                                                                             \
    static const pipewright::testing::TestRegistration registrationOf##Test(__FILE__, [](int argc, char** argv) {      \
        using namespace pipewright::testing;                                                                           \
        return runTest<Test, Application>(argc, argv);                                                                 \
    });
