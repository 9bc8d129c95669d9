// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commandline.h"

#include "app/terminal.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <sstream>
#include <utility>

namespace pipewright::app {

CommandOption& CommandOption::required()
{
    m_option->required();
    return *this;
}

CommandOption& CommandOption::typeName(const std::string& name)
{
    m_option->type_name(name);
    return *this;
}

CommandOption& CommandOption::delimiter(char separator)
{
    m_option->delimiter(separator);
    return *this;
}

CommandOption& CommandOption::oneValueEach()
{
    m_option->allow_extra_args(false);
    return *this;
}

CommandOption& CommandOption::range(int least, int most)
{
    m_option->check(CLI::Range(least, most));
    return *this;
}

bool CommandOption::given() const
{
    return m_option->count() > 0;
}

template<class Value>
CommandOption Command::option(const std::string& names, Value& value, const std::string& meaning)
{
    return CommandOption(m_app->add_option(names, value, meaning));
}

template CommandOption Command::option(const std::string&, std::string&, const std::string&);
template CommandOption Command::option(const std::string&, int&, const std::string&);
template CommandOption Command::option(const std::string&, std::int64_t&, const std::string&);
template CommandOption Command::option(const std::string&, std::uint64_t&, const std::string&);
template CommandOption Command::option(const std::string&, double&, const std::string&);
template CommandOption Command::option(const std::string&, std::vector<std::string>&, const std::string&);
template CommandOption Command::option(const std::string&, std::vector<int>&, const std::string&);
template CommandOption Command::option(const std::string&, std::vector<double>&, const std::string&);
template CommandOption Command::option(const std::string&, std::optional<std::string>&, const std::string&);
template CommandOption Command::option(const std::string&, std::optional<int>&, const std::string&);
template CommandOption Command::option(const std::string&, std::optional<double>&, const std::string&);

CommandOption Command::parsed(const std::string& names, const std::function<void(const std::string&)>& take,
                              const std::string& meaning)
{
    return CommandOption(m_app->add_option_function<std::string>(names, take, meaning));
}

void Command::flag(const std::string& names, bool& value, const std::string& meaning)
{
    m_app->add_flag(names, value, meaning)->disable_flag_override(); // --flag=VALUE is an error
}

Command Command::group(const std::string& title, const std::string& meaning)
{
    return Command(m_app->add_option_group(title, meaning));
}

void Command::onCall(std::function<void()> work)
{
    m_app->callback(std::move(work));
}

bool Command::given(const std::string& option) const
{
    return m_app->count(option) > 0;
}

std::string Command::typeNameOf(const std::string& option) const
{
    return m_app->get_option(option)->get_type_name();
}

std::string Command::firstGiven() const
{
    const std::vector<std::string> given = allGiven();
    return given.empty() ? std::string() : given.front();
}

std::vector<std::string> Command::allGiven() const
{
    std::vector<std::string> names;
    for (const CLI::Option* option : m_app->get_options())
        if (option->count() > 0)
            names.push_back(option->get_name());
    return names;
}

CommandLine::CommandLine(const std::string& program, const std::string& meaning, const std::string& version)
    : m_app(std::make_unique<CLI::App>(meaning, program))
{
    m_app->set_version_flag("--version", version);
    m_app->require_subcommand(0, 1);
}

CommandLine::~CommandLine() = default;

Command CommandLine::withoutCommand()
{
    return Command(m_app.get());
}

Command CommandLine::add(const std::string& name, const std::string& meaning)
{
    return Command(m_app->add_subcommand(name, meaning));
}

std::vector<std::string> CommandLine::commandNames() const
{
    std::vector<std::string> names;
    for (const CLI::App* command : m_app->get_subcommands(nullptr))
        names.push_back(command->get_name());
    return names;
}

CommandLine::Outcome CommandLine::parse(int argc, char** argv)
{
    try {
        m_app->parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // For the parser, help and version are errors; here they are successful outcomes.
        std::ostringstream output, errors;
        const int code = m_app->exit(error, output, errors);
        writeEscaped(stdout, output.str());
        writeEscaped(stderr, errors.str());
        return code == 0 ? Outcome::Informed : Outcome::BadUsage;
    }
    return m_app->get_subcommands().empty() ? Outcome::NoCommand : Outcome::Called;
}

} // namespace pipewright::app
