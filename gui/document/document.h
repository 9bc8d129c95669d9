// SPDX-License-Identifier: GPL-3.0-or-later
// The one Document of a window: a Design, its prediction, the trace laid over it, the selection, and the
// undo stack. Views listen to its signals and call its edits; no view changes a design by itself, and no
// view computes a schedule or a metric.
#pragma once

#include "core/predict/editrequest.h"
#include "gui/document/memberpredictor.h"
#include "gui/document/recording.h"
#include "gui/widgets/latestwork.h"
#include "gui/widgets/side.h"

#include <QObject>
#include <QString>
#include <QThreadPool>
#include <QUndoStack>

#include <deque>
#include <functional>
#include <memory>
#include <optional>

namespace pipewright {

class TimelineLayout;

class Document : public QObject {
    Q_OBJECT

public:
    explicit Document(QObject* parent = nullptr);
    ~Document() override;

    const Design& design() const { return *m_design; }
    /// The same as an immutable snapshot, which later edits do not change: for work on other threads.
    std::shared_ptr<const Design> sharedDesign() const { return m_design; }
    /// The prediction of the design's placed blocks. Never null after a design was set, unless the placed
    /// blocks cannot run (then diagnostics() says why). An incomplete schedule is predicted as far as placed.
    const Prediction* prediction() const { return m_outcome->prediction.get(); }
    std::shared_ptr<const Prediction> sharedPrediction() const
    {
        return m_outcome->prediction;
    } ///< for work on other threads
    const Diagnostics& diagnostics() const { return m_outcome->diagnostics; }
    double evaluationMilliseconds() const { return m_outcome->milliseconds; }
    /// For groups that run member by member, the prediction's memory is that of each group's fullest member. Computing
    /// it may take longer than an edit: then memoryChanged() follows designChanged(), and until then this returns what
    /// to show instead.
    std::optional<PendingMemory> pendingMemory() const;
    /// The predictor that computes it. Must be set before a design is.
    void setMemberPredictor(std::shared_ptr<MemberPredictor> predictor) { m_members = std::move(predictor); }
    const std::shared_ptr<MemberPredictor>& memberPredictor() const { return m_members; }
    /// Called with the result of another thread; ignored when `of` is no longer the design or already has its members.
    void setMembers(const std::shared_ptr<const Design>& of, const MemberPredictor::Members& members);
    void setNoMembers(const std::shared_ptr<const Design>& of, const QString& why); ///< they cannot be predicted
    /// The prediction sorted for drawing; without a prediction, the order alone. Made at the first call.
    std::shared_ptr<const TimelineLayout> layout() const;
    /// Blocks that have no place; computed at the first call.
    const std::vector<Block>& unplaced() const;
    QUndoStack* undoStack() { return &m_undoStack; }

    // Files. Errors are thrown as pipewright::Error and shown by the caller.
    void open(const QString& path);
    void save(const QString& path);
    QString path() const { return m_path; }
    /// Replaces everything; clears the undo stack, and nothing is unsaved.
    void reset(Design design, const QString& path = {});

    /// An edit that was applied to a design but not committed: the result, or the diagnostics that forbid it. A drag
    /// makes many of them; nothing changes until commit().
    struct Edit {
        std::shared_ptr<const Design> design; ///< the present one when the edit is illegal or changes nothing
        Diagnostics diagnostics;              ///< hasErrors(): the edit is illegal
        QString text;                         ///< name of the undo step: "Move I0.3 on GPU 1"
    };
    Edit tryEdit(const EditRequest& request) const;
    /// The same for other threads, which must not use the Document.
    static Edit tryEdit(const EditRequest& request, const std::shared_ptr<const Design>& design,
                        const Prediction* present);
    /// The results of a design, ready to be shown.
    struct Outcome {
        std::shared_ptr<const Prediction> prediction;
        Diagnostics diagnostics;
        double milliseconds = 0; ///< that predicting took
        std::shared_ptr<const TimelineLayout> layout;
        std::shared_ptr<const RangeIndex> ranges = nullptr; ///< made when first asked for
        std::shared_ptr<const Prediction> before = nullptr; ///< without the members' memory: views may refer to it
        QString whyNoMembers = {};
    };
    /// Pushes one undo command when the edit is legal and changes something. Returns its diagnostics. `outcome`: the
    /// prediction when it is already known. Otherwise a large design is predicted on another thread: isWorking() is
    /// true until the edit and its numbers arrive with designChanged(). User input in the meantime waits for it
    /// (settle()), so that no input applies to an outdated design.
    Diagnostics commit(Edit edit, std::shared_ptr<Outcome> outcome = nullptr);
    /// Several requests, one after another, as one edit.
    static Edit tryEdit(std::span<const EditRequest> requests, const std::shared_ptr<const Design>& design,
                        const Prediction* present);
    /// Applies a request in one step: pushes one undo command, or returns the diagnostics that forbid it.
    Diagnostics apply(const EditRequest& request);
    /// The same for several requests in one step, and for edits that take long: with a large design they are computed
    /// on another thread. A refusal is reported by editRefused(), immediately or later.
    void applyLater(std::vector<EditRequest> requests);
    bool isWorking() const { return m_work != nullptr; }
    void settle(); ///< waits for the edit in progress
    static constexpr std::int64_t manyBlocks = 100'000;
    void setLargeFrom(std::int64_t blocks) { m_largeFrom = blocks; } ///< for tests; as a rule manyBlocks

    /// Another design (new family, other costs, calibration) as one undoable command; waits for an edit under way.
    void replaceDesign(Design design, const QString& text);

    // Selection: one block or none; also where keyboard edits apply.
    std::optional<Block> selection() const { return m_selection; }
    void select(std::optional<Block> block);

    // Overlay: a recorded trace of this design. Throws Error when the trace is of another program.
    using Overlay = pipewright::Overlay;
    static constexpr int medianStep = Recording::medianStep, typicalStep = Recording::typicalStep;
    void setOverlay(const QString& tracePath, int step = medianStep);
    /// One that was read elsewhere, for that prediction; false where the design has another by now.
    bool takeOverlay(std::shared_ptr<Recording> recording, std::shared_ptr<Overlay> overlay,
                     const Prediction* prediction);
    void clearOverlay();
    /// Also while overlay() is null: after an edit that the recording does not fit, until it is undone …
    QString overlayPath() const { return m_recording ? m_recording->path() : QString(); }
    /// … and while the recording is laid over the edited design on another thread, which overlayChanged() ends.
    bool isOverlayPending() const { return m_isOverlayPending; }
    void setOverlayPatience(int milliseconds) { m_overlayPatience = milliseconds; } ///< for tests; as a rule a frame
    const Overlay* overlay() const { return m_overlay.get(); }

    /// The side that all views show: the chosen one, or Predicted while there is no overlay.
    Side side() const { return m_overlay ? m_side : Side::Predicted; }
    bool showsMeasured() const { return side() != Side::Predicted; }
    void setSide(Side side); ///< kept while there is no overlay, for the next one

    /// Statistics of the devices between two times of the lanes, for each available side. On side Both the prediction
    /// is aligned to begin with the recording, as its outlines are.
    struct Range {
        std::optional<RangeStatistics> predicted, measured;
        IdleGap measuredIdle; ///< of all devices, by cause; see idleBetween()
    };
    Range statistics(Nanoseconds from, Nanoseconds to) const;

    bool eventFilter(QObject* watched, QEvent* event) override;

Q_SIGNALS:
    void workingChanged();                                                     ///< isWorking() did
    void editRefused(const Diagnostics& diagnostics, const EditRequest& last); ///< by applyLater()
    void designChanged(); ///< design, prediction and diagnostics are all up to date when it is emitted
    void memoryChanged(); ///< only the memory of the prediction changed
    void selectionChanged();
    void overlayChanged();
    void sideChanged(); ///< by setSide(); side() may also change with overlayChanged()
    void pathChanged();

private:
    friend class DesignCommand;
    struct Work {
        std::shared_ptr<const Design> design;
        QString text;
        std::shared_ptr<Outcome> outcome; ///< null when the design is the present one: then `diagnostics` may say why
        Diagnostics diagnostics;
        std::vector<EditRequest> requests = {}; ///< of applyLater()
    };
    void start(std::shared_ptr<Work> work, std::function<void(Work&)> prepare);
    static std::shared_ptr<Outcome> outcomeOf(const Design& design, MemberPredictor& members);
    bool isLarge(const Design& design) const { return design.schedule.blocks() >= m_largeFrom; }
    /// Sets, predicts where no outcome is given, emits; called by commands and reset().
    void show(std::shared_ptr<const Design> design, std::shared_ptr<Outcome> outcome = nullptr);
    void layOver(); ///< the recording over the present prediction
    void takePeaks();

    std::shared_ptr<const Design> m_design = std::make_shared<const Design>();
    std::shared_ptr<Outcome> m_outcome = std::make_shared<Outcome>();
    std::shared_ptr<MemberPredictor> m_members = std::make_shared<MemberPredictor>();
    std::deque<std::shared_ptr<Outcome>> m_recent; ///< of large designs: undoing the last edits need not predict again
    mutable std::optional<std::vector<Block>> m_unplaced;
    std::shared_ptr<Work> m_work; ///< an edit whose prediction is under way; null: none
    QThreadPool m_worker;
    std::int64_t m_largeFrom = manyBlocks;
    std::optional<Block> m_selection;
    std::shared_ptr<Recording> m_recording; ///< kept when an edit makes it unfit, for undo
    std::shared_ptr<Overlay> m_overlay;
    bool m_isOverlayPending = false;
    int m_overlayPatience = 16; ///< milliseconds
    Side m_side = Side::Both;
    QUndoStack m_undoStack;
    QString m_path;
    LatestWork m_laying;
};

/// What people call a device in lanes, menus and messages: "GPU 1".
QString deviceLabel(const Design& design, int device);
/// A block's name: "F0.3".
QString blockText(const Block& block);

} // namespace pipewright
