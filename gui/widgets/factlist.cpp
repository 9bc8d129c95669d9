// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/factlist.h"

#include "gui/widgets/themechange.h"

#include <QGridLayout>
#include <QLabel>
#include <QTimer>

#include <utility>

namespace pipewright {

namespace {

constexpr int leastValue = 60;         ///< pixels to which a long value shrinks, so that it does not widen the panel
constexpr qsizetype usualValue = 16;   ///< characters that fit in the narrowest panel, too
constexpr qsizetype longestValue = 28; ///< characters that fit in a panel beside the name; a line holds about 40

} // namespace

FactList::FactList(QWidget* parent) : QWidget(parent), m_layout(new QGridLayout(this))
{
    onThemeChange(this, [this] {
        // Deferred, as the labels get the new style sheet after this widget.
        QTimer::singleShot(0, this, [this] {
            for (std::size_t i = 0; i < m_facts.size(); ++i)
                setTone(m_rows[i].value, m_facts[i].tone);
        });
    });
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setHorizontalSpacing(12);
    m_layout->setVerticalSpacing(8);
    m_layout->setColumnStretch(1, 1);
}

void FactList::setFacts(const std::vector<Fact>& facts)
{
    const std::vector<Fact> before = std::exchange(m_facts, facts);
    while (m_rows.size() < facts.size()) {
        const int row = 2 * static_cast<int>(m_rows.size()); // the row below is for a long value
        auto* name = makeCaption({}, TextSize::Normal, this);
        auto* value = makeShrinkingNumber({}, TextSize::Small, leastValue, this);
        value->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        m_layout->addWidget(name, row, 0);
        m_layout->addWidget(value, row, 1);
        m_rows.push_back({name, value, false});
    }
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        const bool used = i < facts.size();
        m_rows[i].name->setVisible(used);
        m_rows[i].value->setVisible(used);
        // Setting a label's text causes a new layout, which is too slow at every move of a drag.
        if (!used || (i < before.size() && before[i] == facts[i]))
            continue;
        const Fact& fact = facts[i];
        m_rows[i].name->setText(fact.name);
        if (const bool ownLine = fact.value.size() > longestValue; ownLine != m_rows[i].ownLine) {
            m_rows[i].ownLine = ownLine;
            // Below its name it begins where the name does.
            m_rows[i].value->setAlignment((ownLine ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
            m_layout->removeWidget(m_rows[i].value);
            const int row = 2 * static_cast<int>(i);
            if (ownLine)
                m_layout->addWidget(m_rows[i].value, row + 1, 0, 1, 2);
            else
                m_layout->addWidget(m_rows[i].value, row, 1);
        }
        m_rows[i].value->setText(fact.value);
        const QString tip = fact.value.size() > usualValue ? fact.value + QLatin1Char('\n') + fact.source : fact.source;
        m_rows[i].name->setToolTip(tip);
        m_rows[i].value->setToolTip(tip);
        m_rows[i].value->setAccessibleName(fact.name + QStringLiteral(": ") + fact.value);
        setTone(m_rows[i].value, fact.tone);
    }
}

QString FactList::value(const QString& name) const
{
    for (const Fact& fact : m_facts) {
        if (fact.name == name)
            return fact.value;
    }
    return {};
}

} // namespace pipewright

#include "moc_factlist.cpp"
