// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/describedcommands.h"
#include "app/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pipewright::app {

namespace {

/// Text for roff (groff_char(7)): hyphens that can be copied, and no line that is a request.
std::string roff(std::string_view text)
{
    std::string escaped;
    for (const char c : text) {
        if (c == '\\')
            escaped += "\\e";
        else if (c == '-')
            escaped += "\\-";
        else if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n'))
            escaped += fmt::format("\\&{}", c);
        else
            escaped += c;
    }
    return escaped;
}

void appendOption(std::string& page, const DescribedOption& option)
{
    std::string names;
    for (const std::string& name : option.names)
        names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
    if (option.isPositional())
        names = fmt::format("\\fI{}\\fR", roff(option.values));
    else if (!option.isFlag())
        names += fmt::format(" \\fI{}\\fR", roff(option.values));
    page += fmt::format(".TP\n{}\n{}{}\n", names, roff(option.text), option.required ? " (required)" : "");
}

} // namespace

std::string manualPage(const std::vector<DescribedCommand>& commands)
{
    const DescribedCommand& program = commands.front();
    std::string page =
        fmt::format(".\\\" Written by pipewright --generate man.\n"
                    ".TH PIPEWRIGHT 1 \"\" \"pipewright {}\" \"User Commands\"\n"
                    ".SH NAME\n{} \\- designs, predicts and runs pipeline\\-parallel training schedules\n"
                    ".SH SYNOPSIS\n.B pipewright\n[\\fIFILE\\fR...]\n.br\n.B pipewright\n"
                    "\\fICOMMAND\\fR [\\fIOPTION\\fR...]\n.SH DESCRIPTION\n{}.\n"
                    "Without a command the designer opens, with the designs and traces that are named.\n"
                    ".SH OPTIONS\n",
                    roff(versionNumber()), program.name, roff(program.text));
    for (const DescribedOption& option : program.options)
        appendOption(page, option);
    page += ".SH COMMANDS\n";
    for (auto command = commands.begin() + 1; command != commands.end(); ++command) {
        page += fmt::format(".SS {}\n{}.\n", roff(command->name), roff(command->text));
        for (const DescribedOption& option : command->options)
            appendOption(page, option);
    }
    page += ".SH EXIT STATUS\n"
            "0: done. 1: a finding, such as an invalid design or a failed comparison. 2: bad usage or bad input.\n"
            ".SH ENVIRONMENT\n.TP\n\\fBPIPEWRIGHT_RESOURCES\\fR\n"
            "another folder with presets of models, devices, clusters and rates\n";
    return page;
}

} // namespace pipewright::app
