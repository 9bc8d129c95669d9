// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/breadcrumb.h"

#include "core/design/design.h"
#include "core/families/family.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QToolButton>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int crumbPadding = 18; // both sides together
constexpr int narrowestCrumb = 56;
constexpr int separatorWidth = 14;
const QString sign = QStringLiteral(" ▾"); ///< it opens something

/// 8192 -> "8k", 1000 -> "1000".
QString tokensText(std::int64_t tokens)
{
    return tokens >= 1024 && tokens % 1024 == 0 ? QStringLiteral("%1k").arg(tokens / 1024) : QString::number(tokens);
}

QString modelText(const Design& design)
{
    if (!design.workload)
        return Breadcrumb::tr("No model");
    const ModelShape& shape = design.workload->shape;
    if (shape.architecture == Architecture::Table)
        return QString::fromStdString(shape.name);
    return QStringLiteral("%1 · %2 · %3")
        .arg(QString::fromStdString(shape.name), tokensText(shape.sequence),
             QString::fromStdString(std::string(nameOf(shape.precision()))));
}

/// What all devices are called, else what their names have in common before a comma: slices of one GPU, as they are
/// measured, differ in what follows it. Empty where there is neither.
QString sharedName(const std::vector<DeviceSpec>& devices)
{
    const auto allMatch = [&devices](const auto& matches) {
        return std::all_of(devices.begin(), devices.end(), [&](const DeviceSpec& each) { return matches(each.name); });
    };
    std::string name = devices.front().name;
    if (allMatch([&](const std::string& each) { return each == name; }))
        return QString::fromStdString(name);
    for (std::size_t comma = name.rfind(", "); comma != std::string::npos; comma = name.rfind(", ")) {
        name.resize(comma);
        if (allMatch([&](const std::string& each) { return each.starts_with(name + ", "); }))
            return QString::fromStdString(name);
    }
    return {};
}

QString clusterText(const Design& design)
{
    const std::vector<DeviceSpec>& devices = design.cluster.devices;
    if (devices.empty())
        return Breadcrumb::tr("%1 devices").arg(design.schedule.devices());
    const QString shared = sharedName(devices);
    const QString name = shared.isEmpty() ? QString::fromStdString(design.cluster.name) : shared;
    const QString text = QStringLiteral("%1 × %2").arg(devices.size()).arg(name);
    return design.cluster.link.name.empty()
               ? text
               : QStringLiteral("%1 · %2").arg(text, QString::fromStdString(design.cluster.link.name));
}

QString familyText(const Design& design)
{
    const pipewright::Family* family = findFamily(design.schedule.family);
    const QString name = family ? QString::fromUtf8(family->title) : Breadcrumb::tr("own order");
    return design.schedule.microbatches == 1
               ? Breadcrumb::tr("%1 · 1 microbatch").arg(name)
               : Breadcrumb::tr("%1 · %2 microbatches").arg(name).arg(design.schedule.microbatches);
}

} // namespace

Breadcrumb::Breadcrumb(QWidget* parent) : QWidget(parent)
{
    const QString names[] = {tr("Model"), tr("Cluster"), tr("Schedule")};
    auto* layout = makeLayout<QHBoxLayout>(this, {0, 0, 0, 0}, 0);
    for (const Part part : {Model, Cluster, Family}) {
        auto* button = m_buttons[part] = new QToolButton(this);
        button->setProperty("crumb", true);
        button->setAccessibleName(names[part]);
        button->setFocusPolicy(Qt::TabFocus);
        button->setFont(Theme::words(TextSize::Normal, part == Model ? QFont::DemiBold : QFont::Normal));
        button->setPopupMode(QToolButton::InstantPopup);
        if (part != Model) {
            auto* separator = makeCaption(QStringLiteral("›"), TextSize::Large, this);
            separator->setFixedWidth(separatorWidth);
            separator->setAlignment(Qt::AlignCenter);
            layout->addWidget(separator);
        }
        layout->addWidget(button);
    }
    layout->addStretch(1);
}

void Breadcrumb::showDesign(const Design& design)
{
    m_texts = {modelText(design), clusterText(design), familyText(design)};
    const QString opens[] = {tr("Models to choose from, and the present one's layers"),
                             tr("Clusters to choose from, and the present one's devices and links"),
                             tr("Families to choose from")};
    for (const Part part : {Model, Cluster, Family})
        m_buttons[part]->setToolTip(QStringLiteral("%1\n%2").arg(m_texts[part], opens[part]));
    fit();
}

void Breadcrumb::fit()
{
    // Slots of fixed shares, so that a name that changes moves nothing. What does not fit loses its last parts first,
    // then letters.
    constexpr int shares[] = {36, 32, 32};
    const int room = width() - (partCount - 1) * separatorWidth;
    for (const Part part : {Model, Cluster, Family}) {
        QToolButton* const button = m_buttons[part];
        button->setFixedWidth(std::max(narrowestCrumb, room * shares[part] / 100));
        const QFontMetrics metrics = button->fontMetrics();
        const int space = button->width() - crumbPadding - metrics.horizontalAdvance(sign);
        QString text = m_texts[part];
        for (const QString separator = QStringLiteral(" · ");
             metrics.horizontalAdvance(text) > space && text.contains(separator);)
            text = text.section(separator, 0, -2);
        button->setText(metrics.elidedText(text, Qt::ElideRight, space) + sign);
    }
}

void Breadcrumb::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    fit();
}

} // namespace pipewright

#include "moc_breadcrumb.cpp"
