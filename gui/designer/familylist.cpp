// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/familylist.h"

#include "core/design/redesign.h"
#include "core/predict/bubblerates.h"
#include "core/search/tradeoffs.h"
#include "gui/search/tradeoffplot.h"
#include "gui/widgets/copying.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QHeaderView>
#include <QPainter>
#include <QPushButton>
#include <QScrollBar>
#include <QStyledItemDelegate>
#include <QTreeWidget>

#include <algorithm>

namespace pipewright {

namespace {

enum Column { Title, Bubble, Memory };
constexpr int familyRowHeight = 26;
constexpr int bubbleWidth = 52;
constexpr int memoryWidth = 64;
constexpr int titleMargin = 6;
constexpr int scrollBarWidth = 10; // of the theme's sheet
constexpr int presentRole = Qt::UserRole + 1, overRole = Qt::UserRole + 2, familyRole = Qt::UserRole + 3,
              headingRole = Qt::UserRole + 4;

/// How a family stands in the list, from the top.
enum class Standing { Fits, Over, Impossible };

Standing standingOf(const FamilyEstimate& estimate, Bytes limit)
{
    return !estimate.possible                                    ? Standing::Impossible
           : limit > 0 && estimate.peakBytes.value_or(0) > limit ? Standing::Over
                                                                 : Standing::Fits;
}

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
        if (index.siblingAtColumn(Title).data(headingRole).toBool()) {
            painter->setPen(index.data(overRole).toBool() ? theme.bad : theme.dim);
            painter->setFont(Theme::words(TextSize::Small));
            if (index.column() == Title)
                painter->drawText(option.rect, Qt::AlignLeft | Qt::AlignVCenter, index.data().toString());
            return;
        }
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

constexpr std::int64_t mostUnasked = 200'000; ///< blocks whose families are estimated in about half a minute

} // namespace

FamilyList::FamilyList(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_estimates(new FamilyEstimates(this)), m_list(new QTreeWidget(this)),
      m_plot(new TradeOffPlot(TradeOffPlot::Value::Bubble, this)), m_ask(new QPushButton(tr("Estimate all"), this))
{
    onThemeChange(this, [this] { m_list->viewport()->update(); });
    m_plot->makeSmall();
    m_list->setAccessibleName(tr("Schedule families"));
    m_list->setColumnCount(3);
    m_list->setRootIsDecorated(false);
    m_list->setIndentation(0);
    m_list->setUniformRowHeights(true);
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setMouseTracking(true);
    makeCopyable(*m_list);
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
    m_list->header()->setSectionsClickable(true);
    m_list->header()->setHighlightSections(false);
    m_list->header()->setFont(Theme::words(TextSize::Small));
    m_list->headerItem()->setTextAlignment(Title, Qt::AlignLeft | Qt::AlignVCenter);
    for (const int column : {Bubble, Memory})
        m_list->headerItem()->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    m_list->headerItem()->setToolTip(
        Bubble, tr("%1. Predicted: of the present schedule as it is, and of the others as their families make them")
                    .arg(QString::fromStdString(describe(rateOfMakespan))));
    for (std::size_t i = 0; i < families().size(); ++i) {
        const std::string_view title = families()[i].title;
        auto* item = new QTreeWidgetItem(m_list);
        item->setText(Title, QString::fromUtf8(title));
        item->setText(Bubble, QStringLiteral("…"));
        item->setData(Title, familyRole, qulonglong(i));
        m_items.push_back(item);
    }
    m_shown.resize(m_items.size());
    m_own = new QTreeWidgetItem(m_list, {tr("own order")});
    m_own->setData(Title, presentRole, true);
    m_own->setFlags(Qt::ItemIsEnabled);
    m_own->setHidden(true);

    auto* header = new QHBoxLayout;
    header->addWidget(makeHeading(tr("Families"), this));
    header->addStretch(1);
    header->addWidget(makeCaption(tr("bubble ↑ against peak →"), TextSize::Small, this));
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 6);
    layout->addLayout(header);
    layout->addWidget(m_plot);
    layout->addWidget(m_ask);
    layout->addWidget(m_list, 1);
    m_ask->setAutoDefault(false);
    m_ask->setToolTip(tr("With so many blocks every family takes seconds, so they wait to be asked for"));
    connect(m_ask, &QPushButton::clicked, this, [this] { request(true); });

    connect(m_list, &QTreeWidget::itemClicked, this, &FamilyList::choose);
    connect(m_list, &QTreeWidget::itemActivated, this, &FamilyList::choose);
    connect(m_list->header(), &QHeaderView::sectionClicked, this, &FamilyList::sortBy);
    connect(m_plot, &TradeOffPlot::taken, this, [this](int point) { switchTo(static_cast<std::size_t>(point)); });
    connect(m_estimates, &FamilyEstimates::ready, this, &FamilyList::takeEstimate);
    connect(m_estimates, &FamilyEstimates::started, this, [this] {
        for (std::size_t i = 0; i < m_items.size(); ++i) {
            m_shown[i].reset();
            m_items[i]->setText(Bubble, m_ask->isHidden() ? QStringLiteral("…") : QStringLiteral("–"));
            m_items[i]->setText(Memory, {});
            showRow(i); // the present one needs no estimate
        }
        showPoints();
        Q_EMIT estimatesChanged();
    });
    connect(&m_document, &Document::designChanged, this, [this] {
        markPresent();
        request();
    });
    connect(&m_document, &Document::memoryChanged, this, &FamilyList::markPresent);
    markPresent();
    m_ask->hide();
    if (m_document.design().schedule.devices() > 0)
        request();
}

void FamilyList::request(bool asked)
{
    const std::int64_t blocks = m_document.design().schedule.blocks();
    m_asked = asked ? blocks : m_asked;
    const bool waits = blocks > mostUnasked && blocks != m_asked;
    m_ask->setVisible(waits);
    if (waits)
        m_estimates->drop();
    else
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

void FamilyList::captionColumns()
{
    const Bytes largest = largestPeak();
    QString captions[] = {tr("family"), tr("bubble"),
                          largest > 0 ? tr("peak %1").arg(sizeText(largest, largest).section(QChar(0x00A0), 1))
                                      : tr("peak ×")};
    captions[m_sorted] += m_ascending ? QStringLiteral("▾") : QStringLiteral("▴");
    for (const int column : {Title, Bubble, Memory})
        m_list->headerItem()->setText(column, captions[column]);
    m_list->headerItem()->setToolTip(
        Memory,
        largest > 0
            ? tr("Highest memory of a device, predicted: weights, optimizer state, activations and buffers. Red: "
                 "above the device's limit")
            : tr("Highest number of live microbatch activations on a device (a chunk counts as its part)"));
}

void FamilyList::takeEstimate(const FamilyEstimate& estimate)
{
    m_shown[estimate.family] = estimate;
    showRow(estimate.family);
    showPoints();
    arrange();
    Q_EMIT estimatesChanged();
}

void FamilyList::showRow(std::size_t family)
{
    QTreeWidgetItem* item = m_items[family];
    const std::optional<FamilyEstimate>& known = m_shown[family];
    const std::string_view about = families()[family].description;
    QString tip = QStringLiteral("%1: %2\n")
                      .arg( // the list may have no room for the name
                          item->text(Title), QString::fromUtf8(about));
    // The present family's row shows the present schedule: after an edit, or with another memory limit, its numbers
    // differ from the family's estimate.
    const bool present = isPresent(family);
    if (!known && !present)
        return;
    const FamilyEstimate shown = shownOf(family);
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
    showNumbers(*item, shown);
    if (const Bytes limit = limitOf(m_document.design()); standingOf(shown, limit) == Standing::Over)
        tip += tr("\nIts peak is above the limit of %1.").arg(sizeBeside(limit, *shown.peakBytes));
    for (int column = Title; column <= Memory; ++column)
        item->setToolTip(column, tip);
    item->setFlags(shown.possible ? Qt::ItemIsEnabled | Qt::ItemIsSelectable : Qt::ItemIsSelectable);
}

void FamilyList::showNumbers(QTreeWidgetItem& item, const FamilyEstimate& shown)
{
    item.setText(Bubble, shown.possible ? percentText(shown.bubble) : QStringLiteral("–"));
    const Bytes largest = largestPeak();
    // In the unit of the column's caption, or in microbatches when the design has no sizes.
    const QString peak = largest == 0      ? multipleText(shown.activations)
                         : shown.peakBytes ? sizeText(*shown.peakBytes, largest).section(QChar(0x00A0), 0, 0)
                                           : QStringLiteral("…");
    item.setText(Memory, shown.possible ? peak : QString());
    item.setData(Memory, overRole, standingOf(shown, limitOf(m_document.design())) == Standing::Over);
}

std::optional<FamilyEstimate> FamilyList::own() const
{
    return m_document.prediction() && m_document.unplaced().empty() && m_document.design().schedule.devices() > 0
                   && !findFamily(m_document.design().schedule.family)
               ? std::optional(estimateOf(m_document.design(), *m_document.prediction()))
               : std::nullopt;
}

void FamilyList::showOwn()
{
    const std::optional<FamilyEstimate> present = own();
    m_own->setHidden(!present);
    if (!present)
        return;
    showNumbers(*m_own, *present);
    for (int column = Title; column <= Memory; ++column)
        m_own->setToolTip(column, tr("The present schedule, edited or of another origin: the order of no family. "
                                     "Predicted"));
}

void FamilyList::markPresent()
{
    captionColumns();
    const Family* present = findFamily(m_document.design().schedule.family);
    for (std::size_t i = 0; i < m_items.size(); ++i) {
        m_items[i]->setData(Title, presentRole, present == &families()[i]);
        showRow(i);
    }
    showOwn();
    showPoints();
    arrange();
    m_list->viewport()->update(); // the mark spans all columns, but only one of them changed
}

bool FamilyList::isPresent(std::size_t family) const
{
    return m_items[family]->data(Title, presentRole).toBool() && m_document.prediction()
           && m_document.unplaced().empty();
}

FamilyEstimate FamilyList::shownOf(std::size_t family) const
{
    return isPresent(family) ? estimateOf(m_document.design(), *m_document.prediction())
                             : m_shown[family].value_or(FamilyEstimate{});
}

void FamilyList::showPoints()
{
    const bool inBytes = largestPeak() > 0;
    const auto memoryOf = [inBytes](const FamilyEstimate& of) {
        return inBytes ? static_cast<double>(of.peakBytes.value_or(0)) : of.activations;
    };
    std::vector<TradeOffPlot::Point> points(m_items.size());
    std::vector<TradeOff> evaluated(m_items.size());
    std::optional<QPointF> here;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const FamilyEstimate estimate = shownOf(i);
        const bool known = estimate.possible && (!inBytes || estimate.peakBytes);
        points[i] = {m_items[i]->text(Title), memoryOf(estimate), estimate.bubble, false, known};
        evaluated[i].possible = known;
        evaluated[i].bubble = estimate.bubble;
        evaluated[i].peakBytes = inBytes ? estimate.peakBytes.value_or(0) : 0;
        evaluated[i].peakActivations = estimate.activations;
        if (known && isPresent(i))
            here = QPointF(points[i].memory, points[i].value);
    }
    const std::vector<bool> front = paretoFront(evaluated);
    for (std::size_t i = 0; i < points.size(); ++i)
        points[i].onFront = front[i];
    if (const std::optional<FamilyEstimate> present = own(); present && (!inBytes || present->peakBytes))
        here = QPointF(memoryOf(*present), present->bubble);
    m_plot->setPoints(std::move(points), inBytes);
    m_plot->setPresent(here, limitOf(m_document.design()));
}

void FamilyList::sortBy(int column)
{
    m_ascending = column != m_sorted || !m_ascending;
    m_sorted = column;
    captionColumns();
    arrange();
}

void FamilyList::arrange()
{
    if (std::any_of(m_shown.begin(), m_shown.end(), [](const auto& each) { return !each; }))
        return;
    const Bytes limit = limitOf(m_document.design());
    const bool inBytes = largestPeak() > 0;
    struct Row {
        std::size_t family; ///< m_items.size(): the present schedule, of none
        Standing standing;
        double key;
    };
    std::vector<Row> rows;
    const std::optional<FamilyEstimate> present = own();
    for (std::size_t i = 0; i < m_items.size() + (present ? 1 : 0); ++i) {
        const FamilyEstimate shown = i < m_items.size() ? shownOf(i) : *present;
        const double memory = inBytes ? static_cast<double>(shown.peakBytes.value_or(0)) : shown.activations;
        const double key = m_sorted == Title ? double(i) : m_sorted == Bubble ? shown.bubble : memory;
        rows.push_back({i, standingOf(shown, limit), m_ascending ? key : -key});
    }
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
        return std::pair(a.standing, a.key) < std::pair(b.standing, b.key);
    });
    std::vector<std::pair<int, std::size_t>> order;
    for (const Row& row : rows)
        order.emplace_back(static_cast<int>(row.standing), row.family);
    if (order == m_order)
        return;
    m_order = std::move(order);
    const QSignalBlocker quiet(m_list);
    const int scrolled = m_list->verticalScrollBar()->value();
    QTreeWidgetItem* const current = m_list->currentItem();
    while (m_list->topLevelItemCount() > 0) {
        QTreeWidgetItem* const item = m_list->takeTopLevelItem(0);
        if (item->data(Title, headingRole).toBool())
            delete item;
    }
    Standing group = Standing::Fits;
    for (const Row& row : rows) {
        if (row.standing != group) {
            group = row.standing;
            auto* heading = new QTreeWidgetItem(
                m_list, {group == Standing::Over ? tr("over memory") : tr("not with these parameters")});
            heading->setData(Title, headingRole, true);
            heading->setData(Title, overRole, group == Standing::Over);
            heading->setFlags(Qt::NoItemFlags);
        }
        m_list->addTopLevelItem(row.family < m_items.size() ? m_items[row.family] : m_own);
    }
    if (!present)
        m_list->addTopLevelItem(m_own);
    m_own->setHidden(!present); // a taken item is shown again
    if (current && m_list->indexOfTopLevelItem(current) >= 0)
        m_list->setCurrentItem(current);
    m_list->verticalScrollBar()->setValue(scrolled);
}

void FamilyList::choose(const QTreeWidgetItem* item)
{
    if (const QVariant family = item->data(Title, familyRole); family.isValid())
        switchTo(static_cast<std::size_t>(family.toULongLong()));
}

void FamilyList::switchTo(std::size_t family)
{
    if (family >= families().size())
        return;
    const Family& chosen = families()[family];
    if (chosen.name == m_document.design().schedule.family)
        return;
    try {
        const auto title = QString::fromUtf8(chosen.title);
        m_document.replaceDesign(withFamily(m_document.design(), chosen), tr("Switch to %1").arg(title));
    } catch (const Error& error) {
        Q_EMIT refused(error.diagnostics());
    }
}

} // namespace pipewright

#include "moc_familylist.cpp"
