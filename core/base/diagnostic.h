// SPDX-License-Identifier: GPL-3.0-or-later
// The one type for faults. A Diagnostic names the place, the fault and the remedy; validation returns a list of them,
// and code that cannot go on throws an Error that carries such a list. The designer, the command line and the importers
// all print the same diagnostics.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class Severity { Note, Warning, Error };

struct Diagnostic {
    Diagnostic() = default;
    Diagnostic(Severity severity, std::string_view where, std::string_view what, std::string_view hint = {});

    Severity severity = Severity::Error;
    std::string where; ///< the place: "device 1, position 3 (B0.0)", "costs.forward", "design.json:12"
    std::string what;  ///< the fault, one clause, no full stop
    std::string hint;  ///< what would make it right; may be empty

    bool operator==(const Diagnostic& other) const = default;
};

using Diagnostics = std::vector<Diagnostic>;

bool hasErrors(const Diagnostics& diagnostics);

/// "where: error: what (hint)", the form every command prints; empty parts are left out.
std::string toString(const Diagnostic& diagnostic);
std::string toString(const Diagnostics& diagnostics); ///< one line each

/// At most 40 bytes of untrusted text in quotes, for a message; bytes that are not printable UTF-8 become question
/// marks.
std::string inQuotes(std::string_view text);

/// Thrown when work cannot go on. Never empty: what() is toString() of its diagnostics.
class Error : public std::runtime_error {
public:
    explicit Error(Diagnostics diagnostics);
    Error(std::string_view where, std::string_view what, std::string_view hint = {});
    const Diagnostics& diagnostics() const { return m_diagnostics; }

private:
    Diagnostics m_diagnostics;
};

} // namespace pipewright
