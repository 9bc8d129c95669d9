// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/familylist.h"

#include "core/design/redesign.h"
#include "core/predict/bubblerates.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QScrollBar>
#include <QStyledItemDelegate>
#include <QTreeWidget>

#include <algorithm>

namespace pipewright {

namespace {

enum Column { Title, Bubble, Memory };
constexpr int familyRowHeight = 26;
constexpr int bubbleWidth = 48;
constexpr int memoryWidth = 58;
constexpr int titleMargin = 6;
constexpr int scrollBarWidth = 10; // of the theme's sheet
constexpr int presentRole = Qt::UserRole + 1, overRole = Qt::UserRole + 2;

constexpr const char* narrowProperty = "narrow"; ///< of the list: too narrow for the full names

QFont titleFont(bool narrow, bool present)
{
    return Theme::words(narrow ? TextSize::Small : TextSize::Normal, present ? QFont::DemiBold : QFont::Normal);
}

/// Of the first device; 0: unknown.
Bytes limitOf(const Design& design)
{
    const std::vector<DeviceSpec>& devices = design.cluster.devices;
    return devices.empty() ? 0 : devices.front().memory;
}

/// The text that a narrow list shows for a long name; the tooltip has the full name.
QString firstWord(const QString& title)
{
    return title.section(QLatin1Char(' '), 0, 0);
}

/// Rows without boxes: the current family has the control colour and an accent bar at its left.
class RowDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        return {QStyledItemDelegate::sizeHint(option, index).width(), familyRowHeight};
    }

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        const Theme& theme = Theme::of(option.palette);
        const bool present = index.siblingAtColumn(Title).data(presentRole).toBool();
        const bool possible = index.flags() & Qt::ItemIsEnabled;
        const bool hovered = option.state & QStyle::State_MouseOver;
        // The style marks one cell; the focus ring is drawn around the row.
        const auto* view = qobject_cast<const QAbstractItemView*>(option.widget);
        const bool current = view && view->hasFocus() && view->currentIndex().row() == index.row();
        painter->save();
        if (present || hovered || current) {
            // One rounded background under the three cells of a row; each paints its part.
            const QRect row(0, option.rect.top(),
                            option.widget ? static_cast<const QAbstractScrollArea*>(option.widget)->viewport()->width()
                                          : option.rect.right(),
                            familyRowHeight);
            painter->setClipRect(option.rect);
            painter->setRenderHint(QPainter::Antialiasing);
            painter->setPen(current ? QPen(theme.accent, 1) : Qt::NoPen);
            painter->setBrush(present ? theme.control : theme.lane);
            painter->drawRoundedRect(QRectF(row).adjusted(0.5, 1.5, -0.5, -1.5), Theme::blockRadius,
                                     Theme::blockRadius);
            if (present) {
                painter->setPen(Qt::NoPen);
                painter->setBrush(theme.accent);
                painter->drawRect(QRect(0, row.top() + 1, 2, familyRowHeight - 2));
            }
        }
        const bool title = index.column() == Title;
        painter->setPen(index.data(overRole).toBool() ? theme.bad : possible && title ? theme.text : theme.dim);
        painter->setFont(title ? titleFont(view && view->property(narrowProperty).toBool(), present)
                               : Theme::numbers(TextSize::Small));
        const QRect text = option.rect.adjusted(title ? titleMargin : 0, 0, title ? 0 : -6, 0);
        QString words = index.data().toString();
        if (title && painter->fontMetrics().horizontalAdvance(words) > text.width())
            words = firstWord(words);
        painter->drawText(text, (title ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter,
                          painter->fontMetrics().elidedText(words, Qt::ElideRight, text.width()));
        painter->restore();
    }
};

} // namespace

FamilyList::FamilyList(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_estimates(new FamilyEstimates(this)), m_list(new QTreeWidget(this))
{
    onThemeChange(this, [this] { m_list->viewport()->update(); });
    m_list->setAccessibleName(tr("Schedule families"));
    m_list->setColumnCount(3);
    m_list->setHeaderHidden(true);
    m_list->setRootIsDecorated(false);
    m_list->setIndentation(0);
    m_list->setUniformRowHeights(true);
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setMouseTracking(true);
    m_list->setItemDelegate(new RowDelegate(m_list));
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setSelectionMode(QAbstractItemView::NoSelection);
    m_list->header()->setStretchLastSection(false);
    m_list->header()->setMinimumSectionSize(20);
    m_list->header()->setSectionResizeMode(Title, QHeaderView::Stretch);
    m_list->header()->setSectionResizeMode(Bubble, QHeaderView::Fixed);
    m_list->header()->setSectionResizeMode(Memory, QHeaderView::Fixed);
    m_list->header()->resizeSection(Bubble, bubbleWidth);
    m_list->header()->resizeSection(Memory, memoryWidth);
    for (const Family& family : families()) {
        auto* item = new QTreeWidgetItem(m_list);
        item->setText(Title, QString::fromUtf8(family.title.data(), static_cast<int>(family.title.size())));
        item->setText(Bubble, QStringLiteral("…"));
        m_items.push_back(item);
    }
    m_shown.resize(m_items.size());

    auto* bubble = makeCaption(tr("bubble"), TextSize::Small, this);
    m_memory = makeCaption({}, TextSize::Small, this);
    for (QLabel* label : {bubble, m_memory})
        label->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    bubble->setToolTip(tr("%1. Predicted: of the present schedule as it is, and of the others as their families make "
                          "them")
                           .arg(QString::fromStdString(describe(rateOfMakespan))));
    bubble->setFixedWidth(bubbleWidth);
    m_memory->setFixedWidth(memoryWidth);
    auto* header = new QHBoxLayout;
    // The captions end where the figures do.
    const auto align = [this, header] {
        header->setContentsMargins(0, 0, m_list->verticalScrollBar()->maximum() > 0 ? scrollBarWidth + 6 : 6, 0);
    };
    connect(m_list->verticalScrollBar(), &QScrollBar::rangeChanged, this, align);
    align();
    header->setSpacing(0);
    header->addWidget(makeHeading(tr("Families"), this), 1);
    header->addWidget(bubble);
    header->addWidget(m_memory);
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 6);
    layout->addLayout(header);
    layout->addWidget(m_list, 1);

    const auto choose = [this](QTreeWidgetItem* item) { switchTo(m_list->indexOfTopLevelItem(item)); };
    connect(m_list, &QTreeWidget::itemClicked, this, choose);
    connect(m_list, &QTreeWidget::itemActivated, this, choose);
    connect(m_estimates, &FamilyEstimates::ready, this, &FamilyList::takeEstimate);
    connect(m_estimates, &FamilyEstimates::started, this, [this] {
        for (std::size_t i = 0; i < m_items.size(); ++i) {
            m_shown[i].reset();
            m_items[i]->setText(Bubble, QStringLiteral("…"));
            m_items[i]->setText(Memory, {});
            showRow(i); // the present one needs no estimate
        }
        Q_EMIT estimatesChanged();
    });
    connect(&m_document, &Document::designChanged, this, [this] {
        markPresent();
        m_estimates->request(m_document.design(), *m_document.memberPredictor());
    });
    connect(&m_document, &Document::memoryChanged, this, &FamilyList::markPresent);
    markPresent();
    if (m_document.design().schedule.devices() > 0)
        m_estimates->request(m_document.design(), *m_document.memberPredictor());
}

int FamilyList::widthOfNames(bool narrow) const
{
    const QFontMetrics metrics(titleFont(narrow, true)); // the bold font of the present family is the widest
    int widest = 0;
    for (const QTreeWidgetItem* item : m_items)
        widest = std::max(widest, metrics.horizontalAdvance(narrow ? firstWord(item->text(Title)) : item->text(Title)));
    return titleMargin + widest + 2 + bubbleWidth + memoryWidth + scrollBarWidth;
}

void FamilyList::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    m_list->setProperty(narrowProperty, width() < widthOfNames(false));
}

/// The largest peak, which sets the unit and decimals of the column; 0 when the design has no sizes.
Bytes FamilyList::largestPeak() const
{
    const Prediction* const prediction = m_document.prediction();
    Bytes largest = 0;
    for (std::size_t d = 0; prediction && d < prediction->metrics.devices.size(); ++d)
        largest = std::max(largest, prediction->metrics.devices[d].peakBytes);
    // Families often differ by less than a percent.
    Bytes unit = 1;
    while (unit * 1024 <= largest)
        unit *= 1024;
    return largest > 0 ? std::max(largest, 100 * unit) : 0;
}

void FamilyList::captionMemory()
{
    const Bytes largest = largestPeak();
    m_memory->setText(largest > 0 ? tr("peak %1").arg(sizeText(largest, largest).section(QChar(0x00A0), 1))
                                  : tr("peak ×"));
    m_memory->setToolTip(
        largest > 0
            ? tr("Highest memory of a device, predicted: weights, optimizer state, activations and buffers. Red: "
                 "above the device's limit")
            : tr("Highest number of live microbatch activations on a device (a chunk counts as its part)"));
}

void FamilyList::takeEstimate(const FamilyEstimate& estimate)
{
    m_shown[estimate.family] = estimate;
    showRow(estimate.family);
    Q_EMIT estimatesChanged();
}

void FamilyList::showRow(std::size_t family)
{
    QTreeWidgetItem* item = m_items[family];
    const std::optional<FamilyEstimate>& known = m_shown[family];
    const std::string_view about = families()[family].description;
    QString tip = QStringLiteral("%1: %2\n")
                      .arg( // the list may have no room for the name
                          item->text(Title), QString::fromUtf8(about.data(), static_cast<qsizetype>(about.size())));
    // The present family's row shows the present schedule: after an edit, or with another memory limit, its numbers
    // differ from the family's estimate.
    const bool present =
        item->data(Title, presentRole).toBool() && m_document.prediction() && m_document.unplaced().empty();
    if (!known && !present)
        return;
    const FamilyEstimate shown = present ? estimateOf(m_document.design(), *m_document.prediction()) : *known;
    const auto numbers = [](const FamilyEstimate& of) {
        return tr("bubble %1, makespan %2, peak %3, %4 of activations")
            .arg(percentText(of.bubble), durationText(of.makespan),
                 of.peakBytes ? sizeText(*of.peakBytes) : tr("not known yet"), multipleText(of.activations));
    };
    if (known && !known->possible)
        tip += tr("Not for the present parameters: %1").arg(known->reason);
    else if (!present)
        tip += tr("Predicted for the present parameters: %1. Click to switch.").arg(numbers(shown));
    else if (!known || (shown.makespan == known->makespan && shown.peakBytes == known->peakBytes))
        tip += tr("The present schedule, predicted: %1.").arg(numbers(shown));
    else
        tip += tr("The present schedule, edited or made under another memory limit: %1.\nAs the family makes it: %2. "
                  "Both are predicted.")
                   .arg(numbers(shown), numbers(*known));
    item->setText(Bubble, shown.possible ? percentText(shown.bubble) : QStringLiteral("–"));
    const Bytes limit = limitOf(m_document.design()), largest = largestPeak();
    // In the unit of the column's caption, or in microbatches when the design has no sizes.
    const QString peak = largest == 0      ? multipleText(shown.activations)
                         : shown.peakBytes ? sizeText(*shown.peakBytes, largest).section(QChar(0x00A0), 0, 0)
                                           : QStringLiteral("…");
    item->setText(Memory, shown.possible ? peak : QString());
    const bool over = shown.possible && limit > 0 && shown.peakBytes.value_or(0) > limit;
    item->setData(Memory, overRole, over);
    if (over)
        tip += tr("\nIts peak is above the limit of %1.").arg(sizeText(limit));
    for (int column = Title; column <= Memory; ++column)
        item->setToolTip(column, tip);
    item->setFlags(shown.possible ? Qt::ItemIsEnabled | Qt::ItemIsSelectable : Qt::ItemIsSelectable);
}

void FamilyList::markPresent()
{
    captionMemory();
    const Family* present = findFamily(m_document.design().schedule.family);
    for (std::size_t i = 0; i < m_items.size(); ++i) {
        m_items[i]->setData(Title, presentRole, present == &families()[i]);
        showRow(i);
    }
    m_list->viewport()->update(); // the mark spans all columns, but only one of them changed
}

void FamilyList::switchTo(std::size_t family)
{
    if (family >= families().size())
        return;
    const Family& chosen = families()[family];
    if (chosen.name == m_document.design().schedule.family)
        return;
    try {
        const auto title = QString::fromUtf8(chosen.title.data(), static_cast<int>(chosen.title.size()));
        m_document.replaceDesign(withFamily(m_document.design(), chosen), tr("Switch to %1").arg(title));
    } catch (const Error& error) {
        Q_EMIT refused(error.diagnostics());
    }
}

} // namespace pipewright

#include "moc_familylist.cpp"
