// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/picture.h"

#include "app/command.h"

#include "core/base/outputfile.h"
#include "core/base/textfile.h"
#ifdef PIPEWRIGHT_HAS_GUI
#include "gui/widgets/picture.h"
#endif

#include <filesystem>

namespace pipewright::app {

void checkPictureName(const std::string& path, bool overwrite)
{
    const std::string extension = extensionOf(path);
    if (extension != "svg" && extension != "png")
        throw Error(path, "is no name of a picture", "let it end in .svg or .png");
#ifndef PIPEWRIGHT_HAS_GUI
    if (extension == "png")
        throw Error(path, "this build cannot write .png, since Qt was not found or switched off when it was configured",
                    "write .svg, or install Qt 6 Widgets, Charts and Svg and configure again");
#endif
    checkOutput(path, overwrite);
}

void writePicture(const std::string& path, bool overwrite, const Design& design, const Prediction& prediction,
                  const PictureOptions& options)
{
    checkPictureName(path, overwrite);
    const std::string svg = timelineSvg(design, prediction, options);
#ifdef PIPEWRIGHT_HAS_GUI
    if (extensionOf(path) == "png") {
        svgToPng(svg, path, overwrite);
        return;
    }
#endif
    writeFileAtomically(path, svg, overwrite);
}

std::string measuredSource(const std::string& trace, const std::string& step)
{
    return std::filesystem::path(trace).filename().string() + ", " + step;
}

} // namespace pipewright::app
