// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/picture.h"

#include "core/base/diagnostic.h"
#include "core/base/textfile.h"
#include "gui/widgets/runtimefolder.h"

#include <QBuffer>
#include <QGuiApplication>
#include <QImage>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgRenderer>

#include <algorithm>
#include <memory>

namespace pipewright {

namespace {

constexpr double preferredScale = 2;
constexpr int longestSide = 16384;

void paintAndWrite(const std::string& svg, const std::string& path, bool overwrite)
{
    QSvgRenderer renderer(QByteArray::fromStdString(svg));
    if (!renderer.isValid())
        throw Error(path, "the picture is no valid SVG");
    const QSize size = renderer.defaultSize();
    const int longest = std::max(size.width(), size.height());
    if (size.isEmpty() || longest > longestSide)
        throw Error(path,
                    "a picture of " + std::to_string(size.width()) + " x " + std::to_string(size.height())
                        + " pixels cannot be made",
                    "at most 16384 a side; write .svg instead");
    const double scale = std::min(preferredScale, static_cast<double>(longestSide) / longest);
    QImage image(size * scale, QImage::Format_ARGB32_Premultiplied);
    if (image.isNull())
        throw Error(path, "not enough memory for the picture", "write .svg instead");
    image.fill(Qt::transparent);
    image.setDotsPerMeterX(static_cast<int>(scale * 96 / 0.0254));
    image.setDotsPerMeterY(static_cast<int>(scale * 96 / 0.0254));
    QPainter painter(&image);
    painter.setRenderHint(QPainter::Antialiasing);
    renderer.render(&painter);
    painter.end();
    writePng(image, path, overwrite);
}

} // namespace

void writePng(const QImage& image, const std::string& path, bool overwrite)
{
    QBuffer content;
    if (!content.open(QIODevice::WriteOnly) || !image.save(&content, "PNG"))
        throw Error(path, "the picture cannot be made a PNG", "is there enough memory?");
    writeFileAtomically(path, content.data().toStdString(), overwrite);
}

void svgToPng(const std::string& svg, const std::string& path, bool overwrite)
{
    if (QCoreApplication::instance()) {
        paintAndWrite(svg, path, overwrite);
        return;
    }
    ensureRuntimeFolder();
    // The command line draws without a screen, whatever platform the environment names.
    const QByteArray platform = qgetenv("QT_QPA_PLATFORM");
    qputenv("QT_QPA_PLATFORM", "offscreen");
    int argc = 1;
    char name[] = "pipewright";
    char* argv[] = {name, nullptr};
    {
        QGuiApplication application(argc, argv);
        paintAndWrite(svg, path, overwrite);
    }
    if (platform.isNull())
        qunsetenv("QT_QPA_PLATFORM");
    else
        qputenv("QT_QPA_PLATFORM", platform);
}

void paintSvg(const std::string& svg, QPagedPaintDevice& page)
{
    QSvgRenderer renderer(QByteArray::fromStdString(svg));
    if (!renderer.isValid())
        throw Error("picture", "the picture is no valid SVG");
    QPainter painter;
    if (!painter.begin(&page))
        throw Error("picture", "the page cannot be painted on",
                    "look at the printer, or whether the file can be written");
    const QRectF area(0, 0, painter.device()->width(), painter.device()->height());
    const QSizeF size = QSizeF(renderer.defaultSize()).scaled(area.size(), Qt::KeepAspectRatio);
    renderer.render(&painter,
                    QRectF(QPointF((area.width() - size.width()) / 2, (area.height() - size.height()) / 2), size));
    painter.end();
}

void svgToPdf(const std::string& svg, const std::string& path)
{
    const QSize size = QSvgRenderer(QByteArray::fromStdString(svg)).defaultSize();
    if (size.isEmpty())
        throw Error(path, "the picture is no valid SVG");
    QBuffer content;
    content.open(QIODevice::WriteOnly);
    {
        QPdfWriter writer(&content);
        writer.setCreator(QStringLiteral("Pipewright"));
        writer.setPageSize(QPageSize(QSizeF(size) * 0.75, QPageSize::Point)); // 96 pixels are 72 points
        writer.setPageMargins(QMarginsF(0, 0, 0, 0));
        paintSvg(svg, writer);
    }
    writeFileAtomically(path, content.data().toStdString(), true);
}

} // namespace pipewright
