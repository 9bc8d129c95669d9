// SPDX-License-Identifier: GPL-3.0-or-later
// The command line: commands, their options, and what runs when one is called. Only commandline.cpp includes the parser
// (CLI11), whose headers take longer to compile than a command.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace pipewright::app {

/// An option of a command. Further properties follow where it is added: option(…).required().typeName("FILE").
class CommandOption {
public:
    explicit CommandOption(CLI::Option* option = nullptr) : m_option(option) {}
    CommandOption& required();
    CommandOption& typeName(const std::string& name); ///< the placeholder of its value in the help
    CommandOption& delimiter(char separator);         ///< separates several values within one word
    CommandOption& oneValueEach();                    ///< each of several values needs the option again
    CommandOption& range(int least, int most);
    bool given() const;

private:
    CLI::Option* m_option;
};

/// A command, or a group of its options. This is a handle: copies refer to the same command, owned by its CommandLine.
class Command {
public:
    explicit Command(CLI::App* app) : m_app(app) {}

    /// `names`: "-o,--output", or "file" for a positional. `value` must live until the command line is parsed. A Value
    /// is a std::string, int, std::int64_t, std::uint64_t, double, a std::vector of std::string, int or double, or a
    /// std::optional of std::string, int or double.
    template<class Value>
    CommandOption option(const std::string& names, Value& value, const std::string& meaning);
    /// `take` is called with the option's word, if it is given; its exceptions leave CommandLine::parse().
    CommandOption parsed(const std::string& names, const std::function<void(const std::string&)>& take,
                         const std::string& meaning);
    void flag(const std::string& names, bool& value, const std::string& meaning);
    Command group(const std::string& title, const std::string& meaning);
    /// Exceptions of `work` leave CommandLine::parse().
    void onCall(std::function<void()> work);

    bool given(const std::string& option) const;
    std::string typeNameOf(const std::string& option) const;
    std::string firstGiven() const; ///< the name of an option that was given; empty if none was
    std::vector<std::string> allGiven() const;

private:
    CLI::App* m_app;
};

class CommandLine {
public:
    CommandLine(const std::string& program, const std::string& meaning, const std::string& version);
    ~CommandLine();

    Command withoutCommand(); ///< takes the arguments when no command is called
    Command add(const std::string& name, const std::string& meaning);
    std::vector<std::string> commandNames() const;

    enum class Outcome { Called, NoCommand, Informed, BadUsage };
    /// Runs the called command. With Informed or BadUsage the help, the version or the fault has been printed.
    Outcome parse(int argc, char** argv);

private:
    std::unique_ptr<CLI::App> m_app;
};

} // namespace pipewright::app
