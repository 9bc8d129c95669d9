// SPDX-License-Identifier: GPL-3.0-or-later
// The predicted step of the members of a design's groups: their parts of every block, the collectives between them, and
// how long each member waits at a collective for the slowest one. Computed on another thread, because plans that the
// design does not state must be found first. It is computed while it is shown, or when the Document does not have the
// members' memory, and again after an edit.
#pragma once

#include "gui/document/document.h"
#include "gui/widgets/latestwork.h"

#include <memory>

namespace pipewright {

class MemberForecast : public QObject {
    Q_OBJECT

public:
    struct Part {
        Nanoseconds start = 0, end = 0;
        Block block;
        bool collective = false;
        int index = 0, count = 1;                ///< of the block's parts, or of its collectives
        Collective kind = Collective::AllGather; ///< of a collective
        Nanoseconds waited = 0;                  ///< before it: for a slower member
        int slowest = -1;                        ///< the member that it waited for, numbered within its group
    };
    struct Share {
        int stage = 0;
        double share = 0;
    };
    struct Member {
        QString name;            ///< of the device
        std::vector<Part> parts; ///< in time order
        Bytes peakBytes = 0;
        Nanoseconds busy = 0;       ///< with parts
        Nanoseconds exchanging = 0; ///< in collectives
        Nanoseconds waiting = 0;    ///< before them
        std::vector<Share> shares;  ///< of the stages of its group
    };
    struct Send {
        Nanoseconds start = 0; ///< of the first member that sends a piece
        Transfer transfer;
    };
    struct Members {
        std::vector<std::vector<Member>> ofDevice; ///< one member where the device is no group
        std::vector<std::vector<Send>> sends; ///< per device: to others, in the order in which its members issue them
        std::vector<int> first;               ///< per device: its first member, numbered over all, as in a recording
        Nanoseconds makespan = 0;
    };

    explicit MemberForecast(Document& document, QObject* parent = nullptr);

    void want(bool wanted);                                    ///< called by the views that show it
    const Members* members() const { return m_members.get(); } ///< null: in progress or not possible
    QString why() const { return m_why; }                      ///< why members() is null
    bool isWorking() const { return m_working; }

    static Members of(const Design& design, const MemberPredictor::Members& predicted);

Q_SIGNALS:
    void changed();

private:
    struct Made {
        std::shared_ptr<const Members> members;
        std::shared_ptr<const MemberPredictor::Members> predicted;
        QString why; ///< there are none
    };
    void refresh();

    Document& m_document;
    bool m_wanted = false, m_working = false;
    std::shared_ptr<const Design> m_of; ///< the design of `m_members`
    std::shared_ptr<const Members> m_members;
    QString m_why;
    LatestWork m_work;
};

} // namespace pipewright
