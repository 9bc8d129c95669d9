// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/picture.h"

#include "core/base/diagnostic.h"
#include "core/base/outputfile.h"
#include "core/base/textfile.h"
#include "core/exchange/animatedpage.h"
#include "gui/widgets/runtimefolder.h"

#include <QBuffer>
#include <QFileInfo>
#include <QGuiApplication>
#include <QImage>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgRenderer>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <system_error>
#include <thread>

namespace pipewright {

namespace {

constexpr int longestSide = 16384;
constexpr double pointsPerPixel = 72 / pixelsPerInch;
constexpr double dotsPerMetre = 1 / 0.0254;

void checkReadable(const QSvgRenderer& renderer, QSizeF size, const std::string& path)
{
    if (!renderer.isValid() || size.isEmpty())
        throw Error(path, "the picture is no valid SVG");
}

/// Qt's painter hands pieces of large shapes to threads and waits for them, for ever where none can be started.
void requireThreads(const std::string& path)
{
    try {
        std::thread([] {}).join();
    } catch (const std::system_error& error) {
        throw Error(path, std::string("no thread can be started to paint the picture: ") + error.what(),
                    "end other programs or allow more processes (ulimit -u), or write .svg");
    }
}

QImage imageOf(const std::string& svg, QSizeF size, const std::string& path, double dotsPerInch)
{
    QSvgRenderer renderer(QByteArray::fromStdString(svg));
    checkReadable(renderer, size, path);
    const double scale = dotsPerInch / pixelsPerInch;
    const QSize dots = (size * scale).toSize();
    if (dots.isEmpty() || std::max(dots.width(), dots.height()) > longestSide)
        throw Error(path, fmt::format("a picture of {} x {} dots cannot be made", dots.width(), dots.height()),
                    fmt::format("at most {} a side: a lower resolution, or .svg or .pdf", longestSide));
    requireThreads(path);
    QImage image(dots, QImage::Format_ARGB32_Premultiplied);
    if (image.isNull())
        throw Error(path, "not enough memory for the picture", "write .svg or .pdf instead");
    image.fill(Qt::transparent);
    image.setDotsPerMeterX(qRound(dotsPerInch * dotsPerMetre));
    image.setDotsPerMeterY(qRound(dotsPerInch * dotsPerMetre));
    QPainter painter(&image);
    painter.setRenderHint(QPainter::Antialiasing);
    renderer.render(&painter);
    painter.end();
    return image;
}

// Painting needs an application, for its fonts. The command line has none: one is made on the offscreen platform,
// whatever QT_QPA_PLATFORM says.
void withFonts(const std::function<void()>& paint)
{
    if (QCoreApplication::instance())
        return paint();
    ensureRuntimeFolder();
    const QByteArray platform = qgetenv("QT_QPA_PLATFORM");
    const bool named = qEnvironmentVariableIsSet("QT_QPA_PLATFORM");
    qputenv("QT_QPA_PLATFORM", "offscreen");
    int argc = 1;
    char name[] = "pipewright";
    char* argv[] = {name, nullptr};
    {
        QGuiApplication application(argc, argv);
        paint();
    }
    if (named)
        qputenv("QT_QPA_PLATFORM", platform);
    else
        qunsetenv("QT_QPA_PLATFORM");
}

} // namespace

void writePng(const QImage& image, const std::string& path, bool overwrite)
{
    QBuffer content;
    if (!content.open(QIODevice::WriteOnly) || !image.save(&content, "PNG"))
        throw Error(path, "the picture cannot be made a PNG", "is there enough memory?");
    writeFileAtomically(path, content.data().toStdString(), overwrite);
}

void svgToPng(const std::string& svg, QSizeF size, const std::string& path, bool overwrite, double dotsPerInch)
{
    withFonts([&] { writePng(imageOf(svg, size, path, dotsPerInch), path, overwrite); });
}

void paintSvg(const std::string& svg, QSizeF size, QPagedPaintDevice& page)
{
    QSvgRenderer renderer(QByteArray::fromStdString(svg));
    checkReadable(renderer, size, "picture");
    QPainter painter;
    if (!painter.begin(&page))
        throw Error("picture", "the page cannot be painted on",
                    "look at the printer, or whether the file can be written");
    const QRectF area(0, 0, painter.device()->width(), painter.device()->height());
    const QSizeF fitted = size.scaled(area.size(), Qt::KeepAspectRatio);
    renderer.render(
        &painter, QRectF(QPointF((area.width() - fitted.width()) / 2, (area.height() - fitted.height()) / 2), fitted));
    painter.end();
}

void svgToPdf(const std::string& svg, QSizeF size, const std::string& path, bool overwrite)
{
    if (size.isEmpty())
        throw Error(path, "the picture is no valid SVG");
    withFonts([&] {
        QBuffer content;
        content.open(QIODevice::WriteOnly);
        {
            QPdfWriter writer(&content);
            writer.setCreator(QStringLiteral("Pipewright"));
            // Exactly this size, even when it is close to a standard paper size.
            writer.setPageSize(QPageSize(size * pointsPerPixel, QPageSize::Point, {}, QPageSize::ExactMatch));
            writer.setPageMargins(QMarginsF(0, 0, 0, 0));
            paintSvg(svg, size, writer);
        }
        writeFileAtomically(path, content.data().toStdString(), overwrite);
    });
}

void writePicture(const Picture& picture, const std::string& path, bool overwrite, double dotsPerInch, double seconds)
{
    const QString ending = QFileInfo(QString::fromStdString(path)).suffix().toLower();
    const QSizeF size(picture.width, picture.height);
    if (ending == QLatin1String("svg"))
        writeFileAtomically(path, picture.svg, overwrite);
    else if (ending == QLatin1String("pdf"))
        svgToPdf(picture.svg, size, path, overwrite);
    else if (ending == QLatin1String("png"))
        svgToPng(picture.svg, size, path, overwrite, dotsPerInch);
    else if (ending == QLatin1String("html"))
        writeFileAtomically(path, animatedPage(picture, seconds), overwrite);
    else
        throw Error(path, "is no name of a picture", "let it end in .svg, .pdf, .png or .html");
}

} // namespace pipewright
