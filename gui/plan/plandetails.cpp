// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plan/plandetails.h"

#include "core/plan/planwords.h"
#include "gui/memory/memorykinds.h"
#include "gui/plan/planfields.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/words.h"

#include <QComboBox>
#include <QKeyEvent>
#include <QLocale>
#include <QPushButton>

#include <algorithm>

namespace pipewright {

namespace {

constexpr std::size_t mostReasons = 6;

/// The colour that the bars have, before a name.
QString swatch(const MemoryKind& kind)
{
    return QStringLiteral("<span style='color:%1'>■</span>&nbsp;&nbsp;").arg(kind.color.name());
}

QString whyText(const std::string& why)
{
    return QString::fromUtf8(why).replace(QStringLiteral(" %"), QStringLiteral("\u00a0%"));
}

/// "1", "1–3, 5".
QString rangesText(std::vector<std::size_t> numbers)
{
    std::sort(numbers.begin(), numbers.end());
    QStringList ranges;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t last = i;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
            ++last;
        ranges << (last == i ? QString::number(numbers[i] + 1)
                             : QStringLiteral("%1–%2").arg(numbers[i] + 1).arg(numbers[last] + 1));
        i = last + 1;
    }
    return ranges.join(QStringLiteral(", "));
}

} // namespace

QString wholeText(std::int64_t count)
{
    return QLocale(QLocale::English).toString(qlonglong(count));
}

QString planText(const PlanSetting& setting, const Family& family, int chunks)
{
    return QString::fromUtf8(planName(setting, family, chunks));
}

QString answerText(const QString& pin, const PlanResult& with, const PlanResult& all)
{
    if (with.plans.empty()) {
        QStringList lines{with.complete ? PlanDetails::tr("No plan has %1:").arg(pin)
                                        : PlanDetails::tr("Stopped before a plan was found with %1:").arg(pin)};
        const auto reasons = byCount(with.reasons);
        for (std::size_t i = 0; i < std::min(mostReasons, reasons.size()); ++i)
            lines << (reasons[i].first == 1
                          ? PlanDetails::tr("%1 (1 plan)").arg(QString::fromUtf8(reasons[i].second))
                          : PlanDetails::tr("%1 (%2 plans)")
                                .arg(QString::fromUtf8(reasons[i].second), wholeText(reasons[i].first)));
        return lines.join(QLatin1Char('\n'));
    }
    const TrainingPlan& best = with.plans.front();
    const QString over =
        all.plans.empty() ? QString()
        : best.step == all.plans.front().step
            ? PlanDetails::tr(", as short as the best of all")
            : PlanDetails::tr(", %1 over the best of all")
                  .arg(signedPercent(static_cast<double>(best.step) / static_cast<double>(all.plans.front().step) - 1));
    return PlanDetails::tr("The best with %1: %2%3: %4.\n%5%6.")
        .arg(pin, durationText(best.step), over, planText(best.setting, *best.family, best.chunks), whyText(best.why),
             with.complete ? QString() : PlanDetails::tr(". Stopped: others may be shorter"));
}

QString pinCostText(const QString& pins, const PlanResult& all, const PlanResult& without)
{
    if (without.plans.empty())
        return PlanDetails::tr("Without the pins (%1) no plan was found either.").arg(pins);
    const TrainingPlan& best = without.plans.front();
    if (all.plans.empty())
        return PlanDetails::tr("Without the pins (%1) the best takes %2: %3.")
            .arg(pins, durationText(best.step), planText(best.setting, *best.family, best.chunks));
    const double more = static_cast<double>(all.plans.front().step) / static_cast<double>(best.step) - 1;
    if (more <= 0)
        return without.complete
                   ? PlanDetails::tr("The pins (%1) cost nothing: no plan without them is shorter.").arg(pins)
                   : PlanDetails::tr("What the pins (%1) cost is not known: stopped before.").arg(pins);
    return PlanDetails::tr("The pins (%1) cost %2%3: without them the best takes %4: %5.")
        .arg(pins, without.complete ? QString() : PlanDetails::tr("at least "), signedPercent(more),
             durationText(best.step), planText(best.setting, *best.family, best.chunks));
}

PlanDetails::PlanDetails(QWidget* parent)
    : QWidget(parent), m_heading(makeHeading({}, this)), m_name(new Paragraph(this)), m_why(new Paragraph(this)),
      m_facts(new FactList(this)), m_refined(new Paragraph(this)), m_pinCosts(new Paragraph(this)),
      m_change(new Paragraph(this)), m_dimension(new QComboBox(this)), m_value(new QComboBox(this)),
      m_ask(new QPushButton(tr("Ask"), this)), m_answer(new Paragraph(this))
{
    for (QLabel* paragraph : {m_name, m_why, m_refined, m_pinCosts, m_change, m_answer}) {
        paragraph->setWordWrap(true);
        paragraph->setTextInteractionFlags(Qt::TextSelectableByMouse);
    }
    m_name->setAccessibleName(tr("The chosen plan"));
    m_why->setAccessibleName(tr("Why it stands there"));
    m_refined->setAccessibleName(tr("Refined"));
    m_pinCosts->setAccessibleName(tr("What the pins cost"));
    m_change->setAccessibleName(tr("Against the list before"));
    m_answer->setAccessibleName(tr("Answer"));
    m_dimension->setAccessibleName(tr("Why not this dimension"));
    m_value->setAccessibleName(tr("Why not this value"));
    for (const std::string_view dimension : PlanFields::dimensions)
        m_dimension->addItem(QString::fromUtf8(dimension).replace(QLatin1Char('_'), QLatin1Char(' ')),
                             QString::fromUtf8(dimension));
    m_value->setInsertPolicy(QComboBox::NoInsert);
    m_dimension->setFixedWidth(118);
    m_value->setFixedWidth(84);
    m_ask->setAutoDefault(false);
    m_ask->setToolTip(tr("Where the best plan with this stands, or why there is none"));
    auto* question = new QHBoxLayout;
    question->setSpacing(6);
    for (QWidget* part :
         {static_cast<QWidget*>(m_dimension), static_cast<QWidget*>(m_value), static_cast<QWidget*>(m_ask)})
        question->addWidget(part);
    question->addStretch(1);
    auto* layout = makeLayout<QVBoxLayout>(this, {16, 8, 4, 0}, 8);
    layout->addWidget(m_heading);
    layout->addWidget(m_name);
    layout->addWidget(m_why);
    layout->addWidget(m_facts);
    layout->addWidget(m_refined);
    layout->addWidget(m_pinCosts);
    layout->addWidget(m_change);
    layout->addSpacing(6);
    layout->addWidget(makeHeading(tr("Why not …?"), this));
    layout->addLayout(question);
    layout->addWidget(m_answer);
    layout->addStretch(1);
    connect(m_dimension, &QComboBox::currentIndexChanged, this, &PlanDetails::takeDimension);
    connect(m_ask, &QPushButton::clicked, this, &PlanDetails::askIt);
    m_value->installEventFilter(this);
    takeDimension();
    setAskable(false);
    setPlan(nullptr, -1);
    setRefined({});
    setPinCosts({});
    setChange({});
    setAnswer({});
}

void PlanDetails::askIt()
{
    if (m_ask->isEnabled())
        Q_EMIT asked(m_dimension->currentData().toString() + QLatin1Char('=') + m_value->currentText().trimmed());
}

/// Return in the value asks, where the window's default button would begin another search.
bool PlanDetails::eventFilter(QObject* watched, QEvent* event)
{
    if (watched != m_value || event->type() != QEvent::KeyPress)
        return QWidget::eventFilter(watched, event);
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key != Qt::Key_Return && key != Qt::Key_Enter)
        return false;
    askIt();
    return true;
}

void PlanDetails::takeDimension()
{
    const std::string dimension = m_dimension->currentData().toString().toStdString();
    m_value->clear();
    m_value->addItems(PlanFields::valuesOf(dimension));
    m_value->setEditable(PlanFields::isNumber(dimension));
    m_value->setCurrentIndex(m_value->count() > 4 ? 3 : 0);
}

void PlanDetails::setPlan(const std::shared_ptr<const PlanResult>& result, int plan)
{
    const bool is = result && plan >= 0 && plan < static_cast<int>(result->plans.size());
    for (QWidget* part : {static_cast<QWidget*>(m_name), static_cast<QWidget*>(m_why), static_cast<QWidget*>(m_facts)})
        part->setVisible(is);
    if (!is) {
        m_heading->setText(tr("No plan chosen"));
        return;
    }
    const TrainingPlan& shown = result->plans[static_cast<std::size_t>(plan)];
    m_heading->setText(tr("Plan %1, predicted").arg(plan + 1));
    m_name->setText(planText(shown.setting, *shown.family, shown.chunks));
    QString why = whyText(shown.why) + QLatin1Char('.');
    if (!shown.alike.empty())
        why += QLatin1Char(' ')
               + tr("These costs cannot tell it from %1, within %2\u00a0%.")
                     .arg(rangesText(shown.alike))
                     .arg(100 * planTolerance, 0, 'f', 0);
    m_why->setText(why);
    std::vector<Fact> facts;
    if (shown.noisy.p95 > 0) {
        const QString source = tr("Predicted over sampled costs");
        facts.push_back({tr("median under noise"), durationText(shown.noisy.median), source, Tone::Plain});
        facts.push_back({tr("95 % within"), durationText(shown.noisy.p95), source, Tone::Plain});
    }
    const QString source = tr("Predicted, of device %1 at its peak").arg(shown.memory.device);
    facts.push_back({tr("peak"),
                     shown.memory.limit > 0 ? ofWhole(shown.peak, shown.memory.limit) : sizeText(shown.peak), source,
                     Tone::Plain});
    for (const MemoryKind& kind : memoryKinds(Theme::of(*this), {&shown.memory, 1}))
        facts.push_back({swatch(kind) + kind.name, sizeText(shown.memory.*kind.bytes, shown.peak), source, Tone::Dim});
    m_facts->setFacts(facts);
}

void PlanDetails::setFound(const PlanFound* plan)
{
    setPlan(nullptr, -1);
    m_name->setVisible(plan != nullptr);
    m_why->setVisible(plan != nullptr);
    if (plan == nullptr)
        return;
    m_name->setText(planText(plan->setting, *plan->family, plan->chunks));
    m_heading->setText(tr("Predicted so far"));
    m_why->setText(tr("Why it stands there is said when the search has ended."));
}

void PlanDetails::setRefined(const QString& text)
{
    m_refined->setText(text);
    m_refined->setVisible(!text.isEmpty());
}

void PlanDetails::setPinCosts(const QString& text)
{
    m_pinCosts->setText(text);
    m_pinCosts->setVisible(!text.isEmpty());
}

void PlanDetails::setChange(const QString& text)
{
    m_change->setText(text);
    m_change->setVisible(!text.isEmpty());
}

void PlanDetails::setAnswer(const QString& text, bool bad)
{
    m_answer->setText(text);
    m_answer->setVisible(!text.isEmpty());
    setTone(m_answer, bad ? Tone::Bad : Tone::Plain);
}

void PlanDetails::setAskable(bool askable)
{
    m_ask->setEnabled(askable);
}

QString PlanDetails::why() const
{
    return m_why->text();
}

QString PlanDetails::refinement() const
{
    return m_refined->text();
}

QString PlanDetails::pinCosts() const
{
    return m_pinCosts->text();
}

QString PlanDetails::change() const
{
    return m_change->text();
}

QString PlanDetails::answer() const
{
    return m_answer->text();
}

} // namespace pipewright

#include "moc_plandetails.cpp"
