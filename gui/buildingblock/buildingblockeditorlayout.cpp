// SPDX-License-Identifier: GPL-3.0-or-later
// Layout of the building block editor; its behaviour is in buildingblockeditor.cpp.
#include "core/buildingblock/publishedblocklist.h"
#include "gui/buildingblock/buildingblockcells.h"
#include "gui/buildingblock/buildingblockeditor.h"
#include "gui/buildingblock/buildingblockgrid.h"
#include "gui/widgets/closingrow.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/onscreen.h"

#include <QAction>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QToolButton>

namespace pipewright {

namespace {

constexpr int leastGrid = 230, leastRows = 66; ///< pixels

QSpinBox* makeSpin(int from, int to, const QString& name, const QString& tip, QWidget* parent)
{
    auto* spin = new NumberField(name, tip, parent);
    spin->setRange(from, to);
    spin->setFont(Theme::numbers());
    spin->setFixedWidth(76);
    return spin;
}

} // namespace

BuildingBlockEditor::BuildingBlockEditor(Document& document, QWidget* parent)
    : QDialog(parent), m_document(document), m_form(new QComboBox(this)),
      m_interval(makeSpin(1, 2'000, tr("Interval"), tr("T: a new microbatch starts every T units"), this)),
      m_microbatches(makeSpin(1, maxMicrobatches, tr("Microbatches"),
                              tr("How often the block is repeated when it is unrolled"), this)),
      m_backward(new QComboBox(this)), m_reorder(new QCheckBox(tr("fill warm-up and cool-down"), this)),
      m_passName(makeCaption({}, TextSize::Normal, this)),
      m_start(makeSpin(0, 100'000, tr("Start of the pass"), tr("In units, as by dragging the selected pass"), this)),
      m_device(makeSpin(0, 0, tr("Device of the pass"),
                        tr("Moves the whole stage, as by dragging the selected pass to another device"), this)),
      m_scroll(new QScrollArea(this)), m_grid(new BuildingBlockGrid(this)), m_cells(new BuildingBlockCells(this)),
      m_facts(new FactList(this)), m_faults(new QLabel(this)),
      m_unroll(new QPushButton(tr("Unroll into the timeline"), this))
{
    setWindowTitle(tr("Building block"));
    setWindowFlag(Qt::WindowMinMaxButtonsHint);
    makePanel(this);

    QScrollArea* const scroll = m_scroll;
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setWidget(m_grid);
    scroll->setMinimumHeight(leastGrid);
    makePanel(scroll->viewport());
    m_unroll->setProperty("primary", true);
    m_unroll->setToolTip(tr("The schedule of this block replaces the present one; one undo brings that back"));
    m_unroll->setAutoDefault(false);
    auto* undo = new QToolButton(this);
    auto* redo = new QToolButton(this);
    for (auto [button, action, keys] :
         {std::tuple(undo, m_edits.createUndoAction(this, tr("Undo")), QKeySequence(Qt::CTRL | Qt::Key_Z)),
          std::tuple(redo, m_edits.createRedoAction(this, tr("Redo")),
                     QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Z))}) {
        action->setShortcut(keys);
        addAction(action);
        button->setDefaultAction(action);
        const QString text = action == undo->defaultAction() ? tr("Undo") : tr("Redo");
        button->setText(text);
        connect(action, &QAction::changed, button, [button = button, text] { button->setText(text); });
    }
    auto* hint = makeCaption(
        tr("Drag a pass along time, or to another device with its stage · Alt+arrows · Return: first free cell"),
        TextSize::Small, this);

    QHBoxLayout* buttons = makeClosingRow(*this, m_unroll);
    buttons->insertWidget(0, undo);
    buttons->insertWidget(1, redo);
    buttons->insertSpacing(2, 12);
    buttons->insertWidget(3, hint, 1);
    auto* layout = makeLayout<QVBoxLayout>(this, {24, 18, 24, 18}, 14);
    layout->addWidget(buildFields());
    layout->addWidget(scroll, 1);
    layout->addWidget(makeHairline(Qt::Horizontal, this));
    layout->addWidget(buildAnswers());
    layout->addLayout(buttons);
    connect(m_unroll, &QPushButton::clicked, this, &BuildingBlockEditor::unroll);
    connectFields();

    takePresent();
    resizeOnScreen(*this, {1060, 640});
}

QWidget* BuildingBlockEditor::buildFields()
{
    for (const PublishedBlock& form : publishedBlocks())
        m_form->addItem(QString::fromUtf8(form.title), QString::fromUtf8(form.family));
    m_form->setPlaceholderText(tr("own block"));
    m_form->setAccessibleName(tr("Start from"));
    m_form->setToolTip(tr("The published building blocks, for as many devices as the timeline has"));
    m_form->setFixedWidth(160);
    m_backward->addItems({tr("full: B"), tr("split: I and W")});
    m_backward->setAccessibleName(tr("Backward"));
    m_backward->setFixedWidth(130);
    m_reorder->setToolTip(tr("Passes move into the holes of warm-up and cool-down as far as the memory bound allows; "
                             "off: stamped as drawn"));

    auto* fields = new QWidget(this);
    auto* row = makeLayout<QHBoxLayout>(fields, {0, 0, 0, 0}, 8);
    const auto add = [&](const QString& text, QWidget* field) {
        row->addWidget(makeCaptionOf(field, text));
        row->addWidget(field);
        row->addSpacing(12);
    };
    add(tr("start from"), m_form);
    add(tr("interval"), m_interval);
    add(tr("backward"), m_backward);
    add(tr("microbatches"), m_microbatches);
    row->addWidget(m_reorder);
    row->addStretch(1);
    return fields;
}

QWidget* BuildingBlockEditor::buildAnswers()
{
    auto* answers = new QWidget(this);
    auto* left = new QVBoxLayout;
    left->setSpacing(8);
    auto* pass = new QHBoxLayout;
    pass->setSpacing(8);
    m_passName->setBuddy(m_start);
    pass->addWidget(makeHeading(tr("Pass"), answers));
    pass->addWidget(m_passName);
    pass->addSpacing(8);
    pass->addWidget(makeCaption(tr("start"), TextSize::Normal, answers));
    pass->addWidget(m_start);
    pass->addWidget(makeCaption(tr("stage on device"), TextSize::Normal, answers));
    pass->addWidget(m_device);
    pass->addStretch(1);
    left->addLayout(pass);
    left->addWidget(makeHeading(tr("One interval of the steady state"), answers));
    // Many devices have more rows than there is room for: what is edited above keeps the larger part.
    auto* rows = new QScrollArea(answers);
    rows->setFrameShape(QFrame::NoFrame);
    rows->setWidgetResizable(true);
    rows->setFocusPolicy(Qt::NoFocus);
    rows->setWidget(m_cells);
    rows->setMinimumHeight(leastRows);
    makePanel(rows->viewport());
    left->addWidget(rows, 100);
    m_faults->setWordWrap(true);
    m_faults->setAccessibleName(tr("What is wrong with the block"));
    m_faults->setMinimumHeight(36);
    m_faults->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    left->addWidget(m_faults);
    left->addStretch(1);
    auto* right = new QVBoxLayout;
    right->setSpacing(8);
    right->addWidget(makeHeading(tr("Unrolled"), answers));
    right->addWidget(m_facts);
    right->addStretch(1);
    m_facts->setFixedWidth(300);
    auto* columns = makeLayout<QHBoxLayout>(answers, {0, 0, 0, 0}, 28);
    columns->addLayout(left, 1);
    columns->addLayout(right);
    return answers;
}

void BuildingBlockEditor::connectFields()
{
    connect(m_grid, &BuildingBlockGrid::previewed, this, &BuildingBlockEditor::showShown);
    connect(m_grid, &BuildingBlockGrid::selectionChanged, this, &BuildingBlockEditor::showPass);
    connect(m_grid, &BuildingBlockGrid::edited, this, [this](const QString& what) { edit(shown(), what); });
    connect(m_grid, &BuildingBlockGrid::refused, this, [this](const QString& why) {
        m_faults->setText(why);
        setTone(m_faults, Tone::Bad);
    });
    connect(m_form, &QComboBox::activated, this, [this](int index) { takeForm(m_form->itemData(index).toString()); });
    connect(m_interval, &QSpinBox::valueChanged, this, [this](int interval) {
        RepeatedBlock after = m_block;
        after.block.interval = interval;
        edit(std::move(after), tr("Interval %1").arg(interval));
    });
    connect(m_microbatches, &QSpinBox::valueChanged, this, [this](int microbatches) {
        RepeatedBlock after = m_block;
        after.microbatches = microbatches;
        edit(std::move(after), tr("%1 microbatches").arg(microbatches));
    });
    connect(m_backward, &QComboBox::activated, this, [this](int index) {
        RepeatedBlock after = m_block;
        after.block = withBackward(after.block, index == 1 ? BackwardStyle::Split : BackwardStyle::Full);
        edit(std::move(after), index == 1 ? tr("Split the backward") : tr("Join the backward"));
    });
    connect(m_reorder, &QCheckBox::toggled, this, [this](bool on) {
        RepeatedBlock after = m_block;
        after.reorder = on;
        edit(std::move(after), on ? tr("Fill warm-up and cool-down") : tr("Stamp as drawn"));
    });
    connect(m_start, &QSpinBox::valueChanged, this, [this](int start) {
        const int pass = m_grid->selectedPass();
        if (pass >= 0)
            m_grid->moveSelected(start - m_block.block.passes[pass].start, 0);
    });
    connect(m_device, &QSpinBox::valueChanged, this, [this](int device) {
        const int pass = m_grid->selectedPass();
        if (pass < 0)
            return;
        const int stage = m_block.block.passes[pass].stage;
        m_grid->moveSelected(0, device - m_block.block.deviceOfStage[stage]);
        showPass(); // restores the fields after a refused edit
    });
    connect(&m_document, &Document::designChanged, this, [this] {
        if (isVisible()) // the results are compared with the current schedule, which has changed
            predictShown();
    });
}

} // namespace pipewright
