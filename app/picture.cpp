// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/picture.h"

#include "app/withqt.h"
#include "core/base/outputfile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <span>

namespace pipewright::app {

namespace {

constexpr std::array<std::string_view, 4> endings{"svg", "pdf", "png", "html"};

struct LengthUnit {
    std::string_view name;
    double pixels;
};
constexpr LengthUnit lengthUnits[] = {{"cm", pixelsPerInch / 2.54},
                                      {"mm", pixelsPerInch / 25.4},
                                      {"in", pixelsPerInch},
                                      {"pt", pixelsPerInch / 72},
                                      {"px", 1},
                                      {"", 1}};

bool isMetric(const std::string& length)
{
    return length.ends_with("cm") || length.ends_with("mm");
}

/// The value of that name; throws Error with all names.
template<class Value>
Value named(const std::string& text, std::span<const Value> all, const std::string& where)
{
    std::string names;
    for (const Value value : all) {
        if (nameOf(value) == text)
            return value;
        names += (names.empty() ? "" : ", ") + std::string(nameOf(value));
    }
    throw Error(where, "\"" + text + "\" is none of them", "use one of " + names);
}

void leaveOut(PictureOptions& options, const std::string& part)
{
    const std::pair<std::string_view, bool PictureOptions::*> parts[] = {{"memory", &PictureOptions::memory},
                                                                         {"axes", &PictureOptions::axes},
                                                                         {"legend", &PictureOptions::legend},
                                                                         {"titles", &PictureOptions::titles},
                                                                         {"numbers", &PictureOptions::numbers}};
    for (const auto& [name, member] : parts)
        if (name == part) {
            options.*member = false;
            return;
        }
    throw Error("--without", "a picture has no \"" + part + "\"",
                "its parts are memory, axes, legend, titles and numbers");
}

} // namespace

void PictureChoice::addTo(CLI::App& command)
{
    command.add_option("--width", width, "of the picture: 8.5cm, 3.3in, or in pixels (1400)")->type_name("LENGTH");
    command.add_option("--font-size", fontSize, "of ordinary words: 8pt, or in pixels (11); all else is in proportion")
        ->type_name("LENGTH");
    command.add_option("--lane-height", laneHeight, "of each device's lane: 5mm, or in pixels (as fits the devices)")
        ->type_name("LENGTH");
    command
        .add_option("--colours", colours,
                    "light, dark, paper (on white; the default for .pdf), or grey (black on white, with textures)")
        ->type_name("NAME");
    command
        .add_option(
            "--measured", measured,
            "where a trace stands: over (filled, the prediction as outlines), under the predicted lanes, beside "
            "them, or alone")
        ->type_name("PLACE");
    command.add_option("--without", without, "parts to leave out: memory, axes, legend, titles, numbers")
        ->type_name("PARTS")
        ->delimiter(',')
        ->allow_extra_args(false);
    command.add_option("--resolution", resolution, "of a .png, in dots per inch (192)")->type_name("DPI");
    command.add_option("--duration", duration, "how long an animation (.html) takes: 20s (10s)")->type_name("TIME");
    command.add_flag("--dark", dark, "the same as --colours dark");
}

PictureOptions PictureChoice::options(const std::string& path) const
{
    PictureOptions options;
    if (dark && !colours.empty() && colours != "dark")
        throw Error("--dark", "the picture cannot be " + colours + ", too", "leave one of the two out");
    if (dark)
        options.colours = PictureColours::Dark;
    else if (!colours.empty())
        options.colours = named<PictureColours>(colours, allPictureColours, "--colours");
    else if (extensionOf(path) == "pdf")
        options.colours = PictureColours::Paper;
    if (!measured.empty())
        options.measured = named<MeasuredPlace>(measured, allMeasuredPlaces, "--measured");
    if (!width.empty()) {
        options.width = parseLength(width, "--width");
        options.centimetres = isMetric(width);
    }
    if (!fontSize.empty())
        options.fontSize = parseLength(fontSize, "--font-size");
    if (!laneHeight.empty())
        options.laneHeight = parseLength(laneHeight, "--lane-height");
    for (const std::string& part : without)
        leaveOut(options, part);
    return options;
}

double PictureChoice::dotsPerInch(const std::string& path) const
{
    if (resolution.empty())
        return 192;
    if (extensionOf(path) != "png")
        throw Error("--resolution", "only a .png has one", "leave it out");
    double value = 0;
    const auto [end, error] = std::from_chars(resolution.data(), resolution.data() + resolution.size(), value);
    if (error != std::errc{} || end != resolution.data() + resolution.size() || !(value >= 30 && value <= 2400))
        throw Error("--resolution", "\"" + resolution + "\" is no resolution", "dots per inch, from 30 to 2400");
    return value;
}

double PictureChoice::seconds(const std::string& path) const
{
    if (duration.empty())
        return 10;
    if (extensionOf(path) != "html")
        throw Error("--duration", "only an animation, .html, has one", "leave it out");
    const double value = static_cast<double>(parseDuration(duration, "--duration")) / 1e9;
    if (!(value >= 0.1 && value <= 3600))
        throw Error("--duration", "\"" + duration + "\" is no time to look on", "from 0.1s to an hour");
    return value;
}

double parseLength(const std::string& text, const std::string& where)
{
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit = std::string_view(text).substr(static_cast<std::size_t>(end - text.data()));
    if (error == std::errc{} && value > 0)
        for (const LengthUnit& each : lengthUnits)
            if (each.name == unit)
                return value * each.pixels;
    throw Error(where, "\"" + text + "\" is no length", "such as 8.5cm, 85mm, 3.3in, 240pt or 1400px");
}

void checkPictureName(const std::string& path, bool overwrite)
{
    const std::string extension = extensionOf(path);
    if (std::find(endings.begin(), endings.end(), extension) == endings.end())
        throw Error(path, "is no name of a picture", "let it end in .svg, .pdf, .png or .html");
    if (!hasQt && (extension == "png" || extension == "pdf"))
        throw Error(path, "this program was built without Qt, so it cannot write ." + extension,
                    "write .svg, or take the .deb or the .tar.gz, which have the designer");
    checkOutput(path, overwrite);
}

void writePicture(const std::string& path, bool overwrite, const Picture& picture, double dotsPerInch, double seconds)
{
    checkPictureName(path, overwrite);
    writeDrawnPicture(picture, path, overwrite, dotsPerInch, seconds);
}

std::string measuredSource(const std::string& trace, const std::string& step)
{
    return std::filesystem::path(trace).filename().string() + ", " + step;
}

} // namespace pipewright::app
