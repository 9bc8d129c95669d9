// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/model/zerofields.h"

#include "gui/widgets/layouts.h"
#include "gui/widgets/words.h"

#include <QCoreApplication>
#include <QHBoxLayout>
#include <QSignalBlocker>

#include <array>

namespace pipewright {

namespace {

constexpr std::array titles{
    QT_TRANSLATE_NOOP("Zero", "ZeRO 0: nothing is shared"), QT_TRANSLATE_NOOP("Zero", "ZeRO 1: optimizer state"),
    QT_TRANSLATE_NOOP("Zero", "ZeRO 2: gradients too"), QT_TRANSLATE_NOOP("Zero", "ZeRO 3: parameters too (FSDP)")};
static_assert(titles.size() == Zero::highestLevel + 1, "a new level needs a title");

QString titleOf(int level)
{
    return QCoreApplication::translate("Zero", titles[static_cast<std::size_t>(level)]);
}

} // namespace

void addZeroLevels(QComboBox& combo)
{
    for (int level = 0; level <= Zero::highestLevel; ++level)
        combo.addItem(titleOf(level), level);
    combo.setToolTip(QCoreApplication::translate(
        "Zero", "What the copies of the pipeline share out: each keeps the optimizer state of its share of the "
                "parameters (ZeRO 1), that share of the gradients (2) and of the parameters (3), which are then "
                "gathered before their stage runs"));
}

ZeroFields::ZeroFields(QWidget* parent)
    : QWidget(parent), m_level(new QComboBox(this)), m_reshard(new QComboBox(this)), m_reduce(new QComboBox(this)),
      m_prefetch(new QSpinBox(this))
{
    addZeroLevels(*m_level);
    m_level->setAccessibleName(tr("States that copies share out"));
    m_reshard->addItems({tr("kept gathered"), tr("freed after visits")});
    m_reshard->setAccessibleName(tr("When gathered parameters are freed"));
    m_reshard->setToolTip(tr("Gathered parameters stay on the device to the end of the step, or are freed when other "
                             "stages of the device are next and gathered again"));
    m_reduce->addItems({tr("summed once"), tr("summed each time")});
    m_reduce->setAccessibleName(tr("When gradients are summed over the copies"));
    m_reduce->setToolTip(
        tr("Gradients are summed over the copies after the last microbatch of a stage, as Megatron and "
           "torchtitan do, or after each, so that no whole sums are kept"));
    m_prefetch->setRange(0, Zero::mostPrefetch);
    m_prefetch->setButtonSymbols(QAbstractSpinBox::NoButtons); // as other fields: keys and the wheel step
    m_prefetch->setSuffix(tr(" ahead"));
    m_prefetch->setAccessibleName(tr("Stages that are gathered ahead"));
    m_prefetch->setToolTip(tr("How many stages ahead of the one that runs are gathered"));
    auto* layout = makeLayout<QHBoxLayout>(this, {0, 0, 0, 0}, 8);
    for (QWidget* field : std::initializer_list<QWidget*>{m_level, m_reshard, m_prefetch, m_reduce})
        layout->addWidget(field);
    for (QComboBox* combo : {m_level, m_reshard, m_reduce})
        connect(combo, &QComboBox::activated, this, &ZeroFields::take);
    connect(m_prefetch, &QSpinBox::valueChanged, this, &ZeroFields::take);
    setValue({}, 0);
}

void ZeroFields::take()
{
    Zero zero = m_value;
    zero.level = m_level->currentData().toInt();
    if (m_reshard->currentIndex() < 2) // the third says that stages differ
        zero.reshard = {m_reshard->currentIndex() == 1, {}};
    zero.reduce = m_reduce->currentIndex() == 1 ? Zero::Reduce::Each : Zero::Reduce::Last;
    zero.prefetch = m_prefetch->value();
    if (zero != m_value)
        Q_EMIT edited(zero);
}

void ZeroFields::setValue(const Zero& zero, Bytes saved)
{
    m_value = zero;
    const QSignalBlocker quiet(m_prefetch);
    m_level->setCurrentIndex(zero.level);
    m_level->setItemText(1, saved == 0       ? titleOf(1)
                            : zero.level > 0 ? tr("%1: %2 less").arg(titleOf(1), sizeText(saved))
                                             : tr("%1: would save %2").arg(titleOf(1), sizeText(saved)));
    while (m_reshard->count() > 2)
        m_reshard->removeItem(2);
    if (!zero.reshard.every && zero.reshard.any())
        m_reshard->addItem(tr("freed in %n stage(s)", nullptr, static_cast<int>(zero.reshard.stages.size())));
    m_reshard->setCurrentIndex(zero.reshard.every ? 1 : m_reshard->count() == 3 ? 2 : 0);
    m_reduce->setCurrentIndex(zero.reduce == Zero::Reduce::Each ? 1 : 0);
    m_prefetch->setValue(zero.prefetch);
    m_reshard->setVisible(zero.sharesParameters());
    m_prefetch->setVisible(zero.sharesParameters());
    m_reduce->setVisible(zero.sharesGradients());
}

} // namespace pipewright

#include "moc_zerofields.cpp"
