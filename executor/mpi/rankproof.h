// SPDX-License-Identifier: GPL-3.0-or-later
// How two ranks of a run prove to each other that they know its secret, without sending it. Both add a number that they
// have never used before, and each sends a keyed hash of the whole conversation (libsodium's crypto_auth). The comer
// proves itself last, to somebody who has proved to be of the run. So nothing that crosses a port can be used again,
// neither in another connection nor in another run; whoever only holds the port learns nothing. What ranks say
// afterwards is neither hidden nor signed.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace pipewright {

using RankKey = std::array<unsigned char, 32>;
using RankNonce = std::array<unsigned char, 32>;
using RankProof = std::array<unsigned char, 32>;

/// The key of one run: of its secret, its number of ranks and the port where they meet.
RankKey rankKey(const std::string& secret, int size, int port);
RankNonce freshNonce();

enum class Prover : std::int32_t { Listener = 1, Comer = 2 };

/// One connection, as both ends see it.
struct RankConversation {
    std::int32_t comer = 0, listener = 0; ///< ranks
    std::int32_t port = 0;                ///< where the comer listens itself; not part of the listener's proof
    RankNonce comersNonce{}, listenersNonce{};
};

RankProof prove(Prover who, const RankConversation& of, const RankKey& key);
/// Takes as long for a wrong proof as for the right one.
bool isProof(const RankProof& proof, Prover who, const RankConversation& of, const RankKey& key);

} // namespace pipewright
