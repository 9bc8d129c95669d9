// SPDX-License-Identifier: GPL-3.0-or-later
// Rewrites a .cu or .cuh for a compiler of the host:
//   transform IN OUT
// It changes only code that is not C++, and keeps line numbers: launches become standin::launch, shared variables
// references to standin::shared, the PTX instructions that we use become calls, and hints to unroll loops go. Other
// code that is not C++ is refused with its place; anything that device.h lacks does not compile.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::string path;

struct Source {
    std::string text;
    std::string code; ///< the same, with blanks for comments and the contents of literals

    int lineOf(std::size_t at) const
    {
        return 1 + int(std::count(text.begin(), text.begin() + std::ptrdiff_t(at), '\n'));
    }
};

[[noreturn]] void refuse(const Source& source, std::size_t at, const std::string& what)
{
    std::fprintf(stderr, "%s:%d: error: the stand-in for GPUs cannot read this: %s\n", path.c_str(), source.lineOf(at),
                 what.c_str());
    std::exit(1);
}

std::string codeOf(const std::string& text)
{
    std::string code = text;
    const auto blank = [&](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < std::min(to, code.size()); ++i)
            if (code[i] != '\n')
                code[i] = ' ';
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text.compare(i, 2, "//") == 0 || text.compare(i, 2, "/*") == 0) {
            const bool isLine = text[i + 1] == '/';
            const std::size_t end = isLine ? text.find('\n', i) : text.find("*/", i + 2);
            const std::size_t to = end == std::string::npos ? text.size() : isLine ? end : end + 2;
            blank(i, to);
            i = to - 1;
        } else if (text[i] == '"'
                   || (text[i] == '\'' && (i == 0 || !std::isalnum(static_cast<unsigned char>(text[i - 1]))))) {
            std::size_t end = i + 1;
            while (end < text.size() && text[end] != text[i])
                end += text[end] == '\\' ? 2 : 1;
            blank(i + 1, end);
            i = end;
        }
    }
    return code;
}

bool isName(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

/// The position after the bracket that closes the one at `at`.
std::size_t closing(const Source& source, std::size_t at)
{
    int depth = 0;
    for (std::size_t i = at; i < source.code.size(); ++i) {
        depth += source.code[i] == '(' || source.code[i] == '[' || source.code[i] == '{';
        depth -= source.code[i] == ')' || source.code[i] == ']' || source.code[i] == '}';
        if (depth == 0)
            return i + 1;
    }
    refuse(source, at, "a bracket that nothing closes");
}

/// The next `what` from `from` on that is outside of brackets.
std::size_t findOutside(const Source& source, std::string_view what, std::size_t from)
{
    std::size_t at = from;
    while (at < source.code.size() && source.code.compare(at, what.size(), what) != 0)
        at = source.code[at] == '(' || source.code[at] == '[' || source.code[at] == '{' ? closing(source, at) : at + 1;
    if (at >= source.code.size())
        refuse(source, from, "no " + std::string(what) + " where there should be one");
    return at;
}

std::size_t findWord(const Source& source, std::string_view word, std::size_t at = 0)
{
    for (at = source.code.find(word, at); at != std::string::npos; at = source.code.find(word, at + 1))
        if ((at == 0 || !isName(source.code[at - 1])) && !isName(source.code[at + word.size()]))
            return at;
    return at;
}

std::string trimmed(std::string text)
{
    const auto isSpace = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
    text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), isSpace));
    text.erase(std::find_if_not(text.rbegin(), text.rend(), isSpace).base(), text.end());
    return text;
}

void replace(Source& source, std::size_t from, std::size_t to, const std::string& with)
{
    source.text.replace(from, to - from, with);
    source.code = codeOf(source.text);
}

/// The begin of the kernel name, with its template arguments, that ends at `end`.
std::size_t beginOfName(const Source& source, std::size_t end)
{
    std::size_t at = end;
    if (at > 0 && source.code[at - 1] == '>') {
        int depth = 0;
        do {
            --at;
            depth += source.code[at] == '>';
            depth -= source.code[at] == '<';
        } while (depth > 0 && at > 0);
    }
    while (at > 0 && (isName(source.code[at - 1]) || source.code[at - 1] == ':'))
        --at;
    if (at == end)
        refuse(source, end, "a launch of what is no name");
    return at;
}

void rewriteLaunches(Source& source)
{
    for (std::size_t at = source.code.find("<<<"); at != std::string::npos; at = source.code.find("<<<")) {
        const std::size_t nameEnd = source.code.find_last_not_of(" \n", at - 1) + 1;
        const std::size_t begin = beginOfName(source, nameEnd), how = at + 3, howEnd = findOutside(source, ">>>", how);
        const std::size_t open = source.code.find_first_not_of(" \n", howEnd + 3);
        if (open == std::string::npos || source.code[open] != '(')
            refuse(source, at, "a launch without arguments in brackets");
        const std::size_t end = closing(source, open);
        const std::string name = source.text.substr(begin, nameEnd - begin);
        std::string arguments = source.text.substr(open + 1, end - open - 2);
        if (!trimmed(arguments).empty())
            arguments = ", " + arguments;
        replace(source, begin, end,
                "standin::launch(\"" + name + "\", \"" + path.substr(path.rfind('/') + 1) + ":"
                    + std::to_string(source.lineOf(begin)) + "\"," + source.text.substr(nameEnd, at - nameEnd)
                    + " standin::Configuration(" + source.text.substr(how, howEnd - how) + "), "
                    + source.text.substr(howEnd + 3, open - howEnd - 3) + "[](const auto&... each) { " + name
                    + "(each...); }" + arguments + ")");
    }
}

/// `__shared__ float a[8], b;`: each variable becomes a reference to standin::shared, with a key type that is unique in
/// every template instance.
void rewriteShared(Source& source)
{
    const std::string_view word = "__shared__";
    for (std::size_t at = findWord(source, word); at != std::string::npos; at = findWord(source, word)) {
        const std::size_t end = findOutside(source, ";", at);
        if (const std::size_t before = source.code.find_last_not_of(" \n", at == 0 ? 0 : at - 1);
            before != std::string::npos && before >= 5 && source.code.compare(before - 5, 6, "extern") == 0)
            refuse(source, at, "shared memory whose size a launch says");
        std::string type, result;
        for (std::size_t from = at + word.size(); from <= end;) {
            std::size_t to = from;
            for (int angles = 0; to < end && (source.code[to] != ',' || angles > 0);) {
                angles += (source.code[to] == '<') - (source.code[to] == '>'); // template arguments of a type
                to = source.code[to] == '[' ? closing(source, to) : to + 1;
            }
            const std::string each = source.text.substr(from, to - from);
            const std::size_t nameEnd =
                trimmed(each).empty() ? 0 : std::min(each.find('['), each.find_last_not_of(" \n") + 1);
            std::size_t nameBegin = nameEnd;
            while (nameBegin > 0 && isName(each[nameBegin - 1]))
                --nameBegin;
            if (nameBegin == nameEnd || each.find_first_of("={*&") != std::string::npos)
                refuse(source, at, "a shared variable that is no plain one or an array");
            if (type.empty())
                type = trimmed(each.substr(0, nameBegin));
            const std::string name = each.substr(nameBegin, nameEnd - nameBegin);
            result += (result.empty() ? "struct " : " struct ") + name + "Shared; auto& " + name + " = standin::shared<"
                      + type + each.substr(nameEnd) + ", " + name + "Shared>();";
            from = to + 1;
        }
        replace(source, at, end + 1, result);
    }
}

/// The registers that kernels read: the timer and the multiprocessor's number.
void rewriteRegisters(Source& source)
{
    struct Known {
        std::string text, call;
    };
    static const Known all[] = {{R"(asm volatile("mov.u64 %0, %%globaltimer;" : "=l"()", "standin::globalTimer()"},
                                {R"(asm volatile("mov.u32 %0, %%smid;" : "=r"()", "standin::multiprocessor()"}};
    // Those of kernels/cuda/tensorcores.cuh, whose operands have these names.
    static const Known statements[] = {
        {R"(asm("cvt.rn.bf16x2.f32 )", "pair = standin::bf16Pair(high, low)"},
        {R"(asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 )",
         "standin::multiplyInWarp(sums, left, right, {__FILE__, __LINE__})"},
    };
    for (std::size_t at = findWord(source, "asm"); at != std::string::npos; at = findWord(source, "asm")) {
        const Known* statement = std::find_if(std::begin(statements), std::end(statements), [&](const Known& each) {
            return source.text.compare(at, each.text.size(), each.text) == 0;
        });
        if (statement != std::end(statements)) {
            const std::size_t end = closing(source, source.code.find('(', at));
            const auto begin = source.text.begin();
            replace(
                source, at, end,
                statement->call
                    + std::string(
                        std::size_t(std::count(begin + std::ptrdiff_t(at), begin + std::ptrdiff_t(end), '\n')), '\n'));
            continue;
        }
        const Known* known = std::find_if(std::begin(all), std::end(all), [&](const Known& each) {
            return source.text.compare(at, each.text.size(), each.text) == 0;
        });
        if (known == std::end(all))
            refuse(source, at, "an instruction of PTX that has no meaning here");
        const std::size_t open = at + known->text.size() - 1, end = closing(source, open);
        const std::string variable = source.text.substr(open + 1, end - open - 2);
        replace(source, at, closing(source, source.code.find('(', at)),
                variable + " = decltype(" + variable + ")(" + known->call + ")");
    }
}

/// nvcc's hint to unroll a loop. clang heeds it too, and with its sanitizers takes four times as long.
void removeHints(Source& source)
{
    constexpr std::string_view hint = "#pragma unroll";
    for (std::size_t at = source.code.find(hint); at != std::string::npos; at = source.code.find(hint, at))
        replace(source, at, std::min(source.code.find('\n', at), source.code.size()), "");
}

} // namespace

int main(int count, char** arguments)
{
    if (count != 3) {
        std::fprintf(stderr, "usage: transform IN OUT\n");
        return 2;
    }
    path = arguments[1];
    std::ifstream in(path);
    Source source{std::string(std::istreambuf_iterator<char>(in), {}), {}};
    if (!in || source.text.empty()) {
        std::fprintf(stderr, "%s cannot be read or is empty\n", path.c_str());
        return 1;
    }
    source.code = codeOf(source.text);
    const auto lines = std::count(source.text.begin(), source.text.end(), '\n');
    for (const char* unknown : {"__constant__", "__managed__", "__cluster_dims__", "__launch_bounds__"})
        if (const std::size_t at = findWord(source, unknown); at != std::string::npos)
            refuse(source, at, unknown);
    removeHints(source);
    rewriteShared(source);
    rewriteRegisters(source);
    rewriteLaunches(source);
    if (std::count(source.text.begin(), source.text.end(), '\n') != lines)
        refuse(source, 0, "what was rewritten has moved lines");
    std::ofstream out(arguments[2]);
    out << "#include \"device.h\"\n#line 1 \"" << path << "\"\n" << source.text;
    out.close();
    if (!out) {
        std::fprintf(stderr, "%s cannot be written\n", arguments[2]);
        return 1;
    }
    return 0;
}
